/// \file
/// Elementary functions for passes and attention, as a GPU has them in hardware and as a host's
/// compiler can put them into vector loops: no branch, no table, no call.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_runtime.h>
/// Of a function that runs where the pass runs: on the GPU under nvcc, else on the host.
#define FORESHARD_DEVICE __device__ __forceinline__
#else
#define FORESHARD_DEVICE inline
#endif

namespace foreshard::replay {

/// e^x within 3e-7 relative, for |x| <= 87; beyond, on the host, the value at the end.
/// x = n ln 2 + r with |r| <= ln 2 / 2, e^r by its Taylor polynomial of degree 6. On a GPU: its own
/// approximation, within 2 ulp and some for large |x|.
FORESHARD_DEVICE float exponential(float x) {
#ifdef __CUDACC__
  return __expf(x);
#else
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
#endif
}

FORESHARD_DEVICE float reciprocal_root(float x) {
#ifdef __CUDACC__
  return rsqrtf(x);
#else
  return 1.0F / std::sqrt(x);
#endif
}

FORESHARD_DEVICE float sigmoid(float x) {
  return 1.0F / (1.0F + exponential(-x));
}

}  // namespace foreshard::replay
