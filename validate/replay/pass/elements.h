/// \file
/// The mathematics of passes that work on each element, or each pair of elements, separately; both
/// executors use it. A body has `template <int kCount> void run(int64 index) const`, which handles
/// kCount neighbours from `index` on. The executor divides the work.
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/pass/operands.h"
#include "validate/replay/pass/optimizer_elements.h"
#include "validate/replay/pass/packs.h"

namespace foreshard::replay {

/// A permutation of rows that jumps through memory. 2654435761 is a prime, so it reaches every row
/// once.
FORESHARD_DEVICE std::int64_t permuted(std::int64_t row, std::int64_t rows) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(row) * 2654435761U %
                                   static_cast<std::uint64_t>(rows));
}

constexpr float kKeep = 0.9F;  ///< Dropout's keep probability; any value moves the same bytes.

/// Whether dropout keeps the element: a hash of its index. It is counter-based, like the dropout of
/// frameworks, so no state is read.
FORESHARD_DEVICE bool kept(std::int64_t element) {
  auto h = static_cast<std::uint32_t>(element) ^ static_cast<std::uint32_t>(element >> 32);
  h = (h ^ (h >> 16)) * 0x7feb352dU;
  h = (h ^ (h >> 15)) * 0x846ca68bU;
  h ^= h >> 16;
  return static_cast<float>(h >> 8) * 0x1p-24F < kKeep;
}

/// The tanh approximation of GELU, which is x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
/// Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2.
struct Gelu {
  static constexpr float kRoot = 1.5957691216F;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.044715F;
  FORESHARD_DEVICE static float gate(float x) { return sigmoid(kRoot * (x + kCubic * x * x * x)); }
  FORESHARD_DEVICE float operator()(float x) const { return x * gate(x); }
};
struct GeluBackward {
  FORESHARD_DEVICE float operator()(float dy, float x) const {
    const float s = Gelu::gate(x);
    return dy * (s + x * s * (1.0F - s) * Gelu::kRoot * (1.0F + 3.0F * Gelu::kCubic * x * x));
  }
};
/// ReLU, which represents all unary operations.
struct Relu {
  FORESHARD_DEVICE float operator()(float x) const { return x > 0.0F ? x : 0.0F; }
};
struct Same {
  FORESHARD_DEVICE float operator()(float x) const { return x; }
};
struct Sum {
  FORESHARD_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct MultiplyAdd {
  FORESHARD_DEVICE float operator()(float a, float b, float c) const { return a * b + c; }
};
struct Swiglu {
  FORESHARD_DEVICE float operator()(float gate, float up) const {
    return gate * sigmoid(gate) * up;
  }
};
struct DropoutBackward {
  FORESHARD_DEVICE float operator()(float dy, float mask) const { return dy * mask / kKeep; }
};

template <class F, class X, class Y>
struct Map1 {
  const X* x;
  Y* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    load(a, x + i);
    for (int e = 0; e < kCount; ++e) a[e] = F()(a[e]);
    store(y + i, a);
  }
};
template <class X, class Y>
struct CopyTwice {
  const X* x;
  Y* y1;
  Y* y2;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    load(a, x + i);
    store(y1 + i, a);
    store(y2 + i, a);
  }
};
/// The code of a number in fp4 (1 bit of sign, 2 of exponent, 1 of mantissa), rounded to the
/// nearest number, ties to even. Source: Open Compute Project, "OCP Microscaling Formats (MX)
/// Specification", section 5.3.3.
FORESHARD_DEVICE int fp4_code(float x) {
  const float size = fabsf(x);
  const int code = (size > 0.25F) + (size >= 0.75F) + (size > 1.25F) + (size >= 1.75F) +
                   (size > 2.5F) + (size >= 3.5F) + (size > 5.0F);
  return x < 0.0F ? code + 8 : code;
}
/// Quantises to fp4. Byte i holds elements 2 i (in its lower half) and 2 i + 1; with an odd number
/// of elements the last one is left out.
template <class X>
struct QuantizeFp4 {
  const X* x;
  std::uint8_t* y;
  template <int kCount>
  FORESHARD_DEVICE static void codes_of(const X* x, std::int64_t i, float (&codes)[kCount]) {
    float a[2][kCount];
    load(a[0], x + 2 * i);
    load(a[1], x + 2 * i + kCount);
    for (int e = 0; e < kCount; ++e) {
      const auto at = [&](int n) { return a[n / kCount][n % kCount]; };
      codes[e] = static_cast<float>(fp4_code(at(2 * e)) + 16 * fp4_code(at(2 * e + 1)));
    }
  }
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float codes[kCount];
    codes_of<kCount>(x, i, codes);
    store(y + i, codes);
  }
};
/// Same as QuantizeFp4, with two copies of the result.
template <class X>
struct QuantizeFp4Twice {
  const X* x;
  std::uint8_t* y1;
  std::uint8_t* y2;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float codes[kCount];
    QuantizeFp4<X>::template codes_of<kCount>(x, i, codes);
    store(y1 + i, codes);
    store(y2 + i, codes);
  }
};
/// Unpacks two numbers per byte. It uses evenly spaced numbers, which nf4's are not; looking them
/// up in a table of 16 would take no longer.
template <class Y>
struct DequantizeNf4 {
  const std::uint8_t* x;
  Y* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float codes[kCount];
    load(codes, x + i);
    float a[2][kCount];
    for (int e = 0; e < kCount; ++e) {
      const int code = static_cast<int>(codes[e]);
      const int low = code % 16;
      const int high = code / 16;
      a[2 * e / kCount][2 * e % kCount] = static_cast<float>(low - 8);
      a[(2 * e + 1) / kCount][(2 * e + 1) % kCount] = static_cast<float>(high - 8);
    }
    store(y + 2 * i, a[0]);
    store(y + 2 * i + kCount, a[1]);
  }
};
template <class F, class X1, class X2, class Y>
struct Map2 {
  const X1* x1;
  const X2* x2;
  Y* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float b[kCount];
    load(a, x1 + i);
    load(b, x2 + i);
    for (int e = 0; e < kCount; ++e) a[e] = F()(a[e], b[e]);
    store(y + i, a);
  }
};
template <class F, class T>
struct Map3 {
  const T* x1;
  const T* x2;
  const T* x3;
  T* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float b[kCount];
    float c[kCount];
    load(a, x1 + i);
    load(b, x2 + i);
    load(c, x3 + i);
    for (int e = 0; e < kCount; ++e) a[e] = F()(a[e], b[e], c[e]);
    store(y + i, a);
  }
};

template <class T>
struct SwigluBackward {
  const T* dy;
  const T* gate;
  const T* up;
  T* d_gate;
  T* d_up;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float d[kCount];
    float g[kCount];
    float u[kCount];
    load(d, dy + i);
    load(g, gate + i);
    load(u, up + i);
    for (int e = 0; e < kCount; ++e) {
      const float s = sigmoid(g[e]);
      const float silu = g[e] * s;
      const float slope = s + silu * (1.0F - s);
      g[e] = d[e] * u[e] * slope;
      u[e] = d[e] * silu;
    }
    store(d_gate + i, g);
    store(d_up + i, u);
  }
};

template <class T>
struct BiasAdd {
  const T* x;
  const T* bias;
  T* y;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float b[kCount];
    load(a, x + i);
    load(b, bias + i % columns);
    for (int e = 0; e < kCount; ++e) a[e] += b[e];
    store(y + i, a);
  }
};

template <class T>
struct Dropout {
  const T* x;
  T* y;
  std::uint8_t* mask;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float m[kCount];
    load(a, x + i);
    for (int e = 0; e < kCount; ++e) {
      m[e] = kept(i + e) ? 1.0F : 0.0F;
      a[e] = a[e] * m[e] / kKeep;
    }
    store(y + i, a);
    store(mask + i, m);
  }
};

template <class T>
struct BiasDropoutAdd {
  const T* x;
  const T* residual;
  const T* bias;
  T* y;
  std::uint8_t* mask;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float r[kCount];
    float b[kCount];
    float m[kCount];
    load(a, x + i);
    load(r, residual + i);
    load(b, bias + i % columns);
    for (int e = 0; e < kCount; ++e) {
      m[e] = kept(i + e) ? 1.0F : 0.0F;
      a[e] = (a[e] + b[e]) * m[e] / kKeep + r[e];
    }
    store(y + i, a);
    store(mask + i, m);
  }
};

/// Rotates the pairs (j, j + head / 2) of each head. `table` has, for each row, head / 2 cosines
/// and then head / 2 sines. Source: Su et al., "RoFormer" (2021), equation 34, with halves as in
/// GPT-NeoX.
template <class T>
struct Rope {
  const T* x;
  const float* table;
  T* y;
  std::int64_t columns;
  std::int64_t head;
  float sign;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t pair) const {
    const std::int64_t half = head / 2;
    const std::int64_t pairs = columns / head * half;  // per row
    const std::int64_t row = pair / pairs;
    const std::int64_t in_row = pair % pairs;
    const std::int64_t j = in_row % half;
    const std::int64_t first = row * columns + in_row / half * head + j;
    float a[kCount];
    float b[kCount];
    float cosine[kCount];
    float sine[kCount];
    load(a, x + first);
    load(b, x + first + half);
    load(cosine, table + row * head + j);
    load(sine, table + row * head + half + j);
    for (int e = 0; e < kCount; ++e) {
      const float u = a[e] * cosine[e] - sign * b[e] * sine[e];
      b[e] = b[e] * cosine[e] + sign * a[e] * sine[e];
      a[e] = u;
    }
    store(y + first, a);
    store(y + first + half, b);
  }
};

/// Copies the last column if the number of columns is odd: it has no partner to rotate with.
template <class T>
struct RopeRest {
  const T* x;
  T* y;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t row) const {
    for (int e = 0; e < kCount; ++e)
      y[(row + e + 1) * columns - 1] = x[(row + e + 1) * columns - 1];
  }
};

template <class T>
struct Gather {
  const T* x;
  T* y;
  std::int64_t rows;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const T* from = x + permuted(row, rows) * columns + (i - row * columns);
    if constexpr (kCount > kPack)
      memcpy(y + i, from, sizeof(T) * kCount);
    else
      *reinterpret_cast<Pack<T, kCount>*>(y + i) = *reinterpret_cast<const Pack<T, kCount>*>(from);
  }
};

template <class T>
struct ScatterAdd {
  const T* x;
  T* table;
  std::int64_t rows;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    const std::int64_t row = i / columns;
    T* to = table + permuted(row, rows) * columns + (i - row * columns);
    float a[kCount];
    float t[kCount];
    load(a, x + i);
    load(t, to);
    for (int e = 0; e < kCount; ++e) a[e] += t[e];
    store(to, a);
  }
};

/// softmax - one-hot(target). The target of a row is its number modulo the vocabulary.
template <class T>
struct CrossEntropyBackward {
  const float* softmax;
  T* dx;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const std::int64_t target = row * columns + row % columns;
    float a[kCount];
    load(a, softmax + i);
    for (int e = 0; e < kCount; ++e) a[e] -= i + e == target ? 1.0F : 0.0F;
    store(dx + i, a);
  }
};

/// Writes one number per row to all columns of the row.
template <class T>
struct Expand {
  const float* numbers;
  T* y;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    const float number = numbers[i / columns];
    float a[kCount];
    for (int e = 0; e < kCount; ++e) a[e] = number;
    store(y + i, a);
  }
};

template <class T>
struct Zero {
  T* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    const float a[kCount] = {};
    store(y + i, a);
  }
};

/// Calls use(body, n, together) for the body, or bodies, of a pass over elements of type T. Indices
/// run from 0 to n - 1. The neighbours that one call of `run` takes must lie within one of the
/// consecutive stretches of `together` elements (0: anywhere). `Narrow` is the fp8 type.
/// \param o  arrays in the order of arrays_of.
/// \return false if the pass is none of these.
/// \pre rows and columns are positive.
template <class T, class Narrow, class Use>
bool with_elements(const Pass& p, std::span<void* const> o, Use use) {
  const std::int64_t n = p.rows * p.columns;
  const auto at = [&](std::size_t i) { return static_cast<T*>(o[i]); };
  const auto fp32 = [&](std::size_t i) { return static_cast<float*>(o[i]); };
  const auto fp8 = [&](std::size_t i) { return static_cast<Narrow*>(o[i]); };
  const auto mask = [&](std::size_t i) { return static_cast<std::uint8_t*>(o[i]); };
  switch (p.kind) {
    case PassKind::kGeluForward:
      use(Map1<Gelu, T, T>{at(0), at(1)}, n, 0);
      return true;
    case PassKind::kUnary:
      use(Map1<Relu, T, T>{at(0), at(1)}, n, 0);
      return true;
    case PassKind::kCast:
      use(Map1<Same, T, float>{at(0), fp32(1)}, n, 0);
      return true;
    case PassKind::kQuantize:
      use(Map1<Same, T, Narrow>{at(0), fp8(1)}, n, 0);
      return true;
    case PassKind::kQuantizeFp4:
      use(QuantizeFp4<T>{at(0), mask(1)}, n / 2, 0);
      return true;
    case PassKind::kQuantizeFp4Twice:
      use(QuantizeFp4Twice<T>{at(0), mask(1), mask(2)}, n / 2, 0);
      return true;
    case PassKind::kDequantizeNf4:
      use(DequantizeNf4<T>{mask(0), at(1)}, n / 2, 0);
      return true;
    case PassKind::kQuantizeTwice:
    case PassKind::kQuantizeTranspose:
      use(CopyTwice<T, Narrow>{at(0), fp8(1), fp8(2)}, n, 0);
      return true;
    case PassKind::kGeluBackward:
      use(Map2<GeluBackward, T, T, T>{at(0), at(1), at(2)}, n, 0);
      return true;
    case PassKind::kResidualAdd:
    case PassKind::kBinary:
      use(Map2<Sum, T, T, T>{at(0), at(1), at(2)}, n, 0);
      return true;
    case PassKind::kGradientAccumulate:
      use(Map2<Sum, float, T, float>{fp32(1), at(0), fp32(1)}, n, 0);
      return true;
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      use(Map2<DropoutBackward, T, std::uint8_t, T>{at(0), mask(1), at(2)}, n, 0);
      return true;
    case PassKind::kSwigluForward:
      use(Map2<Swiglu, T, T, T>{at(0), at(0) + n, at(1)}, n, n);
      return true;
    case PassKind::kSwigluBackward:
      use(SwigluBackward<T>{at(0), at(1), at(1) + n, at(2), at(2) + n}, n, n);
      return true;
    case PassKind::kTernary:
      use(Map3<MultiplyAdd, T>{at(0), at(1), at(2), at(3)}, n, 0);
      return true;
    case PassKind::kBiasAdd:
      use(BiasAdd<T>{at(0), at(1), at(2), p.columns}, n, p.columns);
      return true;
    case PassKind::kDropoutForward:
      use(Dropout<T>{at(0), at(1), mask(2)}, n, 0);
      return true;
    case PassKind::kBiasDropoutAddForward:
      use(BiasDropoutAdd<T>{at(0), at(1), at(2), at(3), mask(4), p.columns}, n, p.columns);
      return true;
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      if (const std::int64_t head = rope_head(p.columns); head > 0)
        use(Rope<T>{at(0), fp32(1), at(2), p.columns, head,
                    p.kind == PassKind::kRopeForward ? 1.0F : -1.0F},
            p.rows * (p.columns / head) * (head / 2), std::gcd(head / 2, p.columns));
      if (p.columns % 2 != 0) use(RopeRest<T>{at(0), at(2), p.columns}, p.rows, 1);
      return true;
    case PassKind::kTokenPermute:
    case PassKind::kEmbeddingForward:
      use(Gather<T>{at(0), at(1), p.rows, p.columns}, n, p.columns);
      return true;
    case PassKind::kEmbeddingBackward:
      use(ScatterAdd<T>{at(0), at(1), p.rows, p.columns}, n, p.columns);
      return true;
    case PassKind::kCrossEntropyBackward:
      use(CrossEntropyBackward<T>{fp32(0), at(1), p.columns}, n, p.columns);
      return true;
    case PassKind::kAdam:
      if (p.state_bytes > 0) {
        PackedAdam<T> packed{.g = fp32(0),
                             .copy = at(o.size() - 1),
                             .wide_count = p.state_bytes / 4,
                             .narrow_count = p.state_bytes % 4,
                             .wide = {},
                             .narrow = {}};
        for (int a = 0; a < packed.wide_count; ++a)
          packed.wide[a] = fp32(1 + static_cast<std::size_t>(a));
        for (int a = 0; a < packed.narrow_count; ++a)
          packed.narrow[a] =
              mask(static_cast<std::size_t>(1 + packed.wide_count) + static_cast<std::size_t>(a));
        use(packed, n, 0);
        return true;
      }
      use(Adam<T>{fp32(0), fp32(1), fp32(2), fp32(3), at(4)}, n, 0);
      return true;
    case PassKind::kLambUpdate:
      use(LambUpdate<T>{fp32(0), fp32(1), fp32(2), fp32(3), fp32(4)}, n, 0);
      return true;
    case PassKind::kLambApply:
      use(LambApply<T>{fp32(0), fp32(1), at(2)}, n, 0);
      return true;
    case PassKind::kOptimizer:
      use(Momentum<T>{fp32(0), fp32(1), fp32(2), at(3)}, n, 0);
      return true;
    case PassKind::kExpand:
      use(Expand<T>{fp32(0), at(1), p.columns}, n, p.columns);
      return true;
    case PassKind::kZero:
      use(Zero<T>{at(0)}, n, 0);
      return true;
    default:
      return false;
  }
}

}  // namespace foreshard::replay
