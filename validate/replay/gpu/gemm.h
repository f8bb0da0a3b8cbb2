/// \file
/// Matrix products by cuBLASLt, loaded at run time. D = A B with all matrices by rows, B stored as
/// its transpose (n x k): the layout of a linear layer's forward pass, and the only one in which
/// tensor cores of Hopper take fp8. bf16 and fp16 gather in fp32; fp8 (e4m3) leaves as bf16, int8
/// as int32; with `accumulate` D is fp32 and added to. Not modelled: the other layouts, which
/// backward products use; scales of fp8 tensors (all 1); products launched apart
/// (they run as one batch).
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

/// What a product may use beside its operands: 32 MiB, as frameworks give on Hopper. Products on
/// different streams need one each.
constexpr std::size_t kGemmWorkspace = std::size_t{32} << 20;

/// Gives a product's operands, others each time: a kernel finds them as cold as in a step.
using FreshOperands = std::function<std::vector<void*>()>;

class Gemms {
 public:
  /// \return kUnsupported if cuBLASLt is missing.
  static Result<std::unique_ptr<Gemms>> make();
  virtual ~Gemms() = default;

  /// Chooses how to compute the product, once for each shape: as the library proposes first, of
  /// what runs. That is what frameworks take, and all ranks of a kind of device take the same,
  /// whatever else went on when they chose. The next few proposals are timed beside it.
  /// \return `count` is 0. kUnsupported if nothing is proposed, or nothing runs.
  virtual Result<measure::GemmChoice> prepare(const Gemm& gemm, const FreshOperands& operands,
                                              void* workspace, cudaStream_t stream) = 0;
  /// \pre prepared.
  virtual Status run(const Gemm& gemm, std::span<void* const> operands, void* workspace,
                     cudaStream_t stream) = 0;
  /// "13.0.2 (libcublasLt.so.13)".
  virtual std::string version() const = 0;
};

}  // namespace foreshard::replay::gpu
