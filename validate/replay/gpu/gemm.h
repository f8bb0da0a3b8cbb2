/// \file
/// Matrix products by cuBLASLt, loaded at run time. D = A B with all matrices by rows, B stored as
/// its transpose (n x k): the layout of a linear layer's forward pass, and the only one in which
/// tensor cores of Hopper take fp8. bf16 and fp16 gather in fp32; fp8 (e4m3) leaves as bf16, int8
/// as int32; with `accumulate` D is fp32 and added to. Not modelled: the other layouts, which
/// backward products use; scales of fp8 tensors (all 1).
#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// What a product may use beside its operands: 32 MiB, as frameworks give on Hopper. Products on
/// different streams need one each.
constexpr std::size_t kGemmWorkspace = std::size_t{32} << 20;

class Gemms {
 public:
  /// \return kUnsupported if cuBLASLt is missing.
  static Result<std::unique_ptr<Gemms>> make();
  virtual ~Gemms() = default;

  /// Chooses how to compute the product: the fastest, on these operands, of the first few that the
  /// library proposes. Once for each shape.
  /// \return kUnsupported if it proposes none.
  virtual std::optional<Error> prepare(const Gemm& gemm, std::span<void* const> operands,
                                       void* workspace, cudaStream_t stream) = 0;
  /// \pre prepared.
  virtual std::optional<Error> run(const Gemm& gemm, std::span<void* const> operands,
                                   void* workspace, cudaStream_t stream) = 0;
  /// "13.0.2 (libcublasLt.so.13)".
  virtual std::string version() const = 0;
};

}  // namespace foreshard::replay::gpu
