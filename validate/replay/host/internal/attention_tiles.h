// Sizes of attention's tiles: two score tiles of fp32 (256 KiB) stay in a core's second-level cache
// beside the rows of Q, K and V that make them.
#pragma once

#include <cstdint>

namespace foreshard::replay::host::internal {

inline constexpr std::int64_t kQueryTile = 128;
inline constexpr std::int64_t kKeyTile = 256;

}  // namespace foreshard::replay::host::internal
