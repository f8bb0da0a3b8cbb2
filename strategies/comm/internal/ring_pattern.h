/// \file
/// What the three ring collectives share.
#pragma once

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

/// `rounds` times round the ring less one hop each: every member sends (p-1)/p of the bytes to its
/// successor in each round. The critical path is that of one chunk: rounds x (p-1) hops in a row,
/// which leave out the shortest `rounds` adjacent ones.
Result<Pattern> ring_pattern(const Participants& group, int rounds);

/// Round by round, step by step; in each step every member passes one of p chunks on in each ring.
/// \param reduce_rounds  how many of the rounds reduce (reduce-scatter); they come first.
Result<StepwiseCollective> ring_steps(const Participants& group, int reduce_rounds,
                                      int gather_rounds);

/// kUnsupported if a stepwise form would need more than `messages` of them at most.
Status too_many_messages(std::string_view algorithm, double messages);

}  // namespace foreshard::comm::internal
