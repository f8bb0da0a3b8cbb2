#include "validate/replay/gpu/gemm.h"

#include <algorithm>
#include <array>
#include <cublasLt.h>
#include <limits>
#include <map>
#include <vector>

#include "validate/replay/gpu/library.h"
#include "validate/replay/gpu/proposals.h"

namespace foreshard::replay::gpu {
namespace {

struct Api {
  std::string path{};
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  decltype(&cublasLtMatmulDescCreate) make_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) end_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) end_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) end_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
};

Result<Api> load() {
  constexpr int kMajor = CUDART_VERSION / 1000;
  static_assert(kMajor == 12 || kMajor == 13, "name the library of this CUDA version");
  constexpr std::array kNames{kMajor == 12 ? "libcublasLt.so.12" : "libcublasLt.so.13"};
  FORESHARD_ASSIGN(
      const auto library,
      Library::open(
          "cuBLASLt", kNames, "CUDA_HOME",
          "install it, or name its folder in FORESHARD_LIBRARY_PATH (of Python wheels it is "
          "nvidia/cu13/lib or nvidia/cublas/lib)"));
  Api api;
  api.path = library.path();
  const bool complete = library.find("cublasLtCreate", api.create) &&
                        library.find("cublasLtDestroy", api.destroy) &&
                        library.find("cublasLtGetVersion", api.version) &&
                        library.find("cublasLtGetStatusString", api.status_string) &&
                        library.find("cublasLtMatmul", api.matmul) &&
                        library.find("cublasLtMatmulAlgoGetHeuristic", api.propose) &&
                        library.find("cublasLtMatmulDescCreate", api.make_operation) &&
                        library.find("cublasLtMatmulDescDestroy", api.end_operation) &&
                        library.find("cublasLtMatmulDescSetAttribute", api.set_operation) &&
                        library.find("cublasLtMatrixLayoutCreate", api.make_layout) &&
                        library.find("cublasLtMatrixLayoutDestroy", api.end_layout) &&
                        library.find("cublasLtMatrixLayoutSetAttribute", api.set_layout) &&
                        library.find("cublasLtMatmulPreferenceCreate", api.make_preference) &&
                        library.find("cublasLtMatmulPreferenceDestroy", api.end_preference) &&
                        library.find("cublasLtMatmulPreferenceSetAttribute", api.set_preference);
  if (!complete)
    return Error{Error::Code::kUnsupported, api.path + " lacks functions of cuBLASLt 12"};
  return api;
}

struct Types {
  cudaDataType_t in;
  cudaDataType_t out;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};

std::optional<Types> types_of(const Gemm& g) {
  const auto out = [&](cudaDataType_t plain) { return g.accumulate ? CUDA_R_32F : plain; };
  switch (g.dtype) {
    case DType::kFp32:
      return Types{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kTf32:
      return Types{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F};
    case DType::kFp16:
      return Types{CUDA_R_16F, out(CUDA_R_16F), CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kBf16:
      return Types{CUDA_R_16BF, out(CUDA_R_16BF), CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kFp8:
      return Types{CUDA_R_8F_E4M3, out(CUDA_R_16BF), CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::kInt8:
      if (g.accumulate) return std::nullopt;
      return Types{CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I};
    case DType::kFp4:
    case DType::kInt32:
    case DType::kInt64:
      return std::nullopt;
  }
  return std::nullopt;
}

// A factor (0 or 1) in each scale type.
struct Scale {
  float real;
  std::int32_t whole;
  const void* as(cudaDataType_t type) const {
    return type == CUDA_R_32I ? static_cast<const void*>(&whole) : &real;
  }
};
constexpr Scale kZero{0.0F, 0};
constexpr Scale kOne{1.0F, 1};

class CublasLt final : public Gemms {
 public:
  explicit CublasLt(Api api) : api_(std::move(api)) {}
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt() override {
    for (auto& [gemm, plan] : plans_) release(plan);
    if (handle_ != nullptr) api_.destroy(handle_);
  }

  Status open() {
    if (const auto status = api_.create(&handle_); status != CUBLAS_STATUS_SUCCESS)
      return Error{Error::Code::kIo, "cublasLtCreate: " + std::string(api_.status_string(status))};
    return {};
  }

  Result<measure::GemmChoice> prepare(const Gemm& gemm, const FreshOperands& operands,
                                      void* workspace, cudaStream_t stream) override {
    if (const auto known = plans_.find(gemm); known != plans_.end()) return known->second.choice;
    const auto types = types_of(gemm);
    if (!types) return unsupported(gemm, "no such product on tensor cores");
    Plan plan{.scale = types->scale, .choice = {.kernel = describe(Kernel(gemm))}};
    auto error = describe_operands(gemm, *types, plan);
    if (error.ok()) error = choose(gemm, operands, workspace, stream, plan);
    if (!error.ok()) {
      release(plan);
      return std::move(error).error();
    }
    return plans_.emplace(gemm, plan).first->second.choice;
  }

  Status run(const Gemm& gemm, std::span<void* const> operands, void* workspace,
             cudaStream_t stream) override {
    const auto found = plans_.find(gemm);
    FORESHARD_CHECK(found != plans_.end());
    const auto status =
        matmul(gemm, operands, workspace, stream, found->second, found->second.algorithm);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return Error{Error::Code::kIo,
                 describe(Kernel(gemm)) + ": cuBLASLt: " + api_.status_string(status)};
  }

  std::string version() const override {
    const std::size_t v = api_.version();
    return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
           std::to_string(v % 100) + " (" + api_.path + ")";
  }

 private:
  struct Plan {
    cudaDataType_t scale = CUDA_R_32F;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr;
    cublasLtMatrixLayout_t b = nullptr;
    cublasLtMatrixLayout_t d = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    measure::GemmChoice choice{};
  };

  void release(Plan& plan) {
    for (const auto layout : {plan.a, plan.b, plan.d})
      if (layout != nullptr) api_.end_layout(layout);
    if (plan.operation != nullptr) api_.end_operation(plan.operation);
    plan = Plan{};
  }

  static Error unsupported(const Gemm& gemm, const std::string& why) {
    return {Error::Code::kUnsupported, describe(Kernel(gemm)) + ": " + why};
  }

  // cuBLAS stores matrices by columns: our D, stored by rows, is its D^T = W X^T, where W is our B.
  Status describe_operands(const Gemm& g, const Types& types, Plan& plan) {
    const auto u = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    std::vector<cublasStatus_t> all;
    all.push_back(api_.make_operation(&plan.operation, types.compute, types.scale));
    all.push_back(api_.make_layout(&plan.a, types.in, u(g.k), u(g.n), g.k));
    all.push_back(api_.make_layout(&plan.b, types.in, u(g.k), u(g.m), g.k));
    all.push_back(api_.make_layout(&plan.d, types.out, u(g.n), u(g.m), g.n));
    if (std::any_of(all.begin(), all.end(), [](auto s) { return s != CUBLAS_STATUS_SUCCESS; }))
      return unsupported(g, "cuBLASLt refuses the shape");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    all.push_back(api_.set_operation(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                     sizeof(transposed)));
    if (g.dtype == DType::kFp8) {
      const std::int8_t fast = 1;  // frameworks use it in the forward pass
      all.push_back(
          api_.set_operation(plan.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast)));
    }
    if (g.batch > 1) {
      if (g.batch > std::numeric_limits<std::int32_t>::max())
        return unsupported(g, "more products at once than cuBLASLt counts");
      const auto count = static_cast<std::int32_t>(g.batch);
      const auto batched = [&](cublasLtMatrixLayout_t layout, std::int64_t stride) {
        all.push_back(
            api_.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
        all.push_back(api_.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                      sizeof(stride)));
      };
      batched(plan.a, g.n * g.k);
      batched(plan.b, g.m * g.k);
      batched(plan.d, g.m * g.n);
    }
    for (const auto status : all)
      if (status != CUBLAS_STATUS_SUCCESS)
        return unsupported(g, std::string("cuBLASLt: ") + api_.status_string(status));
    return {};
  }

  cublasStatus_t matmul(const Gemm& g, std::span<void* const> operands, void* workspace,
                        cudaStream_t stream, const Plan& plan,
                        const cublasLtMatmulAlgo_t& algorithm) {
    return api_.matmul(handle_, plan.operation, kOne.as(plan.scale), operands[1], plan.a,
                       operands[0], plan.b, (g.accumulate ? kOne : kZero).as(plan.scale),
                       operands[2], plan.d, operands[2], plan.d, &algorithm, workspace,
                       kGemmWorkspace, stream);
  }

  Status choose(const Gemm& gemm, const FreshOperands& operands, void* workspace,
                cudaStream_t stream, Plan& plan) {
    constexpr int kProposals = 4;
    std::array<cublasLtMatmulHeuristicResult_t, kProposals> proposals{};
    int count = 0;
    cublasLtMatmulPreference_t preference = nullptr;
    if (api_.make_preference(&preference) != CUBLAS_STATUS_SUCCESS)
      return Error{Error::Code::kIo, "cuBLASLt has no memory for a preference"};
    const std::size_t most = kGemmWorkspace;
    api_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
    const auto status = api_.propose(handle_, plan.operation, plan.a, plan.b, plan.d, plan.d,
                                     preference, kProposals, proposals.data(), &count);
    api_.end_preference(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0)
      return unsupported(
          gemm, std::string("cuBLASLt has no kernel for it (") + api_.status_string(status) +
                    (gemm.dtype == DType::kFp8
                         ? "; fp8 needs sizes that are multiples of 16 and a GPU of 8.9 or "
                           "later)"
                         : ")"));
    const auto algorithm = [&](std::size_t i) { return proposals[i].algo; };
    FORESHARD_ASSIGN(const auto times, time_proposals(
                                           static_cast<std::size_t>(count),
                                           [&](std::size_t i) {
                                             return matmul(gemm, operands(), workspace, stream,
                                                           plan,
                                                           algorithm(i)) == CUBLAS_STATUS_SUCCESS;
                                           },
                                           stream));
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto& time = times[i];
      if (!time) continue;
      measure::GemmChoice& choice = plan.choice;
      if (choice.tried++ == 0) {
        plan.algorithm = algorithm(i);
        choice.taken = choice.fastest = *time;
      }
      choice.fastest = std::min(choice.fastest, *time);
    }
    if (plan.choice.tried == 0) return unsupported(gemm, "none of cuBLASLt's kernels for it runs");
    return {};
  }

  Api api_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Gemm, Plan> plans_;
};

}  // namespace

Result<std::unique_ptr<Gemms>> Gemms::make() {
  FORESHARD_ASSIGN(auto api, load());
  auto gemms = std::make_unique<CublasLt>(std::move(api));
  FORESHARD_TRY(gemms->open());
  return std::unique_ptr<Gemms>(std::move(gemms));
}

}  // namespace foreshard::replay::gpu
