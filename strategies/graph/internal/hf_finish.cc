// What model types need beyond their data.
// Source: huggingface/transformers: models/*/configuration_*.py and modeling_*.py.
#include <algorithm>
#include <fmt/format.h>

#include "strategies/graph/internal/hf_rules.h"

namespace foreshard::internal {
namespace {

constexpr const char* kBlocks = "layers_block_type";
constexpr const char* kPattern = "hybrid_override_pattern";

// The feed-forward width counts gate and up together.
void finish_qwen(HfKeys&, const HfType&, Model& model) {
  model.ffn = model.ffn_width() / 2;
}

void finish_qwen_moe(HfKeys& keys, const HfType&, Model& model) {
  const auto* list = keys.find("mlp_only_layers");
  if (list == nullptr || !list->is_array()) return;
  model.dense_layers = std::ssize(*list);
  for (std::size_t i = 0; i < list->size(); ++i)
    if ((*list)[i] != i)
      keys.refuse("'mlp_only_layers' names others than the first layers, which is not modelled");
}

// Falcon-7B has one key head and one norm; the "new decoder architecture" has key heads of groups
// and two norms, or one (Falcon 2 11B). The RefinedWeb files are of before it had a name.
void finish_falcon(HfKeys& keys, const HfType&, Model& model) {
  const bool grouped = keys.flag("new_decoder_architecture", keys.find("n_head_kv") != nullptr);
  if (!grouped) model.kv_heads = keys.flag("multi_query", true) ? 1 : 0;
  const std::int64_t norms = keys.size("num_ln_in_parallel_attn", grouped ? 2 : 1);
  if (grouped || keys.flag("parallel_attn", true))
    model.branches = norms == 2 ? Branches::kParallel : Branches::kParallelOneNorm;
}

void finish_mpt(HfKeys& keys, const HfType&, Model& model) {
  constexpr std::int64_t kWidest = 1024;
  const std::int64_t ratio = keys.size("expansion_ratio", 4);
  if (ratio > kWidest) keys.fault(fmt::format("'expansion_ratio' is {}", ratio));
  model.ffn = std::min(ratio, kWidest) * model.hidden;
  model.kv_heads = keys.size("attn_config.kv_n_heads", model.kv_heads);
}

void finish_opt(HfKeys& keys, const HfType&, Model& model) {
  if (keys.size("word_embed_proj_dim", model.hidden) != model.hidden)
    keys.refuse(
        "'word_embed_proj_dim' differs from 'hidden_size': projections between the embedding and "
        "the layers are not modelled");
}

void finish_whisper(HfKeys& keys, const HfType&, Model& model) {
  const auto same = [&](const char* key, std::int64_t ours) {
    if (keys.size(key, ours) != ours)
      keys.refuse(
          fmt::format("'{}' is not that of the encoder, {}, which is not modelled", key, ours));
  };
  same("decoder_attention_heads", model.heads);
  same("decoder_ffn_dim", model.ffn);
}

// The letter of a word in "layers_block_type"; 0: there is no such word.
char letter_of(std::string_view word) {
  if (word == "mamba" || word == "linear_attention") return kMambaLetter;
  if (word == "attention" || word == "full_attention") return kAttentionLetter;
  if (word == "mlp") return kFeedForwardLetter;
  return word == "moe" ? kExpertsLetter : '\0';
}

// Empty after a fault.
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

// Mamba layers are modelled where their projections have no biases. Not modelled: Mamba-2 of
// Transformers normalises what leaves the scan over all heads, not by group; that costs the same on
// one rank.
Mamba mamba_in(HfKeys& keys, const HfMamba& type) {
  for (const char* key : {"use_bias", "mamba_proj_bias"})
    if (keys.flag(key, false))
      keys.refuse(fmt::format(
          "'{}' is true: biases of the projections of Mamba layers are not modelled", key));
  Mamba mamba;
  mamba.heads = keys.size(type.heads);
  mamba.head_dim = keys.size(type.head_dim);
  mamba.groups = keys.size(type.groups);
  mamba.state = keys.size(type.state);
  mamba.conv = keys.size(type.conv);
  mamba.conv_bias = keys.flag("use_conv_bias", mamba.conv_bias);
  mamba.chunk = keys.size(type.chunk);
  if (mamba.heads % mamba.groups != 0)
    keys.fault(fmt::format("{} heads of Mamba layers ('{}') do not form {} groups ('n_groups')",
                           mamba.heads, keys.stated_key(type.heads.keys()), mamba.groups));
  return mamba;
}

// What a pattern has no layers for does not stay in the model.
void finish_nemotron_h(HfKeys& keys, const HfType& type, Model& model) {
  model.pattern = pattern_in(keys);
  if (keys.find("num_hidden_layers") == nullptr) model.layers = std::ssize(model.pattern);
  if (const auto why = pattern_fault(model.pattern, model.layers); !why.empty())
    return keys.fault(fmt::format("'{}': {}", kPattern, why));
  const auto has = [&](char letter) { return model.pattern.find(letter) != std::string::npos; };
  if (has(kMambaLetter) && type.mamba) model.mamba = mamba_in(keys, *type.mamba);
  if (has(kExpertsLetter) && keys.find("moe_latent_size") != nullptr)
    keys.refuse(
        "'moe_latent_size': experts that read a narrower stream than the layers are not modelled");
  if (!has(kExpertsLetter)) {
    const Model none;
    model.experts = none.experts;
    model.experts_per_token = none.experts_per_token;
    model.expert_groups = none.expert_groups;
    model.groups_per_token = none.groups_per_token;
    model.expert_ffn = none.expert_ffn;
    model.shared_ffn = none.shared_ffn;
    model.router = none.router;
  }
  if (!has(kFeedForwardLetter)) model.ffn = 0;
  if (!has(kAttentionLetter)) model.heads = model.kv_heads = model.head_dim = 0;
}

void finish_mamba2(HfKeys& keys, const HfType& type, Model& model) {
  model.pattern = std::string(static_cast<std::size_t>(model.layers), kMambaLetter);
  if (type.mamba) model.mamba = mamba_in(keys, *type.mamba);
}

}  // namespace

void finish(HfKeys& keys, const HfType& type, Model& model) {
  switch (type.finish) {
    case HfFinish::kNone:
      return;
    case HfFinish::kQwen:
      return finish_qwen(keys, type, model);
    case HfFinish::kQwenMoe:
      return finish_qwen_moe(keys, type, model);
    case HfFinish::kFalcon:
      return finish_falcon(keys, type, model);
    case HfFinish::kMpt:
      return finish_mpt(keys, type, model);
    case HfFinish::kOpt:
      return finish_opt(keys, type, model);
    case HfFinish::kWhisper:
      return finish_whisper(keys, type, model);
    case HfFinish::kNemotronH:
      return finish_nemotron_h(keys, type, model);
    case HfFinish::kMamba2:
      return finish_mamba2(keys, type, model);
  }
}

}  // namespace foreshard::internal
