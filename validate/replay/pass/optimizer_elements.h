/// \file
/// Bodies of the passes that update parameters: Adam, with states of any size, LAMB and momentum.
/// Part of elements.h, which says how bodies are called.
#pragma once

#include <cmath>
#include <cstdint>

#include "validate/replay/pass/packs.h"

namespace foreshard::replay {

/// Updates the first and second moments of kCount gradients `d`. It takes |v|, because the second
/// moment may be in memory where another kernel left its numbers.
template <int kCount>
FORESHARD_DEVICE void update_moments(const float (&d)[kCount], float (&m)[kCount],
                                     float (&v)[kCount]) {
  constexpr float kBeta1 = 0.9F;
  constexpr float kBeta2 = 0.95F;
  for (int e = 0; e < kCount; ++e) {
    m[e] = kBeta1 * m[e] + (1.0F - kBeta1) * d[e];
    v[e] = kBeta2 * fabsf(v[e]) + (1.0F - kBeta2) * d[e] * d[e];
  }
}

/// AdamW with usual constants and without bias correction, which is a factor of the rate. Source:
/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019), algorithm 2.
template <class T>
struct Adam {
  const float* g;
  float* parameter;
  float* first;
  float* second;
  T* copy;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    constexpr float kRate = 1e-4F;
    constexpr float kEpsilon = 1e-8F;
    constexpr float kDecay = 0.1F;
    float d[kCount];
    float p[kCount];
    float m[kCount];
    float v[kCount];
    load(d, g + i);
    load(p, parameter + i);
    load(m, first + i);
    load(v, second + i);
    update_moments(d, m, v);
    for (int e = 0; e < kCount; ++e)
      p[e] -= kRate * (m[e] / (sqrtf(v[e]) + kEpsilon) + kDecay * p[e]);
    store(parameter + i, p);
    store(first + i, m);
    store(second + i, v);
    store(copy + i, p);
  }
};

/// Adam's memory traffic with states of other sizes: arrays of four bytes per element, the first of
/// which is the parameter, and arrays of one byte per element.
template <class T>
struct PackedAdam {
  static constexpr int kMostWide = 16;
  static constexpr int kMostNarrow = 3;
  const float* g;
  T* copy;
  int wide_count;
  int narrow_count;
  float* wide[kMostWide];
  std::uint8_t* narrow[kMostNarrow];
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    constexpr float kBeta = 0.9F;
    float d[kCount];
    float s[kCount] = {};
    load(d, g + i);
    for (int a = 0; a < narrow_count; ++a) {
      load(s, narrow[a] + i);
      store(narrow[a] + i, s);
    }
    for (int a = wide_count - 1; a >= 0; --a) {
      load(s, wide[a] + i);
      for (int e = 0; e < kCount; ++e) s[e] = kBeta * s[e] + (1.0F - kBeta) * d[e];
      store(wide[a] + i, s);
    }
    store(copy + i, s);
  }
};

template <class T>
struct LambUpdate {
  const float* g;
  const float* parameter;
  float* first;
  float* second;
  float* direction;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    constexpr float kEpsilon = 1e-6F;
    constexpr float kDecay = 0.1F;
    float d[kCount];
    float p[kCount];
    float m[kCount];
    float v[kCount];
    load(d, g + i);
    load(p, parameter + i);
    load(m, first + i);
    load(v, second + i);
    update_moments(d, m, v);
    for (int e = 0; e < kCount; ++e) d[e] = m[e] / (sqrtf(v[e]) + kEpsilon) + kDecay * p[e];
    store(first + i, m);
    store(second + i, v);
    store(direction + i, d);
  }
};

template <class T>
struct LambApply {
  float* parameter;
  const float* direction;
  T* copy;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    constexpr float kRate = 1e-3F;  // times the ratio of the tensor's norms
    float p[kCount];
    float d[kCount];
    load(p, parameter + i);
    load(d, direction + i);
    for (int e = 0; e < kCount; ++e) p[e] -= kRate * d[e];
    store(parameter + i, p);
    store(copy + i, p);
  }
};

template <class T>
struct Momentum {
  const float* g;
  float* parameter;
  float* moment;
  T* copy;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    constexpr float kRate = 1e-2F;
    constexpr float kBeta = 0.9F;
    float d[kCount];
    float p[kCount];
    float m[kCount];
    load(d, g + i);
    load(p, parameter + i);
    load(m, moment + i);
    for (int e = 0; e < kCount; ++e) {
      m[e] = kBeta * m[e] + d[e];
      p[e] -= kRate * m[e];
    }
    store(parameter + i, p);
    store(moment + i, m);
    store(copy + i, p);
  }
};

}  // namespace foreshard::replay
