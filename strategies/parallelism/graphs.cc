#include "strategies/parallelism/graphs.h"

#include <algorithm>

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {
namespace {

// Names of the pieces of an axis, by what their ranks hold: parts of one expert, other experts, or
// copies.
struct PieceNames {
  const char* parts;
  const char* experts;
  const char* copies;
};

// Appends the pieces of an axis of `size` ranks that are `stride` apart among the flattened ranks
// (mesh_axes.h). A piece of one rank is left out.
void append_pieces(std::vector<MeshAxis>& mesh, const Strategy& strategy, std::int64_t stride,
                   std::int64_t size, const PieceNames& names) {
  const auto within = [&](std::int64_t border) {
    return std::clamp<std::int64_t>(border / stride, 1, size);
  };
  const std::int64_t parts = within(expert_tensor_ways(strategy));
  const std::int64_t experts = within(expert_ranks(strategy));
  if (parts > 1) mesh.push_back({names.parts, parts});
  if (experts > parts) mesh.push_back({names.experts, experts / parts});
  if (size > experts) mesh.push_back({names.copies, size / experts});
}

}  // namespace

std::vector<MeshAxis> mesh_of(const Strategy& strategy, const std::vector<MeshAxis>& others) {
  std::vector<MeshAxis> mesh;
  const std::int64_t tensor = strategy.tensor_parallel;
  const std::int64_t heads = strategy.context_heads;
  const std::int64_t context = strategy.context_parallel;
  for (const std::string& name : strategy.rank_order) {
    if (name == "tensor" && tensor > 1) {
      append_pieces(mesh, strategy, 1, tensor, {"tensor", "tensor_experts", "tensor_copies"});
    } else if (name == "data") {
      append_pieces(mesh, strategy, tensor, heads,
                    {"context_heads_parts", "context_heads_experts", "context_heads"});
      append_pieces(mesh, strategy, tensor * heads, context / heads,
                    {"context_parts", "context_experts", "context"});
      append_pieces(mesh, strategy, tensor * context,
                    strategy.data_parallel / strategy.shard_replicas,
                    {"expert_parts", "expert", "data"});
      if (mesh.empty() || mesh.back().name != name) mesh.push_back({name, 1});
      if (strategy.shard_replicas > 1) mesh.push_back({"replica", strategy.shard_replicas});
      if (leaves_experts_whole(strategy)) mesh.push_back({std::string(kWholeExperts), 1});
    } else {
      mesh.push_back({name, name == "tensor" ? tensor : strategy.pipeline_parallel});
    }
  }
  mesh.insert(mesh.end(), others.begin(), others.end());
  return mesh;
}

// Whether the backward pass recomputes the experts' activations from the results of their products.
static bool makes_activations(const Strategy& strategy) {
  const auto makes = [&](LayerPart part) {
    return std::ranges::find(strategy.recompute_parts, part) != strategy.recompute_parts.end();
  };
  return strategy.mode == Mode::kTrain && strategy.recompute == Recompute::kSelective &&
         makes(LayerPart::kExpertActivation) && !makes(LayerPart::kExpertsUp);
}

TransformerOptions transformer_options(const Strategy& strategy) {
  const Framework& framework = *strategy.framework;
  const bool sequence_parallel = strategy.sequence_parallel && strategy.tensor_parallel > 1;
  return {
      .mesh = mesh_of(strategy),
      .batch = strategy.micro_batch * strategy.data_parallel,
      .sequence_parallel = sequence_parallel,
      .context_exchange = strategy.context_exchange,
      .capacity_factor = strategy.capacity_factor,
      .attention = framework.attention,
      .pointwise = framework.pointwise,
      .gate_apart = framework.gate_apart,
      .weights_at_activation = framework.weights_at_activation,
      .experts_apart = framework.expert_product_time.has_value(),
      .counts_on_host = framework.counts_tokens_on_host && !strategy.captures(Capture::kStep),
      .sorts_slots = (strategy.expert_parallel > 1 || sequence_parallel) &&
                     strategy.token_dispatcher == TokenDispatcher::kAllToAll,
      .quantized_dispatch = framework.quantized_dispatch,
      .quantized_expert_inputs = framework.quantized_expert_inputs && makes_activations(strategy),
      .attention_copies = framework.attention_copies.forward,
      .attention_gradient_copies = framework.attention_copies.backward,
      .fp8_attention = framework.fp8_attention,
      .fp8_activation_inputs = framework.fp8_activation_inputs,
      .fused_cross_entropy = framework.fused_cross_entropy,
      .logged_losses = framework.logged_losses,
      .vocabulary_multiple = framework.vocabulary_multiple * strategy.tensor_parallel,
      .dtype = strategy.precision,
      .quantization = strategy.quantization,
      .unquantized = strategy.unquantized_layers};
}

BackwardPass backward_pass(const Strategy& strategy) {
  return strategy.mode == Mode::kForward ? BackwardPass::kNone : BackwardPass::kFollows;
}

BackwardOptions backward_options(const Strategy& strategy) {
  const Framework& framework = *strategy.framework;
  return {.fused_accumulation = framework.fused_gradient_accumulation,
          .accumulator = framework.gradients_of(strategy.precision),
          .casts = framework.accumulation_casts};
}

TransformerGraphs graphs_of(const Model& model, const Strategy& strategy) {
  Model used = model;
  if (strategy.mode == Mode::kForward) {  // dropout is for training alone
    used.dropout = false;
    if (used.adapters) used.adapters->dropout = false;
  }
  TransformerOptions options = transformer_options(strategy);
  options.capacity_factor = strategy.expert_slots(model);
  return transformer_graphs(used, options);
}

}  // namespace foreshard
