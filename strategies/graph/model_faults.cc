// Checks that hyper-parameters fit together.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/yaml/bounds.h"

#include "strategies/graph/model.h"

namespace foreshard {
namespace {

// A key that has no effect beside the others, and why; empty if there is none.
std::string idle_key(const Model& model) {
  const auto first_set = [](auto... keys) {
    std::string set;
    for (const auto& [key, is_set] : {keys...})
      if (is_set && set.empty()) set = key;
    return set;
  };
  std::string set;
  if (model.window == 0)
    set = first_set(std::pair("window_kind", model.window_kind != WindowKind::kSliding),
                    std::pair("full_layers", model.full_layers != 0),
                    std::pair("full_interval", model.full_interval != 0));
  if (!set.empty()) return set + " has no meaning without a window";
  if (!model.has_latents())
    set = first_set(std::pair("query_rank", model.query_rank != 0),
                    std::pair("rotary_dim", model.rotary_dim != 0),
                    std::pair("value_dim", model.value_dim != 0));
  if (!set.empty()) return set + " has no meaning without latents; give key_value_rank";
  if (model.experts == 0)
    set = first_set(std::pair("experts_per_token", model.experts_per_token != 1),
                    std::pair("expert_groups", model.expert_groups != 1),
                    std::pair("groups_per_token", model.groups_per_token != 1),
                    std::pair("expert_ffn", model.expert_ffn != 0),
                    std::pair("shared_ffn", model.shared_ffn != 0),
                    std::pair("dense_layers", model.dense_layers != 0),
                    std::pair("expert_interval", model.expert_interval != 1),
                    std::pair("router", model.router != Router::kSoftmax),
                    std::pair("router_bias", model.router_bias),
                    std::pair("shared_gate", model.shared_gate));
  if (!set.empty()) return set + " has no meaning without experts";
  if (model.clamped_activation && model.activation != Activation::kSwiglu)
    return "clamped_activation has no meaning without activation: swiglu";
  return {};
}

std::string window_fault(const Model& model) {
  if (model.unrotated_interval > 0 && model.positions != Positions::kRotary)
    return "unrotated_interval has no meaning without rotary positions";
  if (model.unrotated_interval > model.layers)
    return fmt::format("unrotated_interval {} is more than the {} layers: leave it out",
                       model.unrotated_interval, model.layers);
  if (model.window == 0) return {};
  if (model.window >= model.sequence)
    return fmt::format("window {} holds the whole sequence of {} tokens: leave it out",
                       model.window, model.sequence);
  if (model.window_kind == WindowKind::kChunk && model.sequence % model.window != 0)
    return fmt::format("a sequence of {} tokens does not divide into chunks of {} (window)",
                       model.sequence, model.window);
  if (model.full_interval > model.layers)
    return fmt::format("full_interval {} is more than the {} layers: leave it out",
                       model.full_interval, model.layers);
  const auto kinds = model.layer_kinds();
  if (std::ranges::none_of(kinds, &LayerKind::window))
    return fmt::format(
        "full_layers {} and full_interval {} leave none of {} layers with the window",
        model.full_layers, model.full_interval, model.layers);
  return {};
}

std::string samples_fault(const Model& model) {
  if (!model.samples) return {};
  const std::vector<std::int64_t>& lengths = model.samples->lengths;
  if (lengths.back() > model.sequence)
    return fmt::format("a sample of {} tokens is longer than its sequence of {}", lengths.back(),
                       model.sequence);
  if (lengths.front() == model.sequence) return "each sample fills its sequence; leave out samples";
  if (model.encoder || !model.causal)
    return "samples of other lengths than the sequence are of decoders alone; leave out samples";
  if (model.has_packed_samples() && model.mamba)
    return "packed samples in state-space layers are not modelled; leave out samples";
  if (model.has_packed_samples() && model.window > 0 && model.window_kind == WindowKind::kChunk)
    return "packed samples in chunks (window_kind) are not modelled; leave out one of the two";
  return {};
}

std::string frozen_fault(const Model& model) {
  if (!model.frozen) return {};
  const Frozen& frozen = *model.frozen;
  if (!frozen.embedding && !frozen.head && frozen.layers == 0)
    return "frozen names nothing; leave it out";
  if (model.adapters) return "adapters freeze all other parameters; leave out frozen";
  if (model.encoder || model.image || model.head != Head::kLanguage)
    return "frozen parts are modelled of decoders alone; leave out frozen";
  if (frozen.layers > model.layers)
    return fmt::format("frozen.layers {} is more than the {} layers", frozen.layers, model.layers);
  if (model.tied_embeddings && frozen.embedding != frozen.head)
    return "the embedding is the output projection (tied_embeddings): freeze both or none";
  if (frozen.embedding && frozen.head && frozen.layers == model.layers)
    return "all of the model is frozen; set mode: forward for its forward pass";
  if (model.multi_token_prediction > 0)
    return "frozen parts beside multi_token_prediction are not modelled; leave out one of the two";
  return {};
}

std::string latents_fault(const Model& model) {
  if (!model.has_latents()) return {};
  if (model.kv() != model.heads)
    return "with latents each head has keys of its own: leave out kv_heads";
  if (model.value_dim == 0) return "latents need value_dim, the width of a head of the values";
  if (model.positions != Positions::kRotary || model.rotary_dim % 2 != 0 || model.rotary_dim < 2 ||
      model.rotary_dim >= model.head_size())
    return fmt::format(
        "with latents an even part of each head rotates: rotary_dim {} of head_dim {} and "
        "positions: rotary",
        model.rotary_dim, model.head_size());
  if (model.qk_norm != QkNorm::kNone || model.sinks || model.unrotated_interval > 0)
    return "norms of queries and keys, sinks, and layers without rotary positions are not modelled "
           "beside latents; leave out qk_norm, sinks and unrotated_interval";
  if (model.has_qkv_bias())
    return "projections with biases beside latents are not modelled; set bias: false";
  return {};
}

std::string experts_fault(const Model& model) {
  if (model.experts == 0) return {};
  if (model.experts_per_token > model.experts)
    return fmt::format("experts_per_token {} is more than the {} experts of a layer",
                       model.experts_per_token, model.experts);
  if (model.experts % model.expert_groups != 0)
    return fmt::format("{} experts do not form expert_groups {} of equal size", model.experts,
                       model.expert_groups);
  if (model.groups_per_token > model.expert_groups)
    return fmt::format("groups_per_token {} is more than the expert_groups {}",
                       model.groups_per_token, model.expert_groups);
  if (model.experts / model.expert_groups * model.groups_per_token < model.experts_per_token)
    return fmt::format(
        "the groups_per_token {} groups of a token have fewer experts than experts_per_token {}",
        model.groups_per_token, model.experts_per_token);
  if (!model.has_expert_layers())
    return fmt::format(
        "dense_layers {} and expert_interval {} leave none of {} layers with experts",
        model.dense_layers, model.expert_interval, model.layers);
  if (model.expert_ffn > 0 && model.ffn > 0 && !model.has_dense_layers())
    return "every layer has experts, of width expert_ffn: leave out ffn";
  if (model.shared_gate && model.shared_ffn == 0)
    return "shared_gate has no meaning without shared_ffn";
  if (model.has_mlp_bias() && model.shared_ffn > 0)
    return "experts of all tokens whose projections have biases are not modelled; set bias: false";
  return {};
}

// What is wrong with multi_token_prediction; empty if nothing is. Megatron-LM supports it with
// rotary positions or none (megatron/training/arguments.py).
std::string prediction_fault(const Model& model) {
  if (model.multi_token_prediction == 0) return {};
  if (model.positions == Positions::kLearned)
    return "learned positions of the tokens that multi_token_prediction reads are not modelled; "
           "set positions: rotary or none";
  if (model.embedding_norm)
    return "multi_token_prediction normalises embeddings itself; leave out embedding_norm";
  if (model.adapters)
    return "adapters train nothing of multi_token_prediction; leave out one of the two";
  return {};
}

}  // namespace

Result<Model> checked(Model model) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, fmt::format("model '{}': {}", model.name, why)};
  };
  if (const std::string why = yaml::out_of_bounds(model); !why.empty()) return fault(why);
  if (const std::string why = pattern_fault(model); !why.empty()) return fault(why);
  if (model.head_dim <= 0 && model.heads > 0 && model.hidden % model.heads != 0)
    return fault(fmt::format("hidden {} is not divisible by heads {}; give head_dim", model.hidden,
                             model.heads));
  if (model.heads > 0 && model.heads % model.kv() != 0)
    return fault(fmt::format("heads {} is not divisible by kv_heads {}", model.heads, model.kv()));
  if (model.positions == Positions::kLearned && model.position_rows() < model.sequence)
    return fault(fmt::format("position_table {} has no row for each of the sequence's {} tokens",
                             model.position_table, model.sequence));
  if (model.branches != Branches::kSequential && model.norm_places != NormPlaces::kBefore)
    return fault("parallel branches are normalised before, not after; leave out norm_places");
  if (model.adapters && model.has_latents())
    return fault("adapters of attention from latents (key_value_rank) are not modelled");
  if (model.adapters && (model.pooler || model.classes > 0))
    return fault(
        "a pooler or classes that are trained beside adapters are not modelled; leave out "
        "pooler, classes or adapters");
  if (model.adapters && model.adapters->base == AdapterBase::kNf4 && model.experts > 0)
    return fault("experts in 4 bits (adapters.base: nf4) are not modelled; leave out base");
  if (model.experts > 0)
    for (const AdapterTarget target : {AdapterTarget::kMlpUp, AdapterTarget::kMlpDown})
      if (model.has_adapter(target))
        return fault(
            "adapters of experts are not modelled; set adapters.targets: [qkv, attention-out]");
  for (const auto find_fault :
       {fault_in_ends, fault_in_encoder, idle_key, window_fault, samples_fault, frozen_fault,
        latents_fault, experts_fault, prediction_fault})
    if (const std::string why = find_fault(model); !why.empty()) return fault(why);
  return model;
}

}  // namespace foreshard
