/// \file
/// Mixing functions that are the same on every machine (std::hash is not).
#pragma once

#include <cstdint>

namespace foreshard {

/// SplitMix64's finaliser: one-to-one, and every bit of `x` changes about half of the result's.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
constexpr std::uint64_t finalised(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The number that SplitMix64 draws in state `x`. Unlike the finaliser, it does not map 0 to 0.
constexpr std::uint64_t mixed(std::uint64_t x) {
  return finalised(x + 0x9e3779b97f4a7c15u);
}

}  // namespace foreshard
