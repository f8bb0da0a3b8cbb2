/// \file
/// The kernel behind all elementwise passes: each thread takes kPack neighbours and runs a body on
/// them, which has `template <int kCount> void run(int64 index) const`.
#pragma once

#include <algorithm>

#include "validate/replay/gpu/numbers.h"

namespace foreshard::replay::gpu {

template <class Body>
__global__ void __launch_bounds__(kThreads) map_kernel(Body body, std::int64_t n, bool packs) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t full = packs ? n / kPack : 0;
  for (std::int64_t p = thread; p < full; p += stride) body.template run<kPack>(p * kPack);
  for (std::int64_t i = full * kPack + thread; i < n; i += stride) body.template run<1>(i);
}

/// Runs `body` on the indices from 0 to n - 1.
/// \param packs  whether the body can take kPack neighbours at once, from any multiple of kPack on.
template <class Body>
cudaError_t map(const Body& body, std::int64_t n, bool packs, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;
  const std::int64_t items = packs ? (n + kPack - 1) / kPack : n;
  const std::int64_t blocks =
      std::min(kMostBlocks, std::max<std::int64_t>(1, (items + kThreads - 1) / kThreads));
  return launch(map_kernel<Body>, dim3(static_cast<unsigned>(blocks)), kThreads, 0, stream, body, n,
                packs);
}

}  // namespace foreshard::replay::gpu
