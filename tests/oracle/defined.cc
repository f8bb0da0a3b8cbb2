#include "tests/oracle/internal/defined.h"

#include <algorithm>
#include <array>
#include <utility>

namespace foreshard::execute {

ComputeFunction find_defined(std::string_view type) {
  using Line = std::pair<std::string_view, ComputeFunction>;
  // Sorted by name. Not here: loop and condition (their bodies are graphs of their own),
  // optimizer_update (its state lies outside the graph).
  static constexpr auto kTable = std::to_array<Line>({
      {"add_positions", add_positions},
      {"attention", defined::attention},
      {"attention_gradient", defined::attention_gradient},
      {"batch_norm", defined::batch_norm},
      {"batch_norm_gradient", defined::batch_norm_gradient},
      {"batch_norm_gradient_sums", defined::batch_norm_gradient_sums},
      {"batch_statistics", defined::batch_statistics},
      {"bias_dropout_add", bias_dropout_add},
      {"bias_dropout_add_gradient", defined::dropout_gradient},
      {"bias_gelu", bias_gelu},
      {"bias_gelu_gradient", bias_gelu_gradient},
      {"bias_gradient", bias_gradient},
      {"binary", defined::binary},
      {"cast", defined::cast},
      {"concat", defined::concat},
      {"context_attention", context_attention},
      {"context_attention_gradient", context_attention_gradient},
      {"conv", defined::conv},
      {"conv_data_gradient", defined::conv_data_gradient},
      {"conv_weight_gradient", defined::conv_weight_gradient},
      {"cross_entropy", defined::cross_entropy},
      {"cross_entropy_gradient", defined::cross_entropy_gradient},
      {"dequantize", copy},
      {"dropout", defined::dropout},
      {"dropout_gradient", defined::dropout_gradient},
      {"einsum", defined::product},
      {"embedding", embedding},
      {"expand", defined::expand},
      {"expert_bias", defined::expert_bias},
      {"expert_bias_gradient", defined::expert_bias_gradient},
      {"gated_norm", gated_norm},
      {"gated_norm_gradient", gated_norm_gradient},
      {"gather", defined::gather},
      {"gradient_accumulate", copy},
      {"head_norm", head_norm},
      {"head_norm_gradient", head_norm_gradient},
      {"join_heads", join_heads},
      {"join_queries", join_queries},
      {"latent_heads", latent_heads},
      {"latent_heads_gradient", latent_heads_gradient},
      {"layer_norm", defined::layer_norm},
      {"layer_norm_gradient", defined::layer_norm_gradient},
      {"matmul", defined::product},
      {"merge_heads", merge_heads},
      {"merge_heads_gradient", merge_heads_gradient},
      {"moe_combine", defined::moe_combine},
      {"moe_dispatch", defined::moe_dispatch},
      {"moe_slot_weights", defined::moe_slot_weights},
      {"moe_weight_gradient", defined::moe_weight_gradient},
      {"packed_attention", packed_attention},
      {"packed_attention_gradient", packed_attention_gradient},
      {"pad", defined::pad},
      {"pool", defined::pool},
      {"pool_gradient", defined::pool_gradient},
      {"quantize", copy},
      {"reduce", defined::reduce},
      {"reshape", defined::reshape},
      {"rms_norm", defined::rms_norm},
      {"rms_norm_gradient", defined::rms_norm_gradient},
      {"rope", rope},
      {"rope_gradient", rope_gradient},
      {"row_update", defined::row_update},
      {"scatter_add", defined::scatter_add},
      {"slice", defined::slice},
      {"softmax", defined::softmax},
      {"softmax_gradient", defined::softmax_gradient},
      {"split", defined::split},
      {"split_heads", split_heads},
      {"split_queries", split_queries},
      {"ssd_scan", ssd_scan},
      {"ssd_scan_gradient", ssd_scan_gradient},
      {"swiglu", swiglu_forward},
      {"swiglu_gradient", swiglu_backward},
      {"top_k", defined::top_k},
      {"top_k_gradient", defined::top_k_gradient},
      {"transpose", defined::transpose},
      {"unary", defined::unary},
      {"unary_gradient", defined::unary_gradient},
      {"vocabulary_cross_entropy", vocabulary_cross_entropy},
      {"vocabulary_cross_entropy_gradient", vocabulary_cross_entropy_gradient},
      {"vocabulary_loss", copy},
      {"vocabulary_maximum", vocabulary_maximum},
      {"where", defined::where},
  });
  const auto it = std::ranges::lower_bound(kTable, type, {}, &Line::first);
  return it != kTable.end() && it->first == type ? it->second : nullptr;
}

std::size_t axis_of_operand(const Invocation& kernel, const Operand& operand) {
  const std::int64_t axis = kernel.op.settings.integer("axis");
  return at(axis < 0 ? axis + static_cast<std::int64_t>(operand.whole.size()) : axis);
}

Shape local_shape_of(const Operand& operand) {
  Shape shape;
  for (std::size_t d = 0; d < operand.whole.size(); ++d) shape.push_back(extent(operand, d));
  return shape;
}

Around around(const Operand& operand, std::size_t axis) {
  Around result;
  for (std::size_t d = 0; d < operand.whole.size(); ++d) {
    std::int64_t& part = d < axis ? result.before : d == axis ? result.extent : result.after;
    part *= extent(operand, d);
  }
  return result;
}

std::size_t place(const Shape& index, const Shape& shape) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + index[d];
  return at(offset);
}

std::size_t broadcast_place(const Shape& index, const Operand& operand) {
  std::int64_t offset = 0;
  const std::size_t missing = index.size() - operand.whole.size();
  for (std::size_t d = 0; d < operand.whole.size(); ++d) {
    const std::int64_t i = operand.whole[d] == 1 ? 0 : index[d + missing];
    FORESHARD_CHECK(i < extent(operand, d));
    offset = offset * extent(operand, d) + i;
  }
  return at(offset);
}

}  // namespace foreshard::execute
