/// \file
/// What random numbers are for: numbers of different kinds do not depend on each other.
#pragma once

#include <cstdint>

namespace foreshard::disturbance::internal {

inline constexpr std::uint64_t kChoice = 1;  ///< Which devices are stragglers.
inline constexpr std::uint64_t kSpeed = 2;   ///< Their speeds.
inline constexpr std::uint64_t kJitter = 3;  ///< Times of kernels.

}  // namespace foreshard::disturbance::internal
