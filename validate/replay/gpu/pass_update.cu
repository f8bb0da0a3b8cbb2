// Passes that mix dtypes, element by element: dropout, optimizers, casts.
#include "validate/replay/gpu/map.h"
#include "validate/replay/gpu/passes.h"

namespace foreshard::replay::gpu {
namespace {

constexpr float kKeep = 0.9F;  // Of dropout; any probability moves the same bytes.

// A hash for each element: counter-based, as the frameworks' dropout is, so no state is read.
FORESHARD_DEVICE bool kept(std::int64_t element) {
  auto h = static_cast<std::uint32_t>(element) ^ static_cast<std::uint32_t>(element >> 32);
  h = (h ^ (h >> 16)) * 0x7feb352dU;
  h = (h ^ (h >> 15)) * 0x846ca68bU;
  h ^= h >> 16;
  return static_cast<float>(h >> 8) * 0x1p-24F < kKeep;
}

template <class T>
struct Dropout {
  const T* x;
  T* y;
  std::uint8_t* mask;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    load(a, x + i);
    Pack<std::uint8_t, kCount> bits;
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      bits.value[e] = kept(i + e) ? 1 : 0;
      a[e] *= static_cast<float>(bits.value[e]) / kKeep;
    }
    store(y + i, a);
    *reinterpret_cast<Pack<std::uint8_t, kCount>*>(mask + i) = bits;
  }
};

template <class T>
struct DropoutBackward {
  const T* dy;
  const std::uint8_t* mask;
  T* dx;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float m[kCount];
    load(a, dy + i);
    load(m, mask + i);
#pragma unroll
    for (int e = 0; e < kCount; ++e) a[e] *= m[e] / kKeep;
    store(dx + i, a);
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
    load(a, x + i);
    load(r, residual + i);
    load(b, bias + i % columns);
    Pack<std::uint8_t, kCount> bits;
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      bits.value[e] = kept(i + e) ? 1 : 0;
      a[e] = (a[e] + b[e]) * static_cast<float>(bits.value[e]) / kKeep + r[e];
    }
    store(y + i, a);
    *reinterpret_cast<Pack<std::uint8_t, kCount>*>(mask + i) = bits;
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
#pragma unroll
    for (int e = 0; e < kCount; ++e) a[e] += t[e];
    store(to, a);
  }
};

// softmax - one-hot; the target of a row is its number modulo the vocabulary.
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
#pragma unroll
    for (int e = 0; e < kCount; ++e)
      if (i + e == target) a[e] -= 1.0F;
    store(dx + i, a);
  }
};

template <class T>
struct Accumulate {
  const T* g;
  float* sum;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float s[kCount];
    load(a, g + i);
    load(s, sum + i);
#pragma unroll
    for (int e = 0; e < kCount; ++e) s[e] += a[e];
    store(sum + i, s);
  }
};

// AdamW with usual constants and without bias correction, which is a factor of the rate. Source:
// Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019), algorithm 2.
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
    constexpr float kBeta1 = 0.9F;
    constexpr float kBeta2 = 0.95F;
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
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      m[e] = kBeta1 * m[e] + (1.0F - kBeta1) * d[e];
      v[e] = kBeta2 * v[e] + (1.0F - kBeta2) * d[e] * d[e];
      p[e] -= kRate * (m[e] / (sqrtf(v[e]) + kEpsilon) + kDecay * p[e]);
    }
    store(parameter + i, p);
    store(first + i, m);
    store(second + i, v);
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
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      m[e] = kBeta * m[e] + d[e];
      p[e] -= kRate * m[e];
    }
    store(parameter + i, p);
    store(moment + i, m);
    store(copy + i, p);
  }
};

template <class T>
struct Cast {
  const T* x;
  float* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    load(a, x + i);
    store(y + i, a);
  }
};

template <class T>
struct Expand {
  const float* numbers;
  T* y;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    const float number = numbers[i / columns];
    float a[kCount];
#pragma unroll
    for (int e = 0; e < kCount; ++e) a[e] = number;
    store(y + i, a);
  }
};

template <class T>
cudaError_t launch_as(const Pass& p, std::span<void* const> o, cudaStream_t stream) {
  const std::int64_t n = p.rows * p.columns;
  const bool even = p.columns % kPack == 0;
  const auto in = [&](std::size_t i) { return static_cast<const T*>(o[i]); };
  const auto out = [&](std::size_t i) { return static_cast<T*>(o[i]); };
  const auto fp32 = [&](std::size_t i) { return static_cast<float*>(o[i]); };
  const auto mask = [&](std::size_t i) { return static_cast<std::uint8_t*>(o[i]); };
  switch (p.kind) {
    case PassKind::kDropoutForward:
      return map(Dropout<T>{in(0), out(1), mask(2)}, n, true, stream);
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      return map(DropoutBackward<T>{in(0), mask(1), out(2)}, n, true, stream);
    case PassKind::kBiasDropoutAddForward:
      return map(BiasDropoutAdd<T>{in(0), in(1), in(2), out(3), mask(4), p.columns}, n, even,
                 stream);
    case PassKind::kEmbeddingBackward:
      return map(ScatterAdd<T>{in(0), out(1), p.rows, p.columns}, n, even, stream);
    case PassKind::kCrossEntropyBackward:
      return map(CrossEntropyBackward<T>{fp32(0), out(1), p.columns}, n, even, stream);
    case PassKind::kGradientAccumulate:
      return map(Accumulate<T>{in(0), fp32(1)}, n, true, stream);
    case PassKind::kAdam:
      return map(Adam<T>{fp32(0), fp32(1), fp32(2), fp32(3), out(4)}, n, true, stream);
    case PassKind::kOptimizer:
      return map(Momentum<T>{fp32(0), fp32(1), fp32(2), out(3)}, n, true, stream);
    case PassKind::kCast:
      return map(Cast<T>{in(0), fp32(1)}, n, true, stream);
    case PassKind::kExpand:
      return map(Expand<T>{fp32(0), out(1), p.columns}, n, even, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t internal::launch_update(const Pass& pass, std::span<void* const> operands,
                                    cudaStream_t stream) {
  return with_floating_type(pass.dtype, [&]<class T>(std::type_identity<T>) {
    return launch_as<T>(pass, operands, stream);
  });
}

}  // namespace foreshard::replay::gpu
