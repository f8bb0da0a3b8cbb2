/// \file
/// Both time lines of a step in one form: per rank and instance, when the rank reached it, when it
/// began and when it ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/program.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare {

struct Times {
  Seconds reached{};
  /// Of a communication, when its last member reached it. Else `reached`.
  Seconds begin{};
  Seconds finish{};
  /// Of a communication, from its beginning to the finish of its last member. Else finish - begin.
  Seconds lasted{};
};

/// One rank's part.
struct RankTimes {
  std::int32_t rank = 0;
  std::size_t role = 0;
  std::vector<Times> predicted{};  ///< By instance.
  std::vector<Times> measured{};
};

/// An operation: its members' instances.
struct Operation {
  struct Member {
    std::size_t place = 0;  ///< Index into Timelines::ranks.
    std::size_t instance = 0;
  };
  std::vector<Member> members{};
};

struct Timelines {
  std::vector<program::Expansion> expansions{};  ///< By role; empty for roles without a rank here.
  std::vector<RankTimes> ranks{};
  std::vector<Operation> operations{};  ///< Empty for one rank alone.
};

/// \pre the measurement is of the program (compare.h); the prediction has its time line.
Timelines timelines_of(const program::Program& program, const sim::Prediction& prediction,
                       const measure::Measurement& measurement);

}  // namespace foreshard::compare
