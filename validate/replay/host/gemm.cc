#include <cblas.h>

#include "validate/replay/host/kernels.h"

namespace foreshard::replay::host {

void multiply(const Gemm& gemm, const float* a, const float* b, float* d) {
  const auto m = static_cast<int>(gemm.m);
  const auto n = static_cast<int>(gemm.n);
  const auto k = static_cast<int>(gemm.k);
  const float keep = gemm.accumulate ? 1.0F : 0.0F;
  for (std::int64_t i = 0; i < gemm.batch; ++i)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0F, a + i * gemm.m * gemm.k,
                k, b + i * gemm.k * gemm.n, n, keep, d + i * gemm.m * gemm.n, n);
}

}  // namespace foreshard::replay::host
