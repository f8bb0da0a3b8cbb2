/// \file
/// Matrix products by cuBLASLt, loaded at run time. D = A B, with all matrices stored row by row
/// and B stored as its transpose (n x k). This is the layout of a linear layer's forward pass, and
/// the only one in which Hopper's tensor cores accept fp8. bf16 and fp16 accumulate in fp32; fp8
/// (e4m3) gives bf16, int8 gives int32; with `accumulate`, D is fp32 and is added to. Not modelled:
/// the other layouts, which backward products use; scales of fp8 tensors (all are 1); products that
/// are launched one by one (they run as one batch).
#pragma once

#include <cuda_runtime_api.h>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/kernel.h"
#include "validate/measurement/measurement.h"

namespace foreshard::replay::gpu {

/// Bytes of workspace for a product: 32 MiB, as frameworks use on Hopper. Products on different
/// streams need separate workspaces.
constexpr std::size_t kGemmWorkspace = std::size_t{32} << 20;

/// Returns operands of a product, at other addresses each time, so that the caches are as cold as
/// in a step.
using FreshOperands = std::function<std::vector<void*>()>;

class Gemms {
 public:
  /// \return kUnsupported if cuBLASLt is missing.
  static Result<std::unique_ptr<Gemms>> make();
  virtual ~Gemms() = default;

  /// Chooses how to compute the product, once per shape: the library's first proposal that runs.
  /// Frameworks take that one, too, and all ranks on the same kind of device take the same one,
  /// whatever else runs when they choose. The next few proposals are timed for comparison.
  /// \return the choice, with `count` 0; kUnsupported if nothing is proposed, or no proposal runs.
  virtual Result<measure::GemmChoice> prepare(const Gemm& gemm, const FreshOperands& operands,
                                              void* workspace, cudaStream_t stream) = 0;
  /// \pre prepare succeeded for this product.
  virtual Status run(const Gemm& gemm, std::span<void* const> operands, void* workspace,
                     cudaStream_t stream) = 0;
  /// "13.0.2 (libcublasLt.so.13)".
  virtual std::string version() const = 0;
};

}  // namespace foreshard::replay::gpu
