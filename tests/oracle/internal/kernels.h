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
void head_norm(const Invocation& kernel);
void head_norm_gradient(const Invocation& kernel);

void bias_gelu(const Invocation& kernel);
void bias_gelu_gradient(const Invocation& kernel);
void swiglu_forward(const Invocation& kernel);
void swiglu_backward(const Invocation& kernel);

void bias_dropout_add(const Invocation& kernel);
void add_positions(const Invocation& kernel);
void bias_gradient(const Invocation& kernel);
void copy(const Invocation& kernel);

/// Names the random numbers of dropped attention weights, fused or not.
inline constexpr const char* kAttentionDropout = "attention_dropout";

void packed_attention(const Invocation& kernel);
void packed_attention_gradient(const Invocation& kernel);
void context_attention(const Invocation& kernel);
void context_attention_gradient(const Invocation& kernel);
void gated_norm(const Invocation& kernel);
void gated_norm_gradient(const Invocation& kernel);
void ssd_scan(const Invocation& kernel);
void ssd_scan_gradient(const Invocation& kernel);
void latent_heads(const Invocation& kernel);
void latent_heads_gradient(const Invocation& kernel);
void split_queries(const Invocation& kernel);
void join_queries(const Invocation& kernel);
void rope(const Invocation& kernel);
void rope_gradient(const Invocation& kernel);
void split_heads(const Invocation& kernel);
void join_heads(const Invocation& kernel);
void merge_heads(const Invocation& kernel);
void merge_heads_gradient(const Invocation& kernel);

void embedding(const Invocation& kernel);
void vocabulary_maximum(const Invocation& kernel);
void vocabulary_cross_entropy(const Invocation& kernel);
void vocabulary_cross_entropy_gradient(const Invocation& kernel);

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
