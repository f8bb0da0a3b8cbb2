/// \file
/// Arithmetic of operators of the table (strategies/graph/operators/table.cc), by family. A kernel
/// sees the slices of one rank: what it does is the operator on tensors of those shapes, but for
/// what depends on places in the logical tensor (indices, means, random numbers).
#pragma once

#include <string>
#include <string_view>

#include "tests/oracle/internal/kernels.h"

namespace foreshard::execute {

using ComputeFunction = void (*)(const Invocation& kernel);

/// \return nullptr if the operator has no arithmetic here.
ComputeFunction find_defined(std::string_view type);

namespace defined {

void attention(const Invocation& kernel);
void attention_gradient(const Invocation& kernel);
void batch_norm(const Invocation& kernel);
void batch_norm_gradient(const Invocation& kernel);
void batch_norm_gradient_sums(const Invocation& kernel);
void batch_statistics(const Invocation& kernel);
void binary(const Invocation& kernel);
void cast(const Invocation& kernel);
void concat(const Invocation& kernel);
void conv(const Invocation& kernel);
void conv_data_gradient(const Invocation& kernel);
void conv_weight_gradient(const Invocation& kernel);
void cross_entropy(const Invocation& kernel);
void cross_entropy_gradient(const Invocation& kernel);
void dropout(const Invocation& kernel);
void dropout_gradient(const Invocation& kernel);
void expand(const Invocation& kernel);
void expert_bias(const Invocation& kernel);
void expert_bias_gradient(const Invocation& kernel);
void gather(const Invocation& kernel);
void layer_norm(const Invocation& kernel);
void layer_norm_gradient(const Invocation& kernel);
void moe_combine(const Invocation& kernel);
void moe_dispatch(const Invocation& kernel);
void moe_slot_weights(const Invocation& kernel);
void moe_weight_gradient(const Invocation& kernel);
void pad(const Invocation& kernel);
void pool(const Invocation& kernel);
void pool_gradient(const Invocation& kernel);
void product(const Invocation& kernel);  // einsum, matmul
void reduce(const Invocation& kernel);
void reshape(const Invocation& kernel);
void rms_norm(const Invocation& kernel);
void rms_norm_gradient(const Invocation& kernel);
void row_update(const Invocation& kernel);
void scatter_add(const Invocation& kernel);
void slice(const Invocation& kernel);
void softmax(const Invocation& kernel);
void softmax_gradient(const Invocation& kernel);
void split(const Invocation& kernel);
void top_k(const Invocation& kernel);
void top_k_gradient(const Invocation& kernel);
void transpose(const Invocation& kernel);
void unary(const Invocation& kernel);
void unary_gradient(const Invocation& kernel);
void where(const Invocation& kernel);

}  // namespace defined

// --- indices ---------------------------------------------------------------------------------

/// The dimension that setting `axis` names.
std::size_t axis_of(const Invocation& kernel, const Operand& operand);
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
