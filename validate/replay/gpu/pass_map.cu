// Passes of one dtype, element by element.
#include "validate/replay/gpu/map.h"
#include "validate/replay/gpu/operands.h"
#include "validate/replay/gpu/passes.h"

namespace foreshard::replay::gpu {
namespace {

// GELU by tanh. Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2.
constexpr float kRoot = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

FORESHARD_DEVICE float gelu(float x) {
  return 0.5F * x * (1.0F + tanhf(kRoot * (x + kCubic * x * x * x)));
}
FORESHARD_DEVICE float gelu_slope(float x) {
  const float t = tanhf(kRoot * (x + kCubic * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kRoot * (1.0F + 3.0F * kCubic * x * x);
}
FORESHARD_DEVICE float sigmoid(float x) {
  return 1.0F / (1.0F + exponential(-x));
}

struct Gelu {
  FORESHARD_DEVICE float operator()(float x) const { return gelu(x); }
};
struct GeluBackward {
  FORESHARD_DEVICE float operator()(float dy, float x) const { return dy * gelu_slope(x); }
};
struct Unary {
  FORESHARD_DEVICE float operator()(float x) const { return fmaxf(x, 0.0F); }
};
struct Sum {
  FORESHARD_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Ternary {
  FORESHARD_DEVICE float operator()(float a, float b, float c) const { return a * b + c; }
};
struct Swiglu {
  FORESHARD_DEVICE float operator()(float gate, float up) const {
    return gate * sigmoid(gate) * up;
  }
};

template <class T, class F>
struct Map1 {
  const T* x;
  T* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    load(a, x + i);
#pragma unroll
    for (int e = 0; e < kCount; ++e) a[e] = F()(a[e]);
    store(y + i, a);
  }
};
template <class T, class F>
struct Map2 {
  const T* x1;
  const T* x2;
  T* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount];
    float b[kCount];
    load(a, x1 + i);
    load(b, x2 + i);
#pragma unroll
    for (int e = 0; e < kCount; ++e) a[e] = F()(a[e], b[e]);
    store(y + i, a);
  }
};
template <class T, class F>
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
#pragma unroll
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
#pragma unroll
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
#pragma unroll
    for (int e = 0; e < kCount; ++e) a[e] += b[e];
    store(y + i, a);
  }
};

// Runs over the pairs of a head: (j, j + head / 2). `table` holds per row head / 2 cosines, then as
// many sines. Source: Su et al., "RoFormer" (2021), equation 34, halves as in GPT-NeoX.
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
    const std::int64_t pairs = columns / head * half;  // of a row
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
#pragma unroll
    for (int e = 0; e < kCount; ++e) {
      const float u = a[e] * cosine[e] - sign * b[e] * sine[e];
      b[e] = b[e] * cosine[e] + sign * a[e] * sine[e];
      a[e] = u;
    }
    store(y + first, a);
    store(y + first + half, b);
  }
};

// The last column of an odd row turns with nobody.
template <class T>
struct RopeRest {
  const T* x;
  T* y;
  std::int64_t columns;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t row) const {
    y[row * columns + columns - 1] = x[row * columns + columns - 1];
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
    const Pack<T, kCount> pack = *reinterpret_cast<const Pack<T, kCount>*>(
        x + permuted(row, rows) * columns + (i - row * columns));
    *reinterpret_cast<Pack<T, kCount>*>(y + i) = pack;
  }
};

template <class T>
struct Zero {
  T* y;
  template <int kCount>
  FORESHARD_DEVICE void run(std::int64_t i) const {
    float a[kCount] = {};
    store(y + i, a);
  }
};

template <class T>
cudaError_t launch_as(const Pass& p, std::span<void* const> o, cudaStream_t stream) {
  const std::int64_t n = p.rows * p.columns;
  const bool even = p.columns % kPack == 0;
  const auto in = [&](std::size_t i) { return static_cast<const T*>(o[i]); };
  const auto out = [&](std::size_t i) { return static_cast<T*>(o[i]); };
  switch (p.kind) {
    case PassKind::kGeluForward:
      return map(Map1<T, Gelu>{in(0), out(1)}, n, true, stream);
    case PassKind::kUnary:
      return map(Map1<T, Unary>{in(0), out(1)}, n, true, stream);
    case PassKind::kGeluBackward:
      return map(Map2<T, GeluBackward>{in(0), in(1), out(2)}, n, true, stream);
    case PassKind::kResidualAdd:
    case PassKind::kBinary:
      return map(Map2<T, Sum>{in(0), in(1), out(2)}, n, true, stream);
    case PassKind::kTernary:
      return map(Map3<T, Ternary>{in(0), in(1), in(2), out(3)}, n, true, stream);
    case PassKind::kSwigluForward:
      return map(Map2<T, Swiglu>{in(0), in(0) + n, out(1)}, n, n % kPack == 0, stream);
    case PassKind::kSwigluBackward:
      return map(SwigluBackward<T>{in(0), in(1), in(1) + n, out(2), out(2) + n}, n, n % kPack == 0,
                 stream);
    case PassKind::kBiasAdd:
      return map(BiasAdd<T>{in(0), in(1), out(2), p.columns}, n, even, stream);
    case PassKind::kTokenPermute:
    case PassKind::kEmbeddingForward:
      return map(Gather<T>{in(0), out(1), p.rows, p.columns}, n, even, stream);
    case PassKind::kZero:
      return map(Zero<T>{out(0)}, n, true, stream);
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward: {
      const std::int64_t head = rope_head(p.columns);
      if (head > 0) {
        const float sign = p.kind == PassKind::kRopeForward ? 1.0F : -1.0F;
        const std::int64_t pairs = p.rows * (p.columns / head) * (head / 2);
        const cudaError_t status =
            map(Rope<T>{in(0), static_cast<const float*>(o[1]), out(2), p.columns, head, sign},
                pairs, head / 2 % kPack == 0 && even, stream);
        if (status != cudaSuccess) return status;
      }
      if (p.columns % 2 == 0) return cudaSuccess;
      return map(RopeRest<T>{in(0), out(2), p.columns}, p.rows, false, stream);
    }
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t internal::launch_map(const Pass& pass, std::span<void* const> operands,
                                 cudaStream_t stream) {
  return with_floating_type(pass.dtype, [&]<class T>(std::type_identity<T>) {
    return launch_as<T>(pass, operands, stream);
  });
}

}  // namespace foreshard::replay::gpu
