// State-space models and hybrids with attention, feed-forward layers and experts.
// Source: huggingface/transformers: models/nemotron_h and models/mamba2, configuration_*.py and
// modeling_*.py.
// Not modelled: Transformers' Mamba-2 normalises the scan's result over all heads, not by group; on
// one rank that costs the same.
#include <fmt/format.h>

#include "strategies/graph/internal/hf_types.h"

namespace foreshard::internal {
namespace {

constexpr const char* kBlocks = "layers_block_type";
constexpr const char* kPattern = "hybrid_override_pattern";

// The letter of a word in "layers_block_type"; 0: there is no such word.
char letter_of(std::string_view word) {
  if (word == "mamba" || word == "linear_attention") return kMambaLetter;
  if (word == "attention" || word == "full_attention") return kAttentionLetter;
  if (word == "mlp") return kFeedForwardLetter;
  return word == "moe" ? kExpertsLetter : '\0';
}

// The pattern of the layers; empty after a fault.
std::string pattern_in(HfKeys& keys) {
  std::string pattern;
  if (const auto* blocks = keys.find(kBlocks); blocks != nullptr && blocks->is_array()) {
    for (const auto& block : *blocks) {
      const char letter = block.is_string() ? letter_of(block.get<std::string>()) : '\0';
      if (letter == '\0') {
        keys.refuse(fmt::format("'{}' has {}: modelled are mamba, attention, mlp and moe", kBlocks,
                                block.dump()));
        return {};
      }
      pattern += letter;
    }
  } else if (const auto* text = keys.find(kPattern); text != nullptr && text->is_string()) {
    pattern = text->get<std::string>();
  }
  if (pattern.empty())
    keys.fault(fmt::format("neither '{}' nor '{}' says what the layers are", kPattern, kBlocks));
  return pattern;
}

// Refuses Mamba layers whose projections have biases.
void refuse_biases(HfKeys& keys) {
  for (const char* key : {"use_bias", "mamba_proj_bias"})
    if (keys.flag(key, false))
      keys.refuse(fmt::format(
          "'{}' is true: biases of the projections of Mamba layers are not modelled", key));
}

Mamba mamba_in(HfKeys& keys, const Mamba& otherwise, const char* heads, const char* head_dim,
               const char* state) {
  refuse_biases(keys);
  Mamba mamba;
  mamba.heads = keys.size({heads, otherwise.heads});
  mamba.head_dim = keys.size({head_dim, otherwise.head_dim});
  mamba.groups = keys.size({"n_groups mamba_n_groups", otherwise.groups});
  mamba.state = keys.size({state, otherwise.state});
  mamba.conv = keys.size({"conv_kernel mamba_d_conv", otherwise.conv});
  mamba.conv_bias = keys.flag("use_conv_bias", otherwise.conv_bias);
  mamba.chunk = keys.size({"chunk_size mamba_chunk_size", otherwise.chunk});
  if (mamba.heads % mamba.groups != 0)
    keys.fault(fmt::format("{} heads of Mamba layers ('{}') do not form {} groups ('n_groups')",
                           mamba.heads, heads, mamba.groups));
  return mamba;
}

void read_nemotron_experts(HfKeys& keys, Model& model) {
  if (keys.find("moe_latent_size") != nullptr)
    keys.refuse(
        "'moe_latent_size': experts that read a narrower stream than the layers are not modelled");
  model.experts = keys.size({"n_routed_experts", 8});
  model.experts_per_token = keys.size({"num_experts_per_tok", 2});
  model.expert_groups = keys.size({"n_group", 1});
  model.groups_per_token = keys.size({"topk_group", 1});
  model.expert_ffn = keys.size({"moe_intermediate_size", 7688});
  model.shared_ffn = keys.size({"moe_shared_expert_intermediate_size", 7688});
  model.router = Router::kSigmoid;
}

void read_nemotron_h(HfKeys& keys, Model& model) {
  model.pattern = pattern_in(keys);
  if (!keys.has("num_hidden_layers")) model.layers = std::ssize(model.pattern);
  if (const auto why = pattern_fault(model.pattern, model.layers); !why.empty())
    return keys.fault(fmt::format("'{}': {}", kPattern, why));
  const auto has = [&](char letter) { return model.pattern.find(letter) != std::string::npos; };
  if (has(kMambaLetter))
    model.mamba = mamba_in(keys, {.heads = 128, .groups = 8, .chunk = 128}, "mamba_num_heads",
                           "mamba_head_dim", "ssm_state_size");
  if (has(kExpertsLetter)) read_nemotron_experts(keys, model);
  if (!has(kFeedForwardLetter)) model.ffn = 0;
  if (!has(kAttentionLetter)) model.heads = model.kv_heads = model.head_dim = 0;
}

HfType nemotron_h() {
  HfType type = llama();
  type.name = "nemotron_h";
  type.layers.value = 52;
  type.kv_heads.value = 8;
  type.head_dim = {"head_dim attention_head_dim", 128};
  type.ffn.value = 21504;
  type.vocabulary.value = 131072;
  type.longest = {};
  type.activation = "mlp_hidden_act";
  type.activations = " relu2 ";
  type.rest.activation = Activation::kSquaredRelu;
  type.rest.positions = Positions::kNone;
  type.dropouts = "hidden_dropout";
  type.experts = true;
  type.states = true;
  type.more = read_nemotron_h;
  return type;
}

void read_mamba2(HfKeys& keys, Model& model) {
  model.pattern = std::string(static_cast<std::size_t>(model.layers), kMambaLetter);
  model.activation = Activation::kGelu;  // has no effect: there are no feed-forward layers
  model.mamba = mamba_in(keys, {.heads = 128, .groups = 8}, "num_heads", "head_dim", "state_size");
}

HfType mamba2() {
  HfType type = llama();
  type.name = "mamba2";
  type.layers.value = 64;
  type.heads = type.kv_heads = type.head_dim = type.ffn = {};
  type.vocabulary.value = 32768;
  type.longest = {};
  type.rest.positions = Positions::kNone;
  type.dropouts = "";
  type.states_attention_bias = type.states_mlp_bias = false;
  type.states = true;
  type.more = read_mamba2;
  return type;
}

}  // namespace

std::vector<HfType> mamba_types() {
  return {nemotron_h(), mamba2()};
}

}  // namespace foreshard::internal
