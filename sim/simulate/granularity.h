/// \file
/// Warnings of a prediction about collectives that are simulated message by message: where their
/// times differ from one activity per collective (Granularity::kFlat).
#pragma once

#include <vector>

#include "base/result.h"

#include "sim/simulate/forms.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim {

/// Nothing for kFlat. Otherwise:
///  - SimGrid cannot do it in another way, if it is the engine;
///  - kernels gain time, since messages hold no multiprocessors;
///  - the forms of the step whose time on idle links differs, each with both times.
///
/// Cost: the messages of one operation of each such form.
/// \return The errors of MessageWriter::write.
Result<std::vector<Warning>> granularity_warnings(const ClusterView& cluster,
                                                  const program::Program& program,
                                                  const Communicators& communicators,
                                                  const CommunicatorForms& forms,
                                                  const SimulateOptions& options);

}  // namespace foreshard::sim
