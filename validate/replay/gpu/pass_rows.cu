// Passes that reduce rows. A team (rows.h) is a few threads, a warp or a block.
#include "validate/replay/gpu/numbers.h"
#include "validate/replay/gpu/passes.h"
#include "validate/replay/pass/rows.h"

namespace foreshard::replay::gpu {
namespace {

template <int kGroup>
struct Group {
  template <class F>
  FORESHARD_DEVICE static void over_row(std::int64_t columns, F f) {
    gpu::over_row<kGroup>(columns, f);
  }
  template <class T, class Combine>
  FORESHARD_DEVICE static T reduced(T value, Combine combine) {
    return gpu::reduced<kGroup>(value, combine);
  }
  FORESHARD_DEVICE static bool first() { return static_cast<int>(threadIdx.x) % kGroup == 0; }
};

// Surplus threads of the last block reduce the last row once more and write nothing.
template <class Body, int kGroup>
__global__ void __launch_bounds__(kThreads) row_kernel(Body body, std::int64_t rows) {
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (kThreads / kGroup) + static_cast<int>(threadIdx.x) / kGroup;
  body.template run<Group<kGroup>>(row < rows ? row : rows - 1, row < rows);
}

template <int kGroup, class Body>
cudaError_t launch_for(const Body& body, std::int64_t rows, cudaStream_t stream) {
  constexpr std::int64_t kRows = kThreads / kGroup;
  return launch(row_kernel<Body, kGroup>, dim3(static_cast<unsigned>((rows + kRows - 1) / kRows)),
                kThreads, 0, stream, body, rows);
}

}  // namespace

cudaError_t internal::launch_rows(const Pass& p, std::span<void* const> operands,
                                  cudaStream_t stream) {
  return with_floating_type(p.dtype, [&]<class T>(std::type_identity<T>) {
    cudaError_t status = cudaErrorInvalidValue;
    with_rows<T>(p, operands, [&](const auto& body) {
      status = p.columns <= 64     ? launch_for<4>(body, p.rows, stream)
               : p.columns <= 1024 ? launch_for<32>(body, p.rows, stream)
                                   : launch_for<kThreads>(body, p.rows, stream);
    });
    return status;
  });
}

}  // namespace foreshard::replay::gpu
