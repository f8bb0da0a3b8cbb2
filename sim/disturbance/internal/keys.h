/// \file
/// Purposes of random numbers: numbers drawn for different purposes do not depend on each other.
#pragma once

#include <cstdint>

namespace foreshard::disturbance::internal {

inline constexpr std::uint64_t kChoice = 1;  ///< Choice of the devices that are stragglers.
inline constexpr std::uint64_t kSpeed = 2;   ///< Speeds of stragglers.
inline constexpr std::uint64_t kJitter = 3;  ///< Times of kernels.

}  // namespace foreshard::disturbance::internal
