/// \file
/// Arithmetic of operators of the table (strategies/graph/operators/table.cc), by family. A kernel
/// sees the slices of one rank: what it does is the operator on tensors of those shapes, but for
/// what depends on places in the logical tensor (indices, means, random numbers).
#pragma once

#include <string>
#include <string_view>

#include "tests/oracle/internal/kernels.h"

namespace foreshard::execute {

using ComputeFunction = KernelFunction*;

/// \return nullptr if the operator has no arithmetic here.
ComputeFunction find_defined(std::string_view type);

namespace defined {

KernelFunction attention, attention_gradient, batch_norm, batch_norm_gradient,
    batch_norm_gradient_sums, batch_statistics, binary, cast, concat, conv, conv_data_gradient,
    conv_weight_gradient, cross_entropy, cross_entropy_gradient, dropout, dropout_gradient, expand,
    expert_bias, expert_bias_gradient, gather, layer_norm, layer_norm_gradient, moe_combine,
    moe_dispatch, moe_slot_weights, moe_weight_gradient, pad, pool, pool_gradient, product, reduce,
    reshape, rms_norm, rms_norm_gradient, row_update, scatter_add, slice, softmax, softmax_gradient,
    split, top_k, top_k_gradient, transpose, unary, unary_gradient, where;

}  // namespace defined

// --- indices ---------------------------------------------------------------------------------

/// The dimension that setting `axis` names.
std::size_t axis_of_operand(const Invocation& kernel, const Operand& operand);
/// Extents of the slice.
Shape local_shape_of(const Operand& operand);
/// The slice seen as [before, at `axis`, after].
struct Around {
  std::int64_t before = 1;
  std::int64_t extent = 1;
  std::int64_t after = 1;

  std::size_t at(std::int64_t b, std::int64_t i, std::int64_t a) const {
    return static_cast<std::size_t>((b * extent + i) * after + a);
  }
};
Around around(const Operand& operand, std::size_t axis);
/// Every index of a slice in row-major order.
template <class Visit>
void each_index(const Shape& shape, Visit visit) {
  for (const std::int64_t extent : shape)
    if (extent == 0) return;
  Shape index(shape.size(), 0);
  for (bool more = true; more;) {
    visit(index);
    more = false;
    for (std::size_t d = shape.size(); d-- > 0 && !more;) {
      more = ++index[d] < shape[d];
      if (!more) index[d] = 0;
    }
  }
}
/// Place of `index` in a row-major array of `shape`.
std::size_t place(const Shape& index, const Shape& shape);
/// Place in `operand` of what the element `index` of a slice of `whole` meets in a broadcast: its
/// dimensions are aligned at the last, and those of logical size 1 are repeated.
std::size_t broadcast_place(const Shape& index, const Operand& operand);

}  // namespace foreshard::execute
