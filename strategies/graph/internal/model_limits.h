/// \file
/// Limits of a model that its file and a config.json share.
#pragma once

#include <cstdint>

namespace foreshard::internal {

/// Far more layers than any published model has. Lists with an entry for each layer stay small.
inline constexpr std::int64_t kMostLayers = std::int64_t{1} << 14;

}  // namespace foreshard::internal
