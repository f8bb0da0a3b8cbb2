/// \file
/// Algorithms that run in rounds: in each round some members send chunks to others, all at once.
/// The loads, the critical path and the messages follow from the rounds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

/// One message of a round; its chunks are first, first + step, ... modulo the number of chunks.
struct RoundMessage {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t first_chunk = 0;
  std::int32_t chunk_count = 1;
  std::int32_t chunk_step = 1;
  bool reduces = false;
};
struct Rounds {
  std::int32_t chunks = 1;
  std::vector<std::vector<RoundMessage>> rounds;
};

/// The same rounds backwards, with additions instead of copies: an all-gather becomes a
/// reduce-scatter.
Rounds reversed(Rounds rounds);
/// The rounds of `first`, then of `second`.
/// \pre equal numbers of chunks
Rounds joined(Rounds first, const Rounds& second);

/// The critical path has the longest hop of each round.
Result<Pattern> pattern_of(const Participants& group, const Rounds& rounds);
/// A message waits for all messages of the latest round in which its sender or its receiver took
/// part.
/// \return kUnsupported if there are too many.
Result<StepwiseCollective> steps_of(std::string_view algorithm, const Participants& group,
                                    const Rounds& rounds);

// All-gathers in log2 p rounds, for any number of members. Run backwards they are reduce-scatters.

/// Near members first: in round r every member has 2^r chunks and passes them to a member 2^r
/// places away. With 2^k members the two exchange their chunks (recursive doubling); else a member
/// sends to the one 2^r places before it and receives from the one 2^r places after it, modulo the
/// members (Bruck).
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
/// MPICH", IJHPCA 19(1), 2005, section 4.1.
Rounds near_first_all_gather(std::int32_t members);

/// Far members first: every chunk goes down a binomial tree of its own; all that the trees send
/// between two members in one round is one message. The last round, to the neighbour, moves most of
/// the bytes.
/// Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
/// 2025, arXiv:2506.20252.
Rounds far_first_all_gather(std::int32_t members);

}  // namespace foreshard::comm::internal
