// The events of a workload during a run (events.h), which fluid.cc takes one after another. Times
// are simulated seconds.
#include "sim/engine/internal/events.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace foreshard::engine::internal {

Events::Events(const Workload& workload) : events_(workload.events()) {
  if (events_.empty()) return;
  failure_timeout_.assign(workload.resource_count(), kInfinity);
  failed_since_.assign(workload.resource_count(), 0);
  failures_.assign(workload.resource_count(), 0);
  for (std::size_t r = 0; r < workload.resource_count(); ++r)
    capacity_.push_back(workload.capacity(ResourceId(static_cast<std::int64_t>(r))));
  for (std::size_t e = 0; e < events_.size(); ++e) {
    const Event& event = events_[e];
    due_.push_back({.time = event.at.in_base(), .event = static_cast<std::int32_t>(e)});
    if (event.period == kNever)
      ++once_;
    else
      longest_period_ = std::max(longest_period_, event.period.in_base());
    if (event.kind == Event::Kind::kShape && shape_now_.empty()) {
      shape_now_.resize(workload.shapes().size());
      std::iota(shape_now_.begin(), shape_now_.end(), 0);
    }
    if (event.kind == Event::Kind::kLoadBegins)
      slot_of_background_flow_.resize(
          std::max(slot_of_background_flow_.size(), static_cast<std::size_t>(event.load) + 1),
          kNoSlot);
  }
  std::ranges::make_heap(due_, later);
  next_time_ = due_.front().time;
}

const Changes& Events::take_until(double time) {
  changes_ = {};
  while (next_time_ <= time) {
    std::ranges::pop_heap(due_, later);
    Due due = due_.back();
    due_.pop_back();
    const Event& event = events_[static_cast<std::size_t>(due.event)];
    take(event);
    if (event.period == kNever) {
      --once_;
    } else {
      ++due.times;
      due.time = (event.at + static_cast<double>(due.times) * event.period).in_base();
      due_.push_back(due);
      std::ranges::push_heap(due_, later);
    }
    next_time_ = due_.empty() ? kInfinity : due_.front().time;
  }
  return changes_;
}

void Events::take(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kCapacity:
      capacity_[event.resource.index()] = event.capacity;
      return change_capacity(event.resource.value());
    case Event::Kind::kFails: {
      ++failures_[event.resource.index()];
      double& failure_timeout = failure_timeout_[event.resource.index()];
      if (failure_timeout == kInfinity && event.failure_timeout < kNever) {
        ++failed_with_timeout_;
        failure_timeout = event.failure_timeout.in_base();
        failed_since_[event.resource.index()] = event.at.in_base();
      }
      changes_.failed_or_repaired.push_back(event.resource.value());
      return change_capacity(event.resource.value());
    }
    case Event::Kind::kRepaired: {
      if (--failures_[event.resource.index()] > 0) return;
      double& failure_timeout = failure_timeout_[event.resource.index()];
      if (failure_timeout < kInfinity) --failed_with_timeout_;
      failure_timeout = kInfinity;
      changes_.failed_or_repaired.push_back(event.resource.value());
      return change_capacity(event.resource.value());
    }
    case Event::Kind::kShape:
      shape_now_[event.of.index()] = event.as.value();
      changes_.shapes_changed = true;
      return;
    case Event::Kind::kLoadBegins:
      changes_.begun.emplace_back(event.load, event.as.value());
      return;
    case Event::Kind::kLoadEnds:
      // A flow that begins and ends within one instant is dropped.
      if (std::erase_if(changes_.begun, [&](const auto& b) { return b.first == event.load; }) == 0)
        changes_.ended.push_back(event.load);
      return;
  }
}

void Events::change_capacity(std::int32_t resource) {
  const auto r = static_cast<std::size_t>(resource);
  changes_.capacities.emplace_back(resource, failures_[r] > 0 ? 0 : capacity_[r]);
}

double Events::end_of_failure_timeout(std::span<const Load> loads, double since) const {
  double earliest = kInfinity;
  if (failed_with_timeout_ == 0) return earliest;
  for (const Load& load : loads) {
    const auto r = static_cast<std::size_t>(load.resource);
    earliest = std::min(earliest, std::max(failed_since_[r], since) + failure_timeout_[r]);
  }
  return earliest;
}

std::int32_t Events::failed_resource(std::span<const Load> loads) const {
  const auto found = std::ranges::find_if(loads, [&](const Load& load) {
    return failure_timeout_[static_cast<std::size_t>(load.resource)] < kInfinity;
  });
  FORESHARD_CHECK(found != loads.end());
  return found->resource;
}

void Events::set_gives_up(std::int32_t slot, bool gives_up) {
  const auto s = static_cast<std::size_t>(slot);
  if (s >= gives_up_.size()) {
    if (!gives_up) return;
    gives_up_.resize(s + 1);
  }
  gives_up_[s] = gives_up;
}

}  // namespace foreshard::engine::internal
