/// \file
/// The simulated times at which the results of a rank's communications arrive. A replay of the rank
/// alone needs them.
#pragma once

#include <cstdint>

#include "base/result.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"
#include "validate/measurement/arrivals.h"

namespace foreshard::compare {

/// \param prediction  a prediction of this Program, with its time line.
/// \return kInvalidInput if the Program has no such rank, or the predicted step never ends.
Result<measure::Arrivals> arrivals_of(const program::Program& program,
                                      const sim::Prediction& prediction, std::int64_t rank);

}  // namespace foreshard::compare
