// The kinds of a model's layers (model.h).
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "strategies/graph/model.h"

namespace foreshard {

bool has_one_branch(LayerKind kind) {
  return kind.mixer == Mixer::kNone || !kind.feed_forward;
}

namespace {

LayerKind kind_of(char letter) {
  if (letter == kExpertsLetter) return {.experts = true, .mixer = Mixer::kNone};
  if (letter == kFeedForwardLetter) return {.mixer = Mixer::kNone};
  return {.mixer = letter == kMambaLetter ? Mixer::kMamba : Mixer::kAttention,
          .feed_forward = false};
}

// The kind of a layer in a model without a pattern.
LayerKind block_of(const Model& model, std::int64_t layer) {
  const auto ends = [&](std::int64_t interval) {
    return interval > 0 && (layer + 1) % interval == 0;
  };
  const std::int64_t encoder_layers = model.encoder_layers();
  return {
      .experts = model.experts > 0 && layer >= model.dense_layers && ends(model.expert_interval),
      .window = model.window > 0 && layer >= model.full_layers && !ends(model.full_interval),
      .unrotated = ends(model.unrotated_interval),
      .encoder = layer < encoder_layers,
      .ends_encoder = layer + 1 == encoder_layers,
      .first = (model.encoder && layer == encoder_layers) ||
               (layer == 0 && model.positions == Positions::kRelative)};
}

// Which keys of Mamba, attention, feed-forward layers or experts are set although no layer of the
// pattern has them; empty if none is.
std::string idle_beside_pattern(const Model& model) {
  const auto has = [&](char letter) { return model.pattern.find(letter) != std::string::npos; };
  if (!has(kMambaLetter) && model.mamba)
    return "mamba has no meaning: pattern has no M; leave it out";
  if (!has(kExpertsLetter) && model.experts > 0)
    return "experts has no meaning: pattern has no E; leave it out";
  if (!has(kFeedForwardLetter) && !has(kExpertsLetter) && model.ffn > 0)
    return "ffn has no meaning: pattern has no - and no E; leave it out";
  if (!has(kFeedForwardLetter) && !has(kExpertsLetter) &&
      (model.activation != Activation::kGelu || model.mlp_bias))
    return "activation and mlp_bias have no meaning: pattern has no - and no E; leave them out";
  if (has(kAttentionLetter)) return {};
  if (model.heads > 0 || model.kv_heads > 0 || model.head_dim > 0 || model.has_latents())
    return "pattern has no *, so that no layer has attention: set heads: 0 and leave out kv_heads, "
           "head_dim and key_value_rank";
  if (model.positions == Positions::kRotary)
    return "positions: rotary has no meaning: pattern has no *; set positions: none";
  if (model.sinks || model.qk_norm != QkNorm::kNone || model.qkv_bias || model.attention_bias ||
      model.attention_out_bias || !model.key_bias)
    return "pattern has no *, so that no layer has attention: leave out sinks, qk_norm, qkv_bias, "
           "attention_bias, attention_out_bias and key_bias";
  return {};
}

// Which keys that are set are not modelled beside a pattern; empty if none is.
std::string unmodelled_beside_pattern(const Model& model) {
  if (model.dense_layers > 0 || model.expert_interval != 1)
    return "pattern says which layers have experts: leave out dense_layers and expert_interval";
  if (model.window > 0 || model.unrotated_interval > 0)
    return "windows of attention and layers without rotary positions are not modelled beside a "
           "pattern; leave out window and unrotated_interval";
  if (model.branches != Branches::kSequential || model.norm_places != NormPlaces::kBefore)
    return "layers of a pattern have one branch, normalised before; leave out branches and "
           "norm_places";
  if (model.positions == Positions::kRelative)
    return "relative positions are not modelled beside a pattern; set positions: none or rotary";
  if (model.encoder || !model.causal)
    return "a pattern is of decoders alone: leave out encoder and causal";
  if (model.adapters) return "adapters are not modelled beside a pattern; leave out one of the two";
  if (model.multi_token_prediction > 0)
    return "modules that predict further tokens are not modelled beside a pattern; leave out "
           "multi_token_prediction";
  return {};
}

}  // namespace

std::string pattern_fault(const Model& model) {
  const bool squares = model.activation == Activation::kSquaredRelu;
  if (squares && model.has_mlp_bias())
    return "activation: squared-relu with biases is not modelled; set bias: false";
  if (model.pattern.empty()) {
    if (model.mamba) return "mamba has no meaning without a pattern that has M; give pattern";
    return model.heads > 0 ? "" : "heads is 0, and layers have attention; give 1 or more";
  }
  if (auto why = pattern_fault(model.pattern, model.layers); !why.empty()) return why;
  const auto has = [&](char letter) { return model.pattern.find(letter) != std::string::npos; };
  if (has(kMambaLetter) && !model.mamba)
    return "pattern has M: give the sizes of its layers (mamba)";
  if (has(kExpertsLetter) && model.experts == 0)
    return "pattern has E, but the model no experts: give experts";
  if (has(kAttentionLetter) && model.heads == 0)
    return "pattern has *, and heads is 0: give 1 or more";
  if (auto why = idle_beside_pattern(model); !why.empty()) return why;
  return unmodelled_beside_pattern(model);
}

std::string name_of(LayerKind kind) {
  const std::string prefix =
      std::string(kind.frozen ? "frozen_" : "") + (kind.unquantized ? "unquantized_" : "");
  if (has_one_branch(kind)) {
    const bool attends = kind.mixer == Mixer::kAttention;
    if (kind.feed_forward) return prefix + (kind.experts ? "experts_layer" : "mlp_layer");
    return prefix + (attends ? "attention_layer" : "mamba_layer");
  }
  return prefix + (kind.experts ? "expert_" : "") + (kind.window ? "window_" : "") +
         (kind.unrotated ? "unrotated_" : "") + (kind.first ? "first_" : "") +
         (kind.ends_encoder ? "last_" : "") + (kind.encoder ? "encoder_" : "") + "layer";
}

LayerKind Model::kind_of_layer(std::int64_t layer, const UnquantizedLayers& unquantized) const {
  LayerKind kind =
      pattern.empty() ? block_of(*this, layer) : kind_of(pattern[static_cast<std::size_t>(layer)]);
  kind.frozen = frozen && layer < frozen->layers;
  kind.unquantized = layer < unquantized.first || layer >= layers - unquantized.last;
  return kind;
}

std::vector<LayerKind> Model::layer_kinds(const UnquantizedLayers& unquantized) const {
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerKind kind = kind_of_layer(layer, unquantized);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  std::ranges::sort(kinds);
  return kinds;
}

bool Model::has_dense_layers() const {
  return std::ranges::any_of(layer_kinds(),
                             [](LayerKind kind) { return kind.feed_forward && !kind.experts; });
}

bool Model::has_expert_layers() const {
  return std::ranges::any_of(layer_kinds(), &LayerKind::experts);
}

bool Model::has_mixer(Mixer mixer) const {
  return std::ranges::any_of(layer_kinds(), [&](LayerKind kind) { return kind.mixer == mixer; });
}

std::size_t Model::kind_index(std::int64_t layer, const UnquantizedLayers& unquantized) const {
  const auto kinds = layer_kinds(unquantized);
  const auto kind = std::ranges::find(kinds, kind_of_layer(layer, unquantized));
  return static_cast<std::size_t>(kind - kinds.begin());
}

}  // namespace foreshard
