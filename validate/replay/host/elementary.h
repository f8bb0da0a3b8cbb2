/// \file
/// Elementary functions as compilers can put them into vector loops: no branch, no table, no call.
#pragma once

#include <bit>
#include <cstdint>

namespace foreshard::replay::host {

/// e^x within 3e-7 relative, for |x| <= 87; beyond, the value at the end.
/// x = n ln 2 + r with |r| <= ln 2 / 2, e^r by its Taylor polynomial of degree 6.
inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 87.0F ? 87.0F : x;
  const float scaled = x * 1.44269504F;
  const auto n = static_cast<std::int32_t>(scaled + (scaled < 0.0F ? -0.5F : 0.5F));
  const auto whole = static_cast<float>(n);
  const float r = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;  // ln 2 in two parts
  float p = 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>((n + 127) << 23);
}

inline float sigmoid(float x) {
  return 1.0F / (1.0F + exponential(-x));
}
inline float tangent_hyperbolic(float x) {
  return 2.0F * sigmoid(2.0F * x) - 1.0F;
}

/// Well-mixed bits of a counter: what dropout draws from.
/// Source: the finaliser of MurmurHash3 (Appleby, 2011).
inline std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  x ^= x >> 16;
  return x;
}

}  // namespace foreshard::replay::host
