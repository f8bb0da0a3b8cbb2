/// \file
/// Neighbours in an array as a pass reads and writes them: several at once, arithmetic in fp32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validate/replay/pass/elementary.h"

namespace foreshard::replay {

/// Elements that a GPU's thread takes at once: at most two accesses of 16 bytes each of fp32.
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

/// `kCount` neighbours; 16 bytes are one access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount > 16 ? 16 : sizeof(T) * kCount) Pack {
  T value[kCount];
};

/// How T becomes fp32, and fp32 T. Another for types that have no conversions.
template <class T>
struct Conversion {
  FORESHARD_DEVICE static float read(T number) { return static_cast<float>(number); }
  FORESHARD_DEVICE static T write(float number) { return T(number); }
};

/// \pre `from` is aligned to the pack, if it is one: longer stretches are read one by one.
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

/// As load().
template <int kCount, class T>
FORESHARD_DEVICE void store(T* __restrict__ to, const float (&values)[kCount]) {
  if constexpr (kCount > kPack)
    for (int i = 0; i < kCount; ++i) to[i] = Conversion<T>::write(values[i]);
  else
    *reinterpret_cast<Pack<T, kCount>*>(to) = packed<T>(values);
}

}  // namespace foreshard::replay
