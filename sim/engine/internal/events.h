/// \file
/// The events of a workload as a run meets them: what is due at an instant, and what has come of
/// those before. Most workloads have none: such a run uses `NoEvents`, whose answers are constants,
/// so that it costs nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/internal/plan.h"

namespace foreshard::engine::internal {

/// What the events of an instant change, beside what `Events` answers.
struct Changes {
  std::vector<std::pair<std::int32_t, double>> capacities;   ///< Resource, new capacity.
  std::vector<std::pair<std::int32_t, std::int32_t>> begun;  ///< Load, its shape.
  std::vector<std::int32_t> ended;                           ///< Loads.
  std::vector<std::int32_t> fates;  ///< Resources that failed, or do not any more.
  bool shapes = false;
};

class Events {
 public:
  static constexpr bool kAny = true;

  explicit Events(const Workload& workload);

  /// Whether all that is to come has happened before.
  bool only_repeats() const { return once_ == 0; }
  double longest_period() const { return longest_period_; }
  /// Of the next event; infinite after the last.
  double next_time() const { return next_time_; }

  /// Takes all events that are due by `time`.
  const Changes& take_until(double time);

  /// The shape in which activities that were added with `shape` run now.
  std::int32_t shape_now(std::int32_t shape) const {
    return shape_now_.empty() ? shape : shape_now_[static_cast<std::size_t>(shape)];
  }
  bool any_failed() const { return failed_ > 0; }
  /// When an activity with these loads, which stands still since then, gives up: infinite if no
  /// resource of it has failed.
  double end_of_patience(std::span<const Load> loads, double since) const;
  /// The first of the loads' resources that has failed.
  /// \pre there is one
  std::int32_t failed_resource(std::span<const Load> loads) const;

  /// Whether the slot's entry in the queue is the end of its patience.
  bool gives_up(std::int32_t slot) const {
    return static_cast<std::size_t>(slot) < gives_up_.size() &&
           gives_up_[static_cast<std::size_t>(slot)];
  }
  void set_gives_up(std::int32_t slot, bool gives_up);

  std::int32_t slot_of_load(std::int32_t load) const {
    return slot_of_load_[static_cast<std::size_t>(load)];
  }
  void set_slot_of_load(std::int32_t load, std::int32_t slot) {
    slot_of_load_[static_cast<std::size_t>(load)] = slot;
  }

 private:
  static constexpr std::int32_t kNoSlot = -1;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  struct Due {
    double time;
    std::int32_t event;
    std::int64_t times = 0;  // that it has happened before
  };

  void take(const Event& event);
  void change_capacity(std::int32_t resource);
  static bool later(const Due& a, const Due& b) {
    return a.time != b.time ? a.time > b.time : a.event > b.event;
  }

  std::span<const Event> events_;
  std::vector<Due> due_;  // a heap, earliest first
  double next_time_ = kInfinity;
  double longest_period_ = 0;
  std::int64_t once_ = 0;  // due ones that happen once
  Changes changes_;
  std::vector<std::int32_t> shape_now_;  // empty: none ever changes
  std::vector<double> capacity_;         // by resource, as if it never failed
  std::vector<std::int32_t> failures_;   // by resource, those that are not repaired
  std::vector<double> patience_;         // by resource; infinite if it has not failed
  std::vector<double> failed_since_;     // by resource, if its patience is finite
  std::int32_t failed_ = 0;              // resources with a finite patience
  std::vector<bool> gives_up_;
  std::vector<std::int32_t> slot_of_load_;
};

/// Of a workload without any. What is not here is never asked.
class NoEvents {
 public:
  static constexpr bool kAny = false;

  explicit NoEvents(const Workload&) {}
  static constexpr std::int32_t shape_now(std::int32_t shape) { return shape; }
};

}  // namespace foreshard::engine::internal
