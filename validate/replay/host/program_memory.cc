#include "validate/replay/host/program_memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "base/quantity.h"

namespace foreshard::replay::host {
namespace {

std::size_t whole(Bytes bytes) {
  return static_cast<std::size_t>(std::ceil(bytes.in_base()));
}

Bytes quantity(std::size_t bytes) {
  return static_cast<double>(bytes) * 1_B;
}

}  // namespace

ProgramMemory::ProgramMemory(const RankPlan& plan)
    : plan_(plan),
      allocated_by_(plan.expansion.instances.size()),
      freed_by_(plan.expansion.instances.size()) {
  const program::Role& role = plan.program->roles[plan.role];
  for (const program::StaticMemory& memory : role.memory) static_bytes_ += whole(memory.bytes);

  // A buffer is identified by name, chunk, micro-batch and model layer (program.h).
  using Key = std::tuple<std::string_view, std::int32_t, std::int32_t, std::int32_t>;
  std::map<Key, std::uint32_t> live;
  Heap heap;
  const auto& events = plan.memory.events;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const program::MemoryEvent& event = events[e];
    const program::Call& call = role.calls[static_cast<std::size_t>(event.call)];
    const program::Task& task =
        plan.program->blocks[call.block.index()].tasks[static_cast<std::size_t>(event.task)];
    const std::string_view name = event.allocate ? std::get<program::Allocate>(task.body).buffer
                                                 : std::get<program::Free>(task.body).buffer;
    const Key key{name, call.chunk, call.micro_batch, call.layer(event.iteration)};
    const auto anchors = plan.memory.anchors_of(event);
    if (event.allocate) {
      const auto index = static_cast<std::uint32_t>(buffers_.size());
      live[key] = index;
      buffers_.push_back({.bytes = whole(event.bytes), .allocate = e});
      buffers_.back().offset = heap.allocate(buffers_.back().bytes);
      allocated_by_[static_cast<std::size_t>(anchors.front())].push_back(index);
      continue;
    }
    const auto found = live.find(key);
    FORESHARD_CHECK(found != live.end());  // Invariant 15 of verify.h.
    Buffer& buffer = buffers_[found->second];
    buffer.anchors = anchors.size();
    for (const std::int32_t anchor : anchors)
      freed_by_[static_cast<std::size_t>(anchor)].push_back(found->second);
    heap.free(buffer.offset, buffer.bytes);
    live.erase(found);
  }
  peak_ = heap.peak();
  extent_ = heap.extent() + heap.extent() / 8;
}

Bytes ProgramMemory::need() const {
  return quantity(static_bytes_ + extent_);
}

std::string ProgramMemory::name_of(std::size_t event) const {
  const program::MemoryEvent& of = plan_.memory.events[event];
  const program::Call& call =
      plan_.program->roles[plan_.role].calls[static_cast<std::size_t>(of.call)];
  const auto& task =
      plan_.program->blocks[call.block.index()].tasks[static_cast<std::size_t>(of.task)];
  return "buffer " + std::get<program::Allocate>(task.body).buffer + " of " +
         describe(plan_, static_cast<std::size_t>(plan_.memory.anchors_of(of).front()));
}

std::optional<std::string> ProgramMemory::shortage(Bytes available) const {
  if (!(need() > available)) return std::nullopt;
  const auto room = available.in_base();
  auto live = static_cast<double>(static_bytes_);
  if (live > room)
    return "its static memory (parameters, optimizer state) asks for " +
           format(quantity(static_bytes_));
  const auto& events = plan_.memory.events;
  std::size_t largest = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const double bytes = events[e].bytes.in_base();
    if (!events[e].allocate) {
      live -= bytes;
      continue;
    }
    if (live + bytes > room)
      return name_of(e) + " asks for " + format(events[e].bytes) + " when " +
             format(Bytes::from_base(room - live)) + " are left";
    live += bytes;
    if (events[e].bytes > events[largest].bytes || !events[largest].allocate) largest = e;
  }
  // All buffers would fit without the gaps between them.
  return name_of(largest) + " and the others ask for " + format(need());
}

Status ProgramMemory::reserve() {
  FORESHARD_ASSIGN(pages_, Pages::reserve(static_bytes_ + extent_));
  if (!pages_.bytes().empty()) std::memset(pages_.bytes().data(), 0, pages_.bytes().size());
  return {};
}

void ProgramMemory::begin_step() {
  heap_ = {};
  for (Buffer& buffer : buffers_) {
    buffer.waiting = buffer.anchors;
    buffer.live = false;
  }
}

Status ProgramMemory::starts(std::size_t instance) {
  for (const std::uint32_t index : allocated_by_[instance]) {
    Buffer& buffer = buffers_[index];
    buffer.offset = heap_.allocate(buffer.bytes);
    buffer.live = true;
    peak_ = std::max(peak_, heap_.peak());
    if (heap_.extent() > pages_.bytes().size() - static_bytes_)
      return Error{Error::Code::kInfeasible,
                   name_of(buffer.allocate) + " asks for " + format(quantity(buffer.bytes)) +
                       ", but buffers that came and went left no gap of this size in " +
                       format(quantity(pages_.bytes().size() - static_bytes_))};
    // All instances for which its Free waits have already finished.
    if (buffer.anchors > 0 && buffer.waiting == 0) {
      heap_.free(buffer.offset, buffer.bytes);
      buffer.live = false;
    }
  }
  return {};
}

void ProgramMemory::finished(std::size_t instance) {
  for (const std::uint32_t index : freed_by_[instance]) {
    Buffer& buffer = buffers_[index];
    if (--buffer.waiting > 0 || !buffer.live) continue;
    heap_.free(buffer.offset, buffer.bytes);
    buffer.live = false;
  }
}

Bytes ProgramMemory::peak() const {
  return quantity(static_bytes_ + peak_);
}

Bytes ProgramMemory::gaps() const {
  return quantity(pages_.bytes().size()) - peak();
}

}  // namespace foreshard::replay::host
