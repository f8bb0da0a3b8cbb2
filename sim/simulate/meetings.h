/// \file
/// Meetings: communications that all ranks take part in, as for the norm of the gradients. Nearly
/// always every rank waits for one before it goes on, so that a meeting has the network to itself.
/// Then its rate is that on idle links, whichever they are, and folding (fold.h) can do without
/// them: a tree over all ranks loads each rank's links differently, and would tell ranks apart that
/// do the same all through the step.
///
/// **Why it is exact.** Whether a meeting is alone is not known before the run, so it is taken for
/// granted and looked up on the time line. Suppose that it was alone whenever it ran. Then at each
/// instant the rates were those of max-min with its links: while it ran nobody else was on them,
/// and otherwise it was not. Max-min rates are unique, so this is the time line with its links too.
#pragma once

#include <vector>

#include "sim/simulate/build.h"

namespace foreshard::sim {

/// Per communicator, whether it is a meeting: it has all ranks of the Program. What one rank does
/// with its host goes on beside others.
std::vector<bool> meetings_of(const program::Program& program, const Communicators& communicators);

/// Whether each operation of `folding.meets_alone` ran while no other communication did.
/// Cost: O(activities).
bool met_alone(const Folding& folding, const BuiltWorkload& built, const engine::Timeline& times);

}  // namespace foreshard::sim
