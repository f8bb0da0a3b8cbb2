// Sizes of attention's tiles. Two score tiles in fp32 (256 KiB) stay in a core's second-level
// cache, together with the rows of Q, K and V from which they are computed.
#pragma once

#include <cstdint>

namespace foreshard::replay::host::internal {

inline constexpr std::int64_t kQueryTile = 128;
inline constexpr std::int64_t kKeyTile = 256;

}  // namespace foreshard::replay::host::internal
