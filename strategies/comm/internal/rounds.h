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

}  // namespace foreshard::comm::internal
