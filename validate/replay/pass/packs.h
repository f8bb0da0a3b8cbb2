/// \file
/// Packs of neighbouring elements, which a pass reads and writes at once; arithmetic is in fp32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validate/replay/pass/elementary.h"

namespace foreshard::replay {

/// Elements that a GPU thread takes at once; in fp32 these are two accesses of 16 bytes.
constexpr int kPack = 8;

struct Add {
  template <class T>
  FORESHARD_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <class T>
  FORESHARD_DEVICE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// `kCount` neighbouring elements; 16 bytes are one access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount > 16 ? 16 : sizeof(T) * kCount) Pack {
  T value[kCount];
};

/// Conversion of T to and from fp32. Specialised for types without C++ conversions.
template <class T>
struct Conversion {
  FORESHARD_DEVICE static float read(T number) { return static_cast<float>(number); }
  FORESHARD_DEVICE static T write(float number) { return T(number); }
};

/// Reads kCount neighbouring elements. More than kPack elements are read one by one.
/// \pre `from` is aligned to the pack, if kCount <= kPack.
template <int kCount, class T>
FORESHARD_DEVICE void load(float (&out)[kCount], const T* __restrict__ from) {
  if constexpr (kCount > kPack) {
    for (int i = 0; i < kCount; ++i) out[i] = Conversion<T>::read(from[i]);
  } else {
    const auto pack = *reinterpret_cast<const Pack<T, kCount>*>(from);
    for (int i = 0; i < kCount; ++i) out[i] = Conversion<T>::read(pack.value[i]);
  }
}

template <class T, int kCount>
FORESHARD_DEVICE Pack<T, kCount> packed(const float (&values)[kCount]) {
  Pack<T, kCount> pack;
  for (int i = 0; i < kCount; ++i) pack.value[i] = Conversion<T>::write(values[i]);
  return pack;
}

/// Writes kCount neighbouring elements, with the rules of load().
template <int kCount, class T>
FORESHARD_DEVICE void store(T* __restrict__ to, const float (&values)[kCount]) {
  if constexpr (kCount > kPack)
    for (int i = 0; i < kCount; ++i) to[i] = Conversion<T>::write(values[i]);
  else
    *reinterpret_cast<Pack<T, kCount>*>(to) = packed<T>(values);
}

}  // namespace foreshard::replay
