/// \file
/// The predicted and the measured time line of a step in the same form: for each rank and instance,
/// when the rank reached it, when it began and when it ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/program.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare {

struct Times {
  Seconds reached{};
  /// Communication: when its last member reached it. Other tasks: `reached`.
  Seconds begin{};
  Seconds finish{};
  /// Communication: from its beginning to its last member's finish. Other tasks: finish - begin.
  Seconds lasted{};
};

/// Both time lines of one rank, one entry per instance.
struct RankTimes {
  std::int32_t rank = 0;
  std::size_t role = 0;
  std::vector<Times> predicted{};
  std::vector<Times> measured{};
};

/// One communication: the instances of its members.
struct Operation {
  struct Member {
    std::size_t place = 0;  ///< Index into Timelines::ranks.
    std::size_t instance = 0;
  };
  std::vector<Member> members{};
};

struct Timelines {
  std::vector<program::Expansion> expansions{};  ///< One per role; empty if it has no rank here.
  std::vector<RankTimes> ranks{};
  std::vector<Operation> operations{};  ///< Empty if one rank was replayed alone.
};

/// \pre the measurement is of the program (compare.h); the prediction has its time line.
Timelines timelines_of(const program::Program& program, const sim::Prediction& prediction,
                       const measure::Measurement& measurement);

/// An activity of a rank, for book(). An instant is booked under the active interval with the
/// lowest priority number; a tie goes to the interval listed first.
struct Interval {
  Seconds begin{};
  Seconds end{};
  std::int32_t priority = 0;
};

struct Booking {
  std::vector<Seconds> of_interval{};  ///< Time booked under each interval.
  Seconds nothing{};                   ///< Time during which no interval was active.
};

/// Attributes each instant from 0 to `end` to exactly one activity. Intervals may overlap, be
/// empty, or end after `end`, where they are cut off. Cost: O(n log n).
Booking book(std::span<const Interval> intervals, Seconds end);

/// The simulated times at which the results of a rank's communications arrive. A replay of the rank
/// alone needs them.
/// \param prediction  a prediction of this Program, with its time line.
/// \return kInvalidInput if the Program has no such rank, or the predicted step never ends.
Result<measure::Arrivals> arrivals_of(const program::Program& program,
                                      const sim::Prediction& prediction, std::int64_t rank);

}  // namespace foreshard::compare
