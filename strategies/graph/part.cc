#include "strategies/graph/part.h"

#include <algorithm>
#include <array>
#include <utility>

#include "strategies/graph/model.h"

namespace foreshard {

const yaml::Names<LayerPart>& yaml_names(const LayerPart*) {
  static const yaml::Names<LayerPart> names{
      {"norm", LayerPart::kNorm, "The norms around attention and the feed-forward layer."},
      {"qkv", LayerPart::kQkv, "The product that makes queries, keys and values, and their norms."},
      {"rope", LayerPart::kRope, "The rotation of queries and keys."},
      {"core-attention", LayerPart::kCoreAttention,
       "Scores, softmax, dropout, product with the values."},
      {"attention-out", LayerPart::kAttentionOut, "The output projection of attention."},
      {"mlp-gate", LayerPart::kMlpGate,
       "The product of the feed-forward layer's gate, if it is apart."},
      {"mlp-up", LayerPart::kMlpUp,
       "Its first product, with that of the gate if there is one for both."},
      {"activation", LayerPart::kActivation, "What stands between its products."},
      {"mlp-down", LayerPart::kMlpDown, "Its last product."},
      {"routing", LayerPart::kRouting,
       "Router, dispatch to the experts and mixture of their results."},
      {"experts-up", LayerPart::kExpertsUp, "The first product of the routed experts."},
      {"expert-activation", LayerPart::kExpertActivation, "What stands between their products."},
      {"experts-down", LayerPart::kExpertsDown, "Their last product."},
      {"shared-experts", LayerPart::kSharedExperts, "The experts that every token passes."},
      {"mamba", LayerPart::kMamba, "Convolution, scan and gated norm of a Mamba layer."},
      {"residual", LayerPart::kResidual,
       "What adds a branch to the stream, with bias and dropout."},
      {"adapters", LayerPart::kAdapters, "What the adapters of linear layers compute."},
  };
  return names;
}

bool keeps_results(LayerPart part) {
  return part == LayerPart::kCoreAttention;
}

const yaml::Names<Capture>& yaml_names(const Capture*) {
  static const yaml::Names<Capture> names{
      {"attention", Capture::kAttention,
       "Attention, from the norm before it to the sum with the stream."},
      {"mlp", Capture::kMlp, "A dense feed-forward layer likewise."},
      {"router", Capture::kRouter, "From the norm before the router to the choice of experts."},
      {"mamba", Capture::kMamba, "A Mamba layer, from its norm to the sum with the stream."},
      {"step", Capture::kStep,
       "All passes of the step; experts then have slots for a fixed number."},
  };
  return names;
}

std::string_view lacking(const Model& model, Capture one) {
  switch (one) {
    case Capture::kAttention:
      return model.has_mixer(Mixer::kAttention) ? "" : "attention";
    case Capture::kMlp:
      return model.has_dense_layers() ? "" : "dense feed-forward layers";
    case Capture::kRouter:
      return model.experts > 0 ? "" : "experts";
    case Capture::kMamba:
      return model.has_mixer(Mixer::kMamba) ? "" : "Mamba layers";
    case Capture::kNone:
    case Capture::kStep:
      break;
  }
  return "";
}

namespace {

constexpr std::array kMegatronScopes{
    std::pair("attn", Capture::kAttention), std::pair("mlp", Capture::kMlp),
    std::pair("moe_router", Capture::kRouter), std::pair("mamba", Capture::kMamba),
    std::pair("full_iteration", Capture::kStep)};

}  // namespace

std::optional<Capture> find_megatron_scope(std::string_view word) {
  for (const auto& [theirs, ours] : kMegatronScopes)
    if (word == theirs) return ours;
  return std::nullopt;
}

std::string_view megatron_scope(Capture one) {
  for (const auto& [theirs, ours] : kMegatronScopes)
    if (one == ours) return theirs;
  return {};
}

bool is_captured(Capture one, const std::vector<Capture>& captured) {
  const auto has = [&](Capture wanted) {
    return std::ranges::find(captured, wanted) != captured.end();
  };
  return has(Capture::kStep) || (one != Capture::kNone && has(one));
}

}  // namespace foreshard
