/// \file
/// Elementary functions for passes and attention. A GPU has them in hardware; on the host they have
/// no branch, table or call, so that the compiler can vectorise loops.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_runtime.h>
/// Marks a function that runs where the pass runs: on the GPU under nvcc, else on the host.
#define FORESHARD_DEVICE __device__ __forceinline__
#else
#define FORESHARD_DEVICE inline
#endif

namespace foreshard::replay {

/// e^x with a relative error below 3e-7, for |x| <= 87; beyond, the host returns the value at the
/// bound. x = n ln 2 + r with |r| <= ln 2 / 2, and e^r is its Taylor polynomial of degree 6. A GPU
/// uses its own approximation, with an error of 2 ulp, and somewhat more for large |x|.
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
