// Compares products of cuBLASLt with plain loops.
#include <memory>

#include "validate/replay/gpu/check_harness.h"
#include "validate/replay/gpu/checks.h"
#include "validate/replay/gpu/gemm.h"

namespace foreshard::replay::gpu {
namespace {

void compute(const Gemm& g, Arrays& o) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t m = size(g.m);
  const std::size_t n = size(g.n);
  const std::size_t k = size(g.k);
  for (std::size_t b = 0; b < size(g.batch); ++b)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = g.accumulate ? o[2][(b * m + i) * n + j] : 0.0;
        for (std::size_t l = 0; l < k; ++l)
          sum += o[0][(b * m + i) * k + l] * o[1][(b * n + j) * k + l];
        o[2][(b * m + i) * n + j] = sum;
      }
}

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
  // `prepare` runs the product too, so an accumulation must start over afterwards.
  std::vector<void*> pointers;
  auto run = [&](std::span<void* const> operands) -> std::optional<std::string> {
    if (const Status error = (*gemms)->run(gemm, operands, workspace.data(), nullptr); !error.ok())
      return error.error().message;
    return std::nullopt;
  };
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
  // tf32 keeps 10 bits of each factor; the sum of k such errors grows with sqrt(k).
  const double factor = gemm.dtype == DType::kTf32 || gemm.dtype == DType::kFp8 ? 0x1p-9 : 1e-6;
  return difference(stores, got, want, 1.5, factor * static_cast<double>(gemm.k));
}

}  // namespace

std::vector<Check> gemm_checks() {
  std::vector<Check> checks;
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
