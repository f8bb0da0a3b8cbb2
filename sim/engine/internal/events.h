/// \file
/// The events of a workload (engine::Event: changed capacities, background flows, failures and
/// repairs, changed shapes) during a run: which ones are due at an instant, and the state that
/// earlier ones left. The run (fluid.cc) is a template over `Events`; most workloads have no events
/// and use `NoEvents`, whose answers are constants, so that it costs nothing.
///
/// Times and periods are simulated seconds, infinite for "never"; capacities are in work per second
/// of their resource (bytes/s for a link). A *shape* is a list of loads that activities share: how
/// much of each resource a unit of work takes. A *slot* is the place of a running activity or
/// background flow in the run's arrays.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/internal/plan.h"

namespace foreshard::engine::internal {

/// Changes by the events of one instant, in addition to the state that `Events` holds; all empty if
/// nothing was due.
struct Changes {
  std::vector<std::pair<std::int32_t, double>> capacities;  ///< Pairs of resource and new capacity.
  /// Pairs of background flow and its shape.
  std::vector<std::pair<std::int32_t, std::int32_t>> begun;
  std::vector<std::int32_t> ended;               ///< Background flows that ended.
  std::vector<std::int32_t> failed_or_repaired;  ///< Resources.
  bool shapes_changed = false;                   ///< Events::shape_now() has new answers.
};

class Events {
 public:
  static constexpr bool kAny = true;

  explicit Events(const Workload& workload);

  /// Whether all remaining events are repetitions of periodic ones.
  bool only_repeats() const { return once_ == 0; }
  /// The longest period of a periodic event; 0 without one.
  double longest_period() const { return longest_period_; }
  /// Time of the next event; infinite after the last.
  double next_time() const { return next_time_; }

  /// Applies all events that are due by `time`.
  const Changes& take_until(double time);

  /// The current shape of activities that were added with `shape`.
  std::int32_t shape_now(std::int32_t shape) const {
    return shape_now_.empty() ? shape : shape_now_[static_cast<std::size_t>(shape)];
  }
  /// Whether a resource has failed whose activities give up some time. (A resource that fails
  /// without a failure timeout makes them wait for its repair, however long that takes.)
  bool any_failed() const { return failed_with_timeout_ > 0; }
  /// When an activity with these loads, which has stood still since `since`, gives up: infinite if
  /// none of its resources has failed with a finite failure timeout (the longest wait for a
  /// repair).
  double end_of_failure_timeout(std::span<const Load> loads, double since) const;
  /// The first of the loads' resources that has failed with a finite failure timeout.
  /// \pre there is one
  std::int32_t failed_resource(std::span<const Load> loads) const;

  /// Whether the slot's entry in the event queue is the end of its failure timeout, not of its
  /// work; false for a slot for which nothing was set.
  bool gives_up(std::int32_t slot) const {
    return static_cast<std::size_t>(slot) < gives_up_.size() &&
           gives_up_[static_cast<std::size_t>(slot)];
  }
  void set_gives_up(std::int32_t slot, bool gives_up);

  /// The slot of a background flow (Event::load); what was set last.
  /// \pre an event of the workload begins it, and its slot is set
  std::int32_t slot_of_background_flow(std::int32_t flow) const {
    return slot_of_background_flow_[static_cast<std::size_t>(flow)];
  }
  void set_slot_of_background_flow(std::int32_t flow, std::int32_t slot) {
    slot_of_background_flow_[static_cast<std::size_t>(flow)] = slot;
  }

 private:
  static constexpr std::int32_t kNoSlot = -1;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  struct Due {
    double time;
    std::int32_t event;      // index in events_
    std::int64_t times = 0;  // number of times that it has happened
  };

  void take(const Event& event);
  void change_capacity(std::int32_t resource);
  static bool later(const Due& a, const Due& b) {
    return a.time != b.time ? a.time > b.time : a.event > b.event;
  }

  std::span<const Event> events_;
  std::vector<Due> due_;  // heap, earliest first
  double next_time_ = kInfinity;
  double longest_period_ = 0;
  std::int64_t once_ = 0;  // number of due events that happen once
  Changes changes_;
  std::vector<std::int32_t> shape_now_;  // empty: no event changes shapes
  std::vector<double> capacity_;         // by resource, ignoring failures
  std::vector<std::int32_t> failures_;   // by resource: number of failures that are not repaired
  // by resource: how long activities wait for its repair; infinite if it works, or if they wait
  // without a limit
  std::vector<double> failure_timeout_;
  std::vector<double> failed_since_;  // by resource; meaningful if its failure timeout is finite
  std::int32_t failed_with_timeout_ = 0;  // number of resources with a finite failure timeout
  std::vector<bool> gives_up_;            // by slot
  std::vector<std::int32_t> slot_of_background_flow_;
};

/// The events of a workload that has none. It lacks the members of `Events` that such a run never
/// calls.
class NoEvents {
 public:
  static constexpr bool kAny = false;

  explicit NoEvents(const Workload&) {}
  static constexpr std::int32_t shape_now(std::int32_t shape) { return shape; }
};

}  // namespace foreshard::engine::internal
