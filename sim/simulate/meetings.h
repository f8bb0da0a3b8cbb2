/// \file
/// Meetings: communications of all ranks, for example for the norm of the gradients. Nearly always
/// every rank waits for one before it continues, so a meeting has the network to itself. Its rate
/// is then the rate on idle links, whichever links it uses, and folding (fold.h) can ignore
/// meetings: a tree over all ranks loads each rank's links differently, and would separate ranks
/// that do the same throughout the step.
///
/// **Why it is exact.** Whether a meeting is alone is not known before the run, so it is assumed,
/// and checked on the timeline. Suppose that it was alone whenever it ran. Then at each instant the
/// rates were max-min rates with its links included: while it ran nobody else used these links, and
/// at other times it did not use them. Max-min rates are unique, so this is also the timeline with
/// its links.
#pragma once

#include <vector>

#include "sim/simulate/build.h"

namespace foreshard::sim {

/// communicator -> whether it is a meeting: it has all ranks of the Program and is no communication
/// with the host, which other ones run alongside.
std::vector<bool> meetings_of(const program::Program& program, const Communicators& communicators);

/// Whether each operation of `folding.meets_alone` ran while no other communication ran.
/// Cost: O(activities).
bool met_alone(const Folding& folding, const BuiltWorkload& built, const engine::Timeline& times);

}  // namespace foreshard::sim
