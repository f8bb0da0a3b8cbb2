/// \file
/// Hashes of the properties that tell things apart.
#pragma once

#include <bit>
#include <cstdint>

#include "base/hash.h"

namespace foreshard::sim::internal {

constexpr std::uint64_t joined(std::uint64_t seed, std::uint64_t value) {
  return mixed(seed ^ mixed(value));
}
/// Rounds a number: numbers that symmetry makes equal may differ in their last bits, by the order
/// of a sum.
inline std::uint64_t rounded(double value) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value)));
}

}  // namespace foreshard::sim::internal
