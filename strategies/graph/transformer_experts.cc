// The branch after attention: a feed-forward layer, or a mixture of experts.
#include <cmath>
#include <numeric>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

TensorId BlockBuilder::activated(const std::string& name, std::vector<TensorId> up, bool weighted) {
  if (!gated())
    return added({.type = "unary",
                  .name = name,
                  .inputs = std::move(up),
                  .settings = {{"operation", std::string(squares() ? "squared_relu" : "gelu")}}});
  // PyTorch's clamps save their inputs, and the activation saves the clamped values.
  const std::size_t read = up.size() - (weighted ? 1 : 0);
  if (model_.clamped_activation && eager(options_.pointwise.clamp))
    for (std::size_t i = 0; i < read; ++i)
      up[i] = added({.type = "unary",
                     .name = name + (i == 0 ? "_clamp" : "_clamp_up"),
                     .inputs = {up[i]},
                     .settings = {{"operation", std::string("clip")}, {"halves", read == 1}}});
  return added(
      {.type = "swiglu",
       .name = name,
       .inputs = std::move(up),
       .settings = {{"eager", eager(options_.pointwise.activation)}, {"weighted", weighted}}});
}

TensorId BlockBuilder::mlp(const std::string& name, TensorId x, std::int64_t width) {
  const auto begin_own = [&](LayerPart part) {
    begin(name == "mlp" ? part : LayerPart::kSharedExperts);
  };
  std::vector<TensorId> gate;
  if (gated() && options_.gate_apart) {
    begin_own(LayerPart::kMlpGate);
    gate.push_back(matmul(name + "_gate", x, model_.hidden, width, {kWhole, tensor()}));
    if (model_.has_mlp_bias()) fused_bias(name + "_gate", gate.front(), width, tensor());
    gate.front() =
        adapted(AdapterTarget::kMlpUp, name + "_gate", gate.front(), x, {kWhole, tensor()});
  }
  const std::int64_t up_width = gated() && gate.empty() ? 2 * width : width;
  begin_own(LayerPart::kMlpUp);
  TensorId up = matmul(name + "_up", x, model_.hidden, up_width, {kWhole, tensor()});
  if (model_.has_mlp_bias() && gated()) fused_bias(name + "_up", up, up_width, tensor());
  up = adapted(AdapterTarget::kMlpUp, name + "_up", up, x, {kWhole, tensor()});
  begin_own(LayerPart::kActivation);
  TensorId between;
  if (model_.has_mlp_bias() && !gated()) {
    between = added({.type = "bias_gelu",
                     .name = name + "_activation",
                     .inputs = {up, parameter(name + "_up.bias", {width}, {tensor()})}});
  } else {
    gate.push_back(up);
    if (quantization_ != Quantization::kNone && options_.fp8_activation_inputs)
      for (const TensorId read : gate) in_fp8(read, true);
    between = activated(name + "_activation", std::move(gate));
  }
  begin_own(LayerPart::kMlpDown);
  const TensorId down = matmul(name + "_down", between, width, model_.hidden, {tensor(), kWhole});
  return adapted(AdapterTarget::kMlpDown, name + "_down", down, between, {tensor(), kWhole});
}

// The router's product is not quantized.
std::vector<TensorId> BlockBuilder::routed(TensorId tokens) {
  const bool is_quantized = quantization_ != Quantization::kNone;
  quantize(false);
  const TensorId logits = matmul("router", tokens, model_.hidden, model_.experts, {kWhole, kWhole});
  quantize(is_quantized);
  if (model_.router_bias) fused_bias("router", logits, model_.experts, kWhole);
  const TensorId probabilities =
      model_.router == Router::kSoftmax
          ? added({.type = "softmax", .name = "router_softmax", .inputs = {logits}})
          : added({.type = "unary",
                   .name = "router_sigmoid",
                   .inputs = {logits},
                   .settings = {{"operation", std::string("sigmoid")}}});
  return all_added({.type = "top_k",
                    .name = "top_k",
                    .inputs = {probabilities},
                    .settings = {{"k", model_.experts_per_token},
                                 {"groups", model_.expert_groups},
                                 {"groups_of_k", model_.groups_per_token},
                                 {"eager", eager(options_.pointwise.routing)}},
                    .output_names = {"router_weights", "router_choice"}});
}

TensorId BlockBuilder::shared_experts(TensorId x) {
  const TensorId shared = mlp("shared", x, model_.shared_ffn);
  if (!model_.shared_gate) return shared;
  const TensorId gate =
      added({.type = "unary",
             .name = "shared_experts_gate_sigmoid",
             .inputs = {matmul("shared_experts_gate", x, model_.hidden, 1, {kWhole, kWhole})},
             .settings = {{"operation", std::string("sigmoid")}}});
  return added({.type = "binary",
                .name = "shared_gated",
                .inputs = {shared, gate},
                .settings = {{"operation", std::string("mul")}}});
}

std::vector<std::vector<Axis>> BlockBuilder::sequence_runs() const {
  std::vector<std::vector<Axis>> runs;
  for (const Axis axis : sequence()) {
    if (runs.empty() || held_along(runs.back().back()) != held_along(axis)) runs.emplace_back();
    runs.back().push_back(axis);
  }
  return runs;
}

// Shapes: tokens are [batch, tokens, width]; if sequences are split, [batch, parts..., tokens,
// width] with one dimension of parts for each of sequence_runs(). Slots are the same with a first
// dimension of experts, and slots in place of tokens.
TensorId BlockBuilder::experts_branch(TensorId x) {
  begin(LayerPart::kRouting);
  const std::int64_t hidden = model_.hidden;
  const auto runs = sequence_runs();
  const std::int64_t length = model_.sequence / ways(sequence(), options_.mesh);
  const auto slots = static_cast<std::int64_t>(
      std::ceil(options_.capacity_factor * static_cast<double>(length * model_.experts_per_token) /
                static_cast<double>(model_.experts)));
  const std::int64_t capacity = std::min(length, slots);
  std::vector<std::int64_t> in_parts{options_.batch};
  for (const auto& run : runs) in_parts.push_back(ways(run, options_.mesh));
  in_parts.insert(in_parts.end(), {length, hidden});
  const TensorId tokens = runs.empty() ? x : reshaped("tokens", x, in_parts);

  const auto chosen = routed(tokens);
  capture(Capture::kNone);

  // Layouts of slots: with the tokens that fill them, and with their experts.
  const std::vector<Axis>& expert_axes = expert_axes_;
  const std::vector<Axis>& width_axes = expert_tensor_axes_;
  std::vector<std::vector<Axis>> at_tokens{kWhole, batch()};
  std::vector<std::vector<Axis>> at_experts{expert_axes,
                                            without(batch(), {expert_axes, width_axes})};
  for (const auto& run : runs) {
    at_tokens.push_back(run);
    at_experts.push_back(without(run, {expert_axes, width_axes}));
  }
  for (auto* lies : {&at_tokens, &at_experts}) lies->resize(lies->size() + 2);

  const bool is_quantized = quantization_ != Quantization::kNone;
  const bool travels_quantized = is_quantized && options_.quantized_dispatch;
  const bool weighs_early = options_.weights_at_activation && gated();
  std::vector<TensorId> weights;  // only if the experts' activation multiplies by them
  if (weighs_early) {
    weights.push_back(added({.type = "moe_slot_weights",
                             .name = "slot_weights",
                             .inputs = {chosen[0], chosen[1]},
                             .settings = {{"experts", model_.experts}, {"capacity", capacity}}}));
    graph_[weights.front()].pinned = Attribute{.dims = at_tokens, .partial = {}};
  }
  const TensorId dispatched =
      added({.type = "moe_dispatch",
             .name = "dispatch",
             .inputs = {travels_quantized ? narrowed(tokens) : tokens, chosen[1]},
             .settings = {{"experts", model_.experts},
                          {"capacity", capacity},
                          {"counts_on_host", options_.counts_on_host},
                          {"eager", eager(options_.pointwise.permutation)}}});
  graph_[dispatched].pinned = Attribute{.dims = at_tokens, .partial = {}};
  const bool has_several = model_.experts > ways(expert_axes, options_.mesh);
  const auto sorted = [&](const std::string& name, TensorId of) {
    if (!options_.sorts_slots || !has_several) return of;
    std::vector<std::int64_t> order(graph_[of].shape.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    return added(
        {.type = "transpose", .name = name, .inputs = {of}, .settings = {{"order", order}}});
  };
  const TensorId moved_tokens = moved("arrived", dispatched, at_experts);
  // The weights move right after the tokens: whatever waits for one also waits for the other.
  if (weighs_early) weights.front() = moved("arrived_weights", weights.front(), at_experts);
  const TensorId arrived = sorted("sorted", moved_tokens);
  const std::string letters = "eb" + std::string("pqr").substr(0, runs.size()) + "t";
  const auto expert_product = [&](const std::string& name, TensorId of, std::int64_t in,
                                  std::int64_t out, std::vector<std::vector<Axis>> dims,
                                  bool biased) {
    std::vector<TensorId> inputs{of, parameter(name + ".weight", {model_.experts, in, out}, dims)};
    if (biased)
      inputs.push_back(parameter(name + ".bias", {model_.experts, out}, {dims[0], dims[2]}));
    const std::string terms = biased ? "i,eio,eo->" : "i,eio->";
    return product({.type = "einsum",
                    .name = name,
                    .inputs = std::move(inputs),
                    .settings = {{"equation", letters + terms + letters + "o"},
                                 {"apart", options_.experts_apart}}});
  };
  const std::int64_t width = model_.expert_width();
  begin(LayerPart::kExpertsUp);
  const TensorId up = expert_product("experts_up", arrived, hidden, gated() ? 2 * width : width,
                                     {expert_axes, kWhole, width_axes}, model_.has_mlp_bias());
  // Not modelled: in the forward pass the kernel of the activation itself quantizes, and reads the
  // unquantized input.
  const bool keeps_quantized = is_quantized && options_.quantized_expert_inputs;
  const TensorId kept = keeps_quantized ? narrowed(up) : up;
  begin(LayerPart::kExpertActivation);
  std::vector<TensorId> activates{keeps_quantized ? widened(kept) : kept};
  activates.insert(activates.end(), weights.begin(), weights.end());
  const TensorId between = activated("experts_activation", std::move(activates), weighs_early);
  begin(LayerPart::kExpertsDown);
  // Not modelled: the weights also multiply biases that the product adds.
  const bool adds_bias = model_.has_mlp_bias() && weighs_early &&
                         eager(options_.pointwise.expert_bias) &&
                         ways(width_axes, options_.mesh) == 1;
  TensorId down =
      expert_product("experts_down", between, width, hidden, {expert_axes, width_axes, kWhole},
                     model_.has_mlp_bias() && !adds_bias);
  if (adds_bias)
    down = added(
        {.type = "expert_bias",
         .name = "experts_down_bias",
         .inputs = {down,
                    parameter("experts_down.bias", {model_.experts, hidden}, {expert_axes, kWhole}),
                    weights.front()}});
  begin(LayerPart::kRouting);
  const TensorId leaving = sorted("unsorted", down);
  // Gradients arrive at the experts in 16 bits, and are quantized there. Not modelled: the same for
  // experts that are split over ranks; their gradients travel quantized here.
  if (is_quantized && ways(width_axes, options_.mesh) == 1)
    graph_[leaving].pinned = Attribute{.dims = at_experts, .partial = {}};
  std::vector<TensorId> returned{moved("returned", leaving, at_tokens), chosen[1]};
  if (!weighs_early) returned.push_back(chosen[0]);
  TensorId mixed = added({.type = "moe_combine",
                          .name = "combine",
                          .inputs = std::move(returned),
                          .settings = {{"eager", eager(options_.pointwise.permutation)}}});
  if (!runs.empty()) mixed = reshaped("mixed", mixed, this->tokens(hidden));
  if (model_.shared_ffn == 0) return mixed;
  const TensorId shared = shared_experts(x);
  begin(LayerPart::kResidual);
  return sum("experts_sum", mixed, shared);
}

}  // namespace foreshard::internal
