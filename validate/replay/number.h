/// \file
/// How numbers of each dtype are stored, and their conversion to and from fp32: the host computes
/// and adds in fp32 and rounds to the dtype (nearest, ties to even) when it stores.
///
/// bf16 is the upper half of an fp32; fp16 is IEEE 754 binary16; fp8 is E4M3 (4 bits of exponent,
/// 3 of significand, largest 448, no infinity). tf32 is stored and computed as fp32.
/// Source: IEEE 754-2019; Micikevicius et al., "FP8 formats for deep learning", 2022.
#pragma once

#include <bit>
#include <cstdint>

#include "base/check.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};
struct Fp8 {
  std::uint8_t bits;
};

inline float to_float(float x) {
  return x;
}
inline float to_float(std::int8_t x) {
  return static_cast<float>(x);
}
inline float to_float(std::int32_t x) {
  return static_cast<float>(x);
}
inline float to_float(std::int64_t x) {
  return static_cast<float>(x);
}
inline float to_float(Bf16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
/// Moves the exponent to its place in fp32 and corrects the bias by a multiplication. This is
/// exact, also for subnormal numbers. Infinities and NaN become large finite numbers.
inline float to_float(Fp16 x) {
  const std::uint32_t magnitude = std::uint32_t{x.bits} & 0x7fffU;
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return (x.bits & 0x8000U) != 0 ? -value : value;
}
inline float to_float(Fp8 x) {
  const std::uint32_t magnitude = std::uint32_t{x.bits} & 0x7fU;
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
  return (x.bits & 0x80U) != 0 ? -value : value;
}

inline void store(float value, float& out) {
  out = value;
}
inline void store(float value, std::int8_t& out) {
  out = static_cast<std::int8_t>(static_cast<std::int32_t>(value));
}
inline void store(float value, std::int32_t& out) {
  out = static_cast<std::int32_t>(value);
}
inline void store(float value, std::int64_t& out) {
  out = static_cast<std::int64_t>(value);
}
inline void store(float value, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  out.bits = static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

namespace internal {
/// Rounds to `Fraction` bits of significand and `Exponent` bits of exponent, without infinities:
/// larger magnitudes become `largest`.
template <int Fraction, int Exponent>
std::uint32_t rounded(float value, std::uint32_t largest) {
  constexpr int kBias = (1 << (Exponent - 1)) - 1;
  constexpr int kDrop = 23 - Fraction;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 31) << (Fraction + Exponent);
  // Magnitudes below the target's smallest normal number are rounded to a multiple of its smallest
  // subnormal number.
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(127 - kBias + 1) << 23;
  std::uint32_t out = 0;
  if (magnitude < kSmallestNormal) {
    const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(127 + kBias - 1 + Fraction)
                                            << 23);  // 1 / smallest subnormal
    const float scaled = std::bit_cast<float>(magnitude) * unit;
    const auto whole = static_cast<std::uint32_t>(scaled);
    const float rest = scaled - static_cast<float>(whole);
    out = whole + (rest > 0.5F || (rest == 0.5F && (whole & 1U) != 0) ? 1U : 0U);
  } else {
    const std::uint32_t even = (magnitude >> kDrop) & 1U;
    const std::uint32_t half = (1U << (kDrop - 1)) - 1U;
    out = ((magnitude + half + even) >> kDrop) -
          (static_cast<std::uint32_t>(127 - kBias) << Fraction);
  }
  return sign | (out < largest ? out : largest);
}
}  // namespace internal

/// Magnitudes above 65504 become 65504.
inline void store(float value, Fp16& out) {
  out.bits = static_cast<std::uint16_t>(internal::rounded<10, 5>(value, 0x7bffU));
}
/// Magnitudes above 448 become 448.
inline void store(float value, Fp8& out) {
  out.bits = static_cast<std::uint8_t>(internal::rounded<3, 4>(value, 0x7eU));
}

/// Calls `use` with a value of the type in which `dtype` is stored.
template <class Use>
auto with_storage(DType dtype, Use use) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return use(float{});
    case DType::kFp16:
      return use(Fp16{});
    case DType::kBf16:
      return use(Bf16{});
    case DType::kFp8:
      return use(Fp8{});
    case DType::kFp4:  // refused before anything runs
      break;
    case DType::kInt8:
      return use(std::int8_t{});
    case DType::kInt32:
      return use(std::int32_t{});
    case DType::kInt64:
      return use(std::int64_t{});
  }
  FORESHARD_CHECK(false && "every dtype has its storage");
  return use(float{});
}

}  // namespace foreshard::replay
