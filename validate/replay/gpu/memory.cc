#include "validate/replay/gpu/memory.h"

#include <algorithm>
#include <cuda_runtime_api.h>
#include <tuple>

#include "base/check.h"
#include "base/quantity.h"

#include "validate/replay/gpu/cuda_error.h"

namespace foreshard::replay::gpu {
namespace {

std::string amount(std::size_t bytes) {
  return format(static_cast<double>(bytes) * 1_B);
}

const char* name_of_kind(program::MemoryKind kind) {
  switch (kind) {
    case program::MemoryKind::kParameters:
      return "parameters";
    case program::MemoryKind::kGradients:
      return "gradients";
    case program::MemoryKind::kOptimizer:
      return "optimizer state";
    case program::MemoryKind::kActivations:
      return "activations";
    case program::MemoryKind::kBuffers:
      return "buffers";
  }
  return "memory";
}

std::size_t whole(Bytes bytes) {
  return static_cast<std::size_t>(bytes.in_base());
}

}  // namespace

std::size_t Arena::allocate(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(1, (bytes + kGranule - 1) / kGranule) * kGranule;
  std::optional<std::size_t> best;
  std::size_t best_gap = 0;
  std::size_t end = 0;  // end of the allocation before the gap
  for (const auto& [address, used] : used_) {
    const std::size_t gap = address - end;
    if (gap >= size && (!best || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = address + used;
  }
  const std::size_t address = best ? *best : end;
  used_.emplace(address, size);
  peak_ = std::max(peak_, address + size);
  return address;
}

void Arena::free(std::size_t address) {
  FORESHARD_CHECK(used_.erase(address) == 1);
}

ArenaPlan plan_arena(const RankPlan& plan) {
  const program::Program& program = *plan.program;
  const program::Role& role = program.roles[plan.role];
  ArenaPlan result;
  Arena arena;
  const auto note = [&](std::size_t asked, const auto& what) {
    if (arena.peak() <= result.bytes) return;
    result.bytes = arena.peak();
    result.growths.push_back({result.bytes, asked, what()});
  };
  for (const auto& memory : role.memory) {
    arena.allocate(whole(memory.bytes));
    note(whole(memory.bytes),
         [&] { return name_of_kind(memory.kind) + std::string(" of the step"); });
  }
  // A buffer is known by its name, chunk, micro-batch and model layer (program.h, Free).
  using Key = std::tuple<std::string, std::int32_t, std::int32_t, std::int32_t>;
  std::map<Key, std::size_t> live;
  for (const program::MemoryEvent& event : plan.memory.events) {
    const program::Call& call = role.calls[static_cast<std::size_t>(event.call)];
    const program::Task& task =
        program.blocks[call.block.index()].tasks[static_cast<std::size_t>(event.task)];
    const auto key = [&](const std::string& buffer) {
      return Key(buffer, call.chunk, call.micro_batch, call.layer(event.iteration));
    };
    if (event.allocate) {
      const std::size_t bytes = whole(event.bytes);
      live.emplace(key(std::get<program::Allocate>(task.body).buffer), arena.allocate(bytes));
      note(bytes, [&] {
        const auto anchors = plan.memory.anchors_of(event);
        std::string text = name_of_kind(event.kind) + std::string(" ") +
                           std::get<program::Allocate>(task.body).buffer;
        if (!anchors.empty())
          text += " at " + describe(plan, static_cast<std::size_t>(anchors.front()));
        return text;
      });
    } else {
      const auto found = live.find(key(std::get<program::Free>(task.body).buffer));
      FORESHARD_CHECK(found != live.end());  // verify, invariant 15
      arena.free(found->second);
      live.erase(found);
    }
  }
  return result;
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) cudaFree(data_);
}

Status DeviceMemory::allocate(std::size_t bytes, const std::string& what) {
  FORESHARD_CHECK(data_ == nullptr);
  if (bytes == 0) return {};
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  const cudaError_t status = cudaMalloc(&data_, bytes);
  if (status == cudaSuccess) {
    bytes_ = bytes;
    return {};
  }
  data_ = nullptr;
  cudaGetLastError();  // clears the error, so that later calls do not report it
  if (status != cudaErrorMemoryAllocation) return fault_of(status, what);
  return Error{Error::Code::kInfeasible, "out of memory for " + what + ": " + amount(bytes) +
                                             " asked for, " + amount(free) + " of " +
                                             amount(total) + " free"};
}

void Ring::over(const DeviceMemory& memory) {
  data_ = static_cast<unsigned char*>(memory.data());
  size_ = memory.size();
  next_ = 0;
}

void* Ring::take(std::size_t bytes) {
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  FORESHARD_CHECK(size <= size_);
  if (next_ + size > size_) next_ = 0;
  unsigned char* piece = data_ + next_;
  next_ += size;
  return piece;
}

}  // namespace foreshard::replay::gpu
