/// \file
/// Attributes each instant of a rank's time, from 0 to an end, to exactly one activity (compare.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace foreshard::compare {

/// An activity. An instant is booked under the active interval with the lowest priority number; a
/// tie goes to the interval listed first.
struct Interval {
  Seconds begin{};
  Seconds end{};
  std::int32_t priority = 0;
};

struct Booking {
  std::vector<Seconds> of_interval{};  ///< Time booked under each interval.
  Seconds nothing{};                   ///< Time during which no interval was active.
};

/// Books the time from 0 to `end`. Intervals may overlap, be empty, or end after `end`, where they
/// are cut off. Cost: O(n log n).
Booking book(std::span<const Interval> intervals, Seconds end);

}  // namespace foreshard::compare
