#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/text.h"

#include "strategies/graph/operators/definition.h"
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard {

std::span<const OperatorDefinition> operator_definitions() {
  // Sorted by name.
  static const std::vector<OperatorDefinition> table{
      operators::add_positions(),
      operators::attention(),
      operators::attention_gradient(),
      operators::batch_norm(),
      operators::batch_norm_gradient(),
      operators::batch_norm_gradient_sums(),
      operators::batch_statistics(),
      operators::bias_dropout_add(),
      operators::bias_dropout_add_gradient(),
      operators::bias_gelu(),
      operators::bias_gelu_gradient(),
      operators::bias_gradient(),
      operators::binary(),
      operators::cast(),
      operators::concat(),
      operators::condition(),
      operators::context_attention(),
      operators::context_attention_gradient(),
      operators::conv(),
      operators::conv_data_gradient(),
      operators::conv_weight_gradient(),
      operators::cross_entropy(),
      operators::cross_entropy_gradient(),
      operators::dequantize(),
      operators::dropout(),
      operators::dropout_gradient(),
      operators::einsum(),
      operators::embedding(),
      operators::expand(),
      operators::expert_bias(),
      operators::expert_bias_gradient(),
      operators::gated_norm(),
      operators::gated_norm_gradient(),
      operators::gather(),
      operators::gradient_accumulate(),
      operators::head_norm(),
      operators::head_norm_gradient(),
      operators::join_heads(),
      operators::join_queries(),
      operators::latent_heads(),
      operators::latent_heads_gradient(),
      operators::layer_norm(),
      operators::layer_norm_gradient(),
      operators::loop(),
      operators::matmul(),
      operators::merge_heads(),
      operators::merge_heads_gradient(),
      operators::moe_combine(),
      operators::moe_dispatch(),
      operators::moe_slot_weights(),
      operators::moe_weight_gradient(),
      operators::optimizer_update(),
      operators::packed_attention(),
      operators::packed_attention_gradient(),
      operators::pad(),
      operators::pool(),
      operators::pool_gradient(),
      operators::quantize(),
      operators::reduce(),
      operators::reshape(),
      operators::rms_norm(),
      operators::rms_norm_gradient(),
      operators::rope(),
      operators::rope_gradient(),
      operators::row_update(),
      operators::scatter_add(),
      operators::slice(),
      operators::softmax(),
      operators::softmax_gradient(),
      operators::split(),
      operators::split_heads(),
      operators::split_queries(),
      operators::ssd_scan(),
      operators::ssd_scan_gradient(),
      operators::swiglu(),
      operators::swiglu_gradient(),
      operators::top_k(),
      operators::top_k_gradient(),
      operators::transpose(),
      operators::unary(),
      operators::unary_gradient(),
      operators::vocabulary_cross_entropy(),
      operators::vocabulary_cross_entropy_gradient(),
      operators::vocabulary_loss(),
      operators::vocabulary_maximum(),
      operators::where(),
  };
  return table;
}

const OperatorDefinition* find_operator(std::string_view name) {
  const auto all = operator_definitions();
  const auto it = std::ranges::lower_bound(all, name, {}, &OperatorDefinition::name);
  return it != all.end() && it->name == name ? &*it : nullptr;
}

std::string unknown_operator(std::string_view name) {
  std::vector<std::string> names;
  for (const OperatorDefinition& each : operator_definitions()) names.emplace_back(each.name);
  std::string message = "unknown operator '" + std::string(name) + "'";
  if (const auto nearest = nearest_name(name, names))
    message += "; did you mean '" + *nearest + "'?";
  return message + " See `foreshard catalog operators` for all of them";
}

bool Gradients::wants(std::size_t index) const {
  return index < op().inputs.size() && operators::is_float(tensor(input(index)).dtype);
}

std::vector<TensorId> Gradients::of_outputs_or_zero() {
  std::vector<TensorId> all;
  for (std::size_t i = 0; i < op().outputs.size(); ++i) {
    TensorId gradient = of_output(i);
    if (!gradient.valid())
      gradient = add("unary", "zero" + std::to_string(i), {output(i)},
                     {{"operation", std::string("scale")}, {"value", 0.0}})[0];
    all.push_back(gradient);
  }
  return all;
}

}  // namespace foreshard
