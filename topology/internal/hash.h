/// \file
/// A mixing function that is the same on every machine (std::hash is not).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace foreshard::internal {

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: the output
/// function of SplitMix64, every input bit of which changes about half of the output's.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A number in [0, 1) that depends on all of `keys` and their order.
constexpr double unit_hash(std::initializer_list<std::uint64_t> keys) {
  std::uint64_t state = 0;
  for (const auto key : keys) state = mix(state ^ key);
  return static_cast<double>(state >> 11) * 0x1p-53;
}

}  // namespace foreshard::internal
