/// \file
/// Hashes that stand for what tells things apart.
#pragma once

#include <bit>
#include <cstdint>

namespace foreshard::sim::internal {

/// Finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t joined(std::uint64_t seed, std::uint64_t value) {
  return mixed(seed ^ mixed(value));
}
/// Numbers that symmetry makes equal may differ in their last bits, by the order of a sum.
inline std::uint64_t rounded(double value) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value)));
}

}  // namespace foreshard::sim::internal
