/// \file
/// What a prediction says of collectives that went message by message: where that differs from one
/// activity for each (Granularity::kFlat).
#pragma once

#include <vector>

#include "base/result.h"

#include "sim/simulate/forms.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim {

/// Nothing for kFlat. Else
///  - that SimGrid has no other way, if it is the engine;
///  - what kernels gain, since messages hold no multiprocessors;
///  - the forms of the step that take another time on idle links, each with both times.
/// Cost: the messages of one operation of each such form.
/// \return as MessageWriter::write.
Result<std::vector<Warning>> granularity_warnings(const ClusterView& cluster,
                                                  const program::Program& program,
                                                  const Communicators& communicators,
                                                  const CommunicatorForms& forms,
                                                  const SimulateOptions& options);

}  // namespace foreshard::sim
