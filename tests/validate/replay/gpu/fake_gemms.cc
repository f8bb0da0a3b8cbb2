// Matrix products in a test of what is around them: they touch their operands and compute nothing.
#include <cstring>

#include "validate/replay/gpu/gemm.h"
#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {
namespace {

class FakeGemms final : public Gemms {
 public:
  std::optional<Error> prepare(const Gemm& gemm, std::span<void* const>, void* workspace,
                               cudaStream_t) override {
    if (workspace == nullptr) return Error{Error::Code::kIo, "no workspace"};
    if (gemm.dtype == DType::kInt64)
      return Error{Error::Code::kUnsupported, describe(Kernel(gemm)) + ": none"};
    return std::nullopt;
  }
  std::optional<Error> run(const Gemm& gemm, std::span<void* const> operands, void*,
                           cudaStream_t) override {
    std::memset(operands[2], 0, operands_of(Kernel(gemm))[2].bytes);
    return std::nullopt;
  }
  std::string version() const override { return "0 (fake)"; }
};

}  // namespace

Result<std::unique_ptr<Gemms>> Gemms::make() {
  return std::unique_ptr<Gemms>(std::make_unique<FakeGemms>());
}

}  // namespace foreshard::replay::gpu
