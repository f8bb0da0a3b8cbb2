/// \file
/// A rank's time from 0 to an end, each instant booked once (compare.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace foreshard::compare {

/// Something that goes on. The lowest priority number that does at an instant has it; of equals,
/// the one listed first.
struct Interval {
  Seconds begin{};
  Seconds end{};
  std::int32_t priority = 0;
};

struct Booking {
  std::vector<Seconds> of_interval{};  ///< Time booked under each.
  Seconds nothing{};                   ///< When none went on.
};

/// Cost: O(n log n). Intervals may overlap, be empty, or end after `end`: what lies beyond is cut
/// off.
Booking book(std::span<const Interval> intervals, Seconds end);

}  // namespace foreshard::compare
