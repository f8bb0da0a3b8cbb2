// Matrix products in a test of what is around them: they touch their operands and compute nothing.
// Each shape has a kernel of its own, which both the choice and a run launch; the first proposal
// takes 20 us, the fastest 15.
#include <cstring>
#include <mutex>
#include <set>

#include "validate/replay/gpu/emulation.h"
#include "validate/replay/gpu/gemm.h"
#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {
namespace {

void launch_kernel_of(const Gemm& gemm) {
  static std::mutex mutex;
  static std::set<Gemm> known;
  const std::lock_guard guard(mutex);
  emulation::launched().insert(&*known.insert(gemm).first);
}

class FakeGemms final : public Gemms {
 public:
  Result<measure::GemmChoice> prepare(const Gemm& gemm, const FreshOperands& operands,
                                      void* workspace, cudaStream_t) override {
    if (workspace == nullptr) return Error{Error::Code::kIo, "no workspace"};
    if (operands() == operands()) return Error{Error::Code::kIo, "operands that are not fresh"};
    launch_kernel_of(gemm);
    return measure::GemmChoice{
        .kernel = describe(Kernel(gemm)), .tried = 4, .taken = 20_us, .fastest = 15_us};
  }
  Status run(const Gemm& gemm, std::span<void* const> operands, void*, cudaStream_t) override {
    launch_kernel_of(gemm);
    std::memset(operands[2], 0, operands_of(Kernel(gemm))[2].bytes);
    return {};
  }
  std::string version() const override { return "0 (fake)"; }
};

}  // namespace

Result<std::unique_ptr<Gemms>> Gemms::make() {
  return std::unique_ptr<Gemms>(std::make_unique<FakeGemms>());
}

}  // namespace foreshard::replay::gpu
