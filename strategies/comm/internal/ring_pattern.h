/// \file
/// The pattern and the steps that the three ring collectives share.
#pragma once

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

/// The bytes go round the ring `rounds` times, less one hop each time: in each round every member
/// sends (p-1)/p of the bytes to its successor. The critical path is one chunk's: rounds x (p-1)
/// hops in a row, without the `rounds` adjacent hops that are shortest.
Result<Pattern> ring_pattern(const Participants& group, int rounds);

/// The messages round by round and step by step; in each step every member passes on one of p
/// chunks in each ring.
/// \param reduce_rounds  rounds that reduce (reduce-scatter); they come first.
Result<StepwiseCollective> ring_steps(const Participants& group, int reduce_rounds,
                                      int gather_rounds);

/// kUnsupported if a stepwise form of `messages` messages would be too large to write out.
Status too_many_messages(std::string_view algorithm, double messages);

}  // namespace foreshard::comm::internal
