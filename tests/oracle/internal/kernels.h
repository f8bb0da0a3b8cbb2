/// \file
/// The kernels behind compute(), by family.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "tests/oracle/operators.h"

namespace foreshard::execute {

/// One call of compute().
struct Invocation {
  const Operator& op;
  std::span<const Operand> in;
  std::span<Operand> out;
  const KernelContext& context;
};

/// What one type of operator computes.
using KernelFunction = void(const Invocation& kernel);

/// out[...] += product of the inputs (one or two), summed over letters that `out` lacks. Where an
/// operand has fewer entries of a letter than another (grouped heads), entry i stands for the group
/// of entries that share it. `letters`: of the inputs, then of the output.
void contract(std::span<const std::string> letters, std::span<const Operand* const> inputs,
              Operand& output);

/// Values of a row that are normalised together.
struct Normed {
  std::vector<std::int64_t> columns{};  ///< In the slice's row.
  std::size_t norm = 0;                 ///< 0; of heads: 0 of queries, 1 of keys.
  std::int64_t weight = 0;              ///< Where its weights begin in the slice of its norm's.
};
struct RowNorm {
  bool centred = false;   ///< The mean is taken off first.
  std::size_t norms = 1;  ///< Each with a scale of its own.
  std::vector<Normed> groups{};
};
void norm_forward(const Invocation& kernel, const RowNorm& how);
void norm_backward(const Invocation& kernel, const RowNorm& how);
KernelFunction head_norm, head_norm_gradient, bias_gelu, bias_gelu_gradient, swiglu_forward,
    swiglu_backward, bias_dropout_add, add_positions, bias_gradient, copy;

/// Names the random numbers of dropped attention weights, fused or not.
inline constexpr const char* kAttentionDropout = "attention_dropout";

KernelFunction packed_attention, packed_attention_gradient, context_attention,
    context_attention_gradient, gated_norm, gated_norm_gradient, ssd_scan, ssd_scan_gradient,
    latent_heads, latent_heads_gradient, split_queries, join_queries, rope, rope_gradient,
    split_heads, join_heads, merge_heads, merge_heads_gradient, embedding, vocabulary_maximum,
    vocabulary_cross_entropy, vocabulary_cross_entropy_gradient;

// --- indices ---------------------------------------------------------------------------------

inline std::int64_t extent(const Operand& operand, std::size_t dim) {
  return operand.box.end[dim] - operand.box.begin[dim];
}
/// Columns are the last dimension, rows all others.
inline std::int64_t columns(const Operand& operand) {
  return operand.box.end.empty() ? 1 : extent(operand, operand.box.end.size() - 1);
}
inline std::int64_t rows(const Operand& operand) {
  const std::int64_t width = columns(operand);
  return width == 0 ? 0 : static_cast<std::int64_t>(operand.values.size()) / width;
}
/// The last dimension is whole on this rank.
inline void need_whole_rows(const Operand& operand) {
  FORESHARD_CHECK(columns(operand) == operand.whole.back());
}
inline void need_same_slice(const Operand& a, const Operand& b) {
  FORESHARD_CHECK(a.box == b.box);
}

}  // namespace foreshard::execute
