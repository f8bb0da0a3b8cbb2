// Self-tests of the GPU replay (checks.h, run by foreshard-gpu-check): small products, run by Gemms
// on cuBLASLt, are compared with plain loops on the host. The operands are those of operands.h: a
// is m x k, b is n x k (stored transposed), d is m x n, each for every member of the batch.
#include <memory>

#include "validate/replay/gpu/check_harness.h"
#include "validate/replay/gpu/checks.h"
#include "validate/replay/gpu/gemm.h"

namespace foreshard::replay::gpu {
namespace {

// The product in double precision: operands[2] = (or +=) operands[0] x operands[1] transposed.
void compute(const Gemm& g, Arrays& operands) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t m = size(g.m);
  const std::size_t n = size(g.n);
  const std::size_t k = size(g.k);
  for (std::size_t b = 0; b < size(g.batch); ++b)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = g.accumulate ? operands[2][(b * m + i) * n + j] : 0.0;
        for (std::size_t l = 0; l < k; ++l)
          sum += operands[0][(b * m + i) * k + l] * operands[1][(b * n + j) * k + l];
        operands[2][(b * m + i) * n + j] = sum;
      }
}

// What is wrong with the product: an error of the run, or the first element that is too far off.
// Nothing if it passed.
std::optional<std::string> check(const Gemm& gemm) {
  auto gemms = Gemms::make();
  if (!gemms) return gemms.error().message;
  std::vector<Stored> stores(3, stored_as(gemm.dtype));
  if (gemm.dtype == DType::kFp8) stores[2] = Stored::kBf16;
  if (gemm.dtype == DType::kInt8) stores[2] = Stored::kInt32;
  if (gemm.accumulate) stores[2] = Stored::kFp32;
  Arrays want = inputs_for(operands_of(Kernel(gemm)), stores);
  Arrays got = want;
  DeviceBytes workspace(kGemmWorkspace);
  if (workspace.data() == nullptr) return "no memory for a workspace";
  auto run = [&](std::span<void* const> operands) -> std::optional<std::string> {
    if (const Status error = (*gemms)->run(gemm, operands, workspace.data(), nullptr); !error.ok())
      return error.error().message;
    return std::nullopt;
  };
  // To choose an algorithm, prepare() runs the product on operands of its own; an accumulation must
  // start over afterwards.
  Arrays trial = want;
  auto choose = [&](std::span<void* const> operands) -> std::optional<std::string> {
    const auto choice = (*gemms)->prepare(
        gemm, [&] { return std::vector<void*>(operands.begin(), operands.end()); },
        workspace.data(), nullptr);
    return choice ? std::nullopt : std::optional(choice.error().message);
  };
  if (auto fault = on_device(stores, trial, choose)) return fault;
  if (auto fault = on_device(stores, got, run)) return fault;
  compute(gemm, want);
  // Bound of the absolute error: k times that of one product of numbers near 1. tf32 keeps 10 bits
  // of each factor. Matrix units may add up products of fp8 with fewer bits than fp32 has.
  const double error_of_one =
      gemm.dtype == DType::kTf32 || gemm.dtype == DType::kFp8 ? 0x1p-9 : 1e-6;
  constexpr double kSteps = 1.5;  // relative error, in rounding steps of the stored type
  return difference(stores, got, want, kSteps, error_of_one * static_cast<double>(gemm.k));
}

}  // namespace

std::vector<Check> gemm_checks() {
  std::vector<Check> checks;
  // batch, m, n, k, type, accumulate
  for (const Gemm& gemm : {
           Gemm{1, 64, 48, 96, DType::kBf16, false},
           Gemm{1, 33, 17, 72, DType::kBf16, false},
           Gemm{3, 64, 32, 64, DType::kBf16, false},
           Gemm{1, 64, 48, 96, DType::kBf16, true},
           Gemm{2, 64, 48, 96, DType::kFp16, true},
           Gemm{1, 128, 64, 128, DType::kFp16, false},
           Gemm{1, 64, 48, 96, DType::kTf32, false},
           Gemm{1, 64, 48, 96, DType::kFp32, false},
           Gemm{1, 64, 48, 96, DType::kFp32, true},
           Gemm{1, 64, 48, 96, DType::kFp8, false},
           Gemm{1, 64, 64, 128, DType::kFp8, true},
           Gemm{1, 64, 64, 128, DType::kInt8, false},
       })
    checks.push_back({describe(Kernel(gemm)), [gemm] { return check(gemm); }});
  return checks;
}

}  // namespace foreshard::replay::gpu
