#include "strategies/comm/internal/doubling.h"

#include <algorithm>
#include <bit>

namespace foreshard::comm::internal {

Rounds near_first_all_gather(std::int32_t members) {
  Rounds result{.chunks = members, .rounds = {}};
  const bool is_power = std::has_single_bit(static_cast<std::uint32_t>(members));
  for (std::int32_t distance = 1; distance < members; distance *= 2) {
    auto& round = result.rounds.emplace_back();
    for (std::int32_t i = 0; i < members; ++i) {
      if (is_power) {
        round.push_back({.from = i,
                         .to = i ^ distance,
                         .first_chunk = i / distance * distance,
                         .chunk_count = distance});
      } else {
        round.push_back({.from = i,
                         .to = (i + members - distance) % members,
                         .first_chunk = i,
                         .chunk_count = std::min(distance, members - distance)});
      }
    }
  }
  return result;
}

Rounds far_first_all_gather(std::int32_t members) {
  Rounds result{.chunks = members, .rounds = {}};
  const auto count = static_cast<std::uint32_t>(members);
  for (auto distance = static_cast<std::int32_t>(std::bit_ceil(count) / 2); distance >= 1;
       distance /= 2) {
    // A member v places after a chunk's owner has it if v is a multiple of 2 x distance; it passes
    // on the chunks whose next place is still inside the ring.
    const std::int32_t stride = 2 * distance;
    const std::int32_t chunks = (members - distance - 1) / stride + 1;
    auto& round = result.rounds.emplace_back();
    for (std::int32_t i = 0; i < members; ++i)
      round.push_back({.from = i,
                       .to = (i + distance) % members,
                       .first_chunk = i,
                       .chunk_count = chunks,
                       .chunk_step = members - stride % members});
  }
  return result;
}

}  // namespace foreshard::comm::internal
