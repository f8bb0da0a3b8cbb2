/// \file
/// Sizes of what a traced kernel computed or sent, as far as its operator's recorded inputs tell.
#pragma once

#include <optional>

#include "strategies/program/ir/program.h"
#include "validate/profile/kineto.h"

namespace foreshard::profile {

/// The extents of a batched product D[b] = A[b] B[b].
struct ProductShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  auto operator<=>(const ProductShape&) const = default;
};

/// Shape of the product that launched the kernel: the innermost of mm, addmm, bmm, baddbmm,
/// _scaled_mm, matmul and linear around its launch. Nothing if shapes were not recorded.
/// Source: pytorch/pytorch, aten/src/ATen/native/native_functions.yaml (their arguments).
std::optional<ProductShape> product_shape(const Trace& trace, const TracedKernel& kernel);

/// Bytes of the collective as Programs count them (program::Communication::bytes); nothing if its
/// size or type was not recorded.
/// Source: pytorch/pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp (numbers of elements in
/// and out, of one rank).
std::optional<Bytes> collective_bytes(const TracedCollective& collective,
                                      program::CollectiveKind kind);

/// The kinds of communication that the collective's name can mean; empty if the name is unknown.
std::vector<program::CollectiveKind> collective_kinds(const TracedCollective& collective);

}  // namespace foreshard::profile
