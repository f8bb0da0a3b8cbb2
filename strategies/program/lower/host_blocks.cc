// Blocks and tasks of offloading, appended by action_blocks.cc and optimizer_block.cc.
#include "strategies/program/lower/host_blocks.h"

#include <algorithm>
#include <utility>

#include "strategies/program/lower/block.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {
namespace {

using program::Allocate;
using program::Block;
using program::CollectiveKind;
using program::Communication;
using program::Free;
using program::MemoryKind;
using program::Task;

StreamIndex stream_of(CollectiveKind kind) {
  if (kind == CollectiveKind::kToHost) return kToHostStream;
  return kind == CollectiveKind::kFromHost ? kFromHostStream : kOnHostStream;
}

std::int32_t last(const Block& block) {
  return static_cast<std::int32_t>(block.tasks.size()) - 1;
}

}  // namespace

Task host_task(std::string name, CollectiveKind kind, Bytes bytes, DType dtype,
               std::vector<std::int32_t> after) {
  return Task{.name = std::move(name),
              .body = Communication{.kind = kind,
                                    .group = program::AxisGroup{},
                                    .bytes = bytes,
                                    .dtype = dtype,
                                    .purpose = program::Purpose::kOffload},
              .stream = stream(stream_of(kind)),
              .after = std::move(after)};
}

Block activations_to_host(const std::string& unit, const std::string& buffer, Bytes bytes,
                          DType dtype) {
  Block block{.name = unit + ".offload"};
  block.tasks.push_back(host_task("to_host.activations", CollectiveKind::kToHost, bytes, dtype));
  if (bytes > 0_B) block.tasks.push_back(Task{.name = "forget", .body = Free{buffer}});
  return block;
}

Block activations_from_host(const std::string& unit, const std::string& buffer, Bytes bytes,
                            DType dtype) {
  Block block{.name = unit + ".fetch"};
  if (bytes > 0_B)
    block.tasks.push_back(
        Task{.name = "keep", .body = Allocate{buffer, MemoryKind::kActivations, bytes}});
  block.tasks.push_back(
      host_task("from_host.activations", CollectiveKind::kFromHost, bytes, dtype));
  return block;
}

Block gradients_to_host(std::string name, std::int64_t count) {
  Block block{.name = std::move(name)};
  block.tasks.push_back(host_task("to_host.gradients", CollectiveKind::kToHost,
                                  size_of(DType::kFp32) * static_cast<double>(count),
                                  DType::kFp32));
  return block;
}

void append_cpu_step(Block& step, const Strategy& strategy, std::int64_t count,
                     std::int64_t left_on_device) {
  const auto elements = static_cast<double>(count);
  const Bytes whole = size_of(DType::kFp32);
  const Bytes own = size_of(strategy.precision);
  // Where the only copy of the parameters is the host's, in fp32, nothing is cast.
  const bool casts = own != whole && element_bytes(strategy).parameter == own;
  std::vector<std::int32_t> after;
  if (left_on_device > 0) {
    step.tasks.push_back(host_task("to_host.gradients", CollectiveKind::kToHost,
                                   whole * static_cast<double>(left_on_device), DType::kFp32));
    after = {last(step)};
  }
  // 7: the gradient is read; the master copy and two moments are read and written.
  const Bytes traffic = 7 * whole + (casts ? whole + own : 0_B);
  step.tasks.push_back(host_task("adam", CollectiveKind::kOnHost, traffic * elements, DType::kFp32,
                                 std::move(after)));
  if (strategy.offload_parameters) return;
  step.tasks.push_back(host_task("from_host.parameters", CollectiveKind::kFromHost,
                                 element_bytes(strategy).parameter * elements, strategy.precision,
                                 {last(step)}));
}

void append_fetched_step(Block& step, const Strategy& strategy, std::int64_t count,
                         const std::function<void()>& append_update) {
  const Bytes states = element_bytes(strategy).optimizer * static_cast<double>(count);
  const std::string buffer = "optimizer.states";
  step.tasks.push_back(
      host_task("from_host.states", CollectiveKind::kFromHost, states, DType::kFp32));
  const std::int32_t fetched = last(step);
  if (states > 0_B)
    step.tasks.push_back(
        Task{.name = "keep", .body = Allocate{buffer, MemoryKind::kOptimizer, states}});
  const std::size_t first = step.tasks.size();
  append_update();
  step.tasks[first].after.push_back(fetched);
  step.tasks.push_back(
      host_task("to_host.states", CollectiveKind::kToHost, states, DType::kFp32, {last(step)}));
  if (states > 0_B) step.tasks.push_back(Task{.name = "forget", .body = Free{buffer}});
}

void put_parameters_before(Block& gather, Bytes bytes, DType dtype) {
  put_before(gather, {host_task("from_host.parameters", CollectiveKind::kFromHost, bytes, dtype)});
  const auto reads = std::find_if(gather.tasks.begin() + 1, gather.tasks.end(), [](const Task& t) {
    return std::holds_alternative<Kernel>(t.body) || std::holds_alternative<Communication>(t.body);
  });
  if (reads != gather.tasks.end()) reads->after.insert(reads->after.begin(), 0);
}

}  // namespace foreshard::lower
