// The GPT family: layer norms, biases, a feed-forward layer of two matrices.
#include <algorithm>
#include <fmt/format.h>

#include "strategies/graph/internal/hf_types.h"

namespace foreshard::internal {
namespace {

constexpr std::string_view kGelu =
    " gelu gelu_new gelu_fast gelu_python gelu_pytorch_tanh relu relu2 ";

// SantaCoder, which is older than gpt_bigcode, has one key head.
void finish_gpt2(HfKeys& keys, Model& model) {
  const auto* kind = keys.find("attention_head_type");
  if (keys.flag("multi_query", kind != nullptr && *kind == "multiquery")) model.kv_heads = 1;
}

HfType gpt2() {
  return {.name = "gpt2",
          .layers = {"n_layer num_hidden_layers", 12},
          .hidden = {"n_embd hidden_size", 768},
          .heads = {"n_head num_attention_heads", 12},
          .kv_heads = {},
          .head_dim = {},
          .ffn = {"n_inner", 0},
          .vocabulary = {"vocab_size", 50257},
          .longest = {"n_positions max_position_embeddings", 1024},
          .activation = "activation_function",
          .activations = kGelu,
          .rest = Model{},
          .dropouts = "resid_pdrop attn_pdrop",
          .more = finish_gpt2};
}

void finish_gpt_bigcode(HfKeys& keys, Model& model) {
  if (keys.flag("multi_query", true)) model.kv_heads = 1;
}

HfType gpt_bigcode() {
  HfType type = gpt2();
  type.name = "gpt_bigcode";
  type.more = finish_gpt_bigcode;
  return type;
}

// Attention without biases, and a feed-forward layer with biases.
HfType gptj(std::string_view name) {
  HfType type = gpt2();
  type.name = name;
  type.layers.value = 28;
  type.hidden.value = 4096;
  type.heads.value = 16;
  type.vocabulary.value = 50400;
  type.longest.value = 2048;
  type.rest.positions = Positions::kRotary;
  type.rest.branches = Branches::kParallelOneNorm;
  type.rest.bias = false;
  type.rest.mlp_bias = true;
  type.rest.head_bias = true;
  type.rest.tied_embeddings = false;
  type.rest.dropout = false;
  return type;
}

// Phi before it was in Transformers, with GPT-2's names of keys.
HfType phi_msft() {
  HfType type = gptj("phi-msft mixformer-sequential");
  type.layers.value = 24;
  type.hidden.value = 2048;
  type.heads.value = 32;
  type.kv_heads = {"n_head_kv", 0};
  type.vocabulary.value = 51200;
  type.rest.bias = true;
  return type;
}

// The names of keys that most later GPTs have.
HfType later_gpt(std::string_view name) {
  HfType type = gpt2();
  type.name = name;
  type.layers = {"num_hidden_layers", 32};
  type.hidden = {"hidden_size", 4096};
  type.heads = {"num_attention_heads", 32};
  type.ffn = {"intermediate_size", 0};
  type.longest = {"max_position_embeddings", 0};
  type.activation = "hidden_act";
  type.rest.positions = Positions::kRotary;
  type.rest.dropout = false;
  type.dropouts = "hidden_dropout attention_dropout";
  return type;
}

void finish_gpt_neox(HfKeys& keys, Model& model) {
  model.attention_bias = keys.flag("attention_bias", true);
  if (keys.flag("use_parallel_residual", true)) model.branches = Branches::kParallel;
}

HfType gpt_neox() {
  HfType type = later_gpt("gpt_neox");
  type.layers.value = 44;
  type.hidden.value = 6144;
  type.heads.value = 64;
  type.ffn.value = 24576;
  type.vocabulary.value = 50432;
  type.rest.bias = false;
  type.rest.mlp_bias = true;
  type.rest.tied_embeddings = false;
  type.states_attention_bias = true;
  type.more = finish_gpt_neox;
  return type;
}

HfType gpt_neo() {
  HfType type = gpt2();
  type.name = "gpt_neo";
  type.layers = {"num_layers num_hidden_layers", 24};
  type.hidden = {"hidden_size", 2048};
  type.heads = {"num_heads num_attention_heads", 16};
  type.ffn = {"intermediate_size", 0};
  type.longest = {"max_position_embeddings", 2048};
  type.rest.bias = false;
  type.rest.attention_out_bias = true;
  type.rest.mlp_bias = true;
  type.rest.dropout = false;
  type.dropouts = "resid_dropout attention_dropout";
  return type;
}

void finish_phi(HfKeys& keys, Model& model) {
  if (keys.flag("qk_layernorm", false)) model.qk_norm = QkNorm::kPerHead;
}

HfType phi() {
  HfType type = later_gpt("phi");
  type.layers.value = 24;
  type.hidden.value = 2048;
  type.kv_heads = {"num_key_value_heads", 0};
  type.ffn.value = 8192;
  type.vocabulary.value = 51200;
  type.rest.branches = Branches::kParallelOneNorm;
  type.rest.head_bias = true;
  type.rest.tied_embeddings = false;
  type.dropouts = "resid_pdrop attention_dropout";
  type.more = finish_phi;
  return type;
}

void finish_persimmon(HfKeys& keys, Model& model) {
  if (keys.flag("qk_layernorm", true)) model.qk_norm = QkNorm::kPerHead;
}

HfType persimmon() {
  HfType type = later_gpt("persimmon");
  type.layers.value = 36;
  type.heads.value = 64;
  type.ffn.value = 16384;
  type.vocabulary.value = 262144;
  type.rest.tied_embeddings = false;
  type.more = finish_persimmon;
  return type;
}

void finish_starcoder2(HfKeys& keys, Model& model) {
  model.bias = keys.flag("use_bias", true);
}

HfType starcoder2() {
  HfType type = later_gpt("starcoder2");
  type.layers.value = 30;
  type.hidden.value = 3072;
  type.heads.value = 24;
  type.kv_heads = {"num_key_value_heads", 2};
  type.ffn.value = 12288;
  type.vocabulary.value = 49152;
  type.dropouts = "residual_dropout attention_dropout";
  type.more = finish_starcoder2;
  return type;
}

HfType nemotron() {
  HfType type = later_gpt("nemotron");
  type.kv_heads = {"num_key_value_heads", 0};
  type.head_dim = {"head_dim", 0};
  type.hidden.value = 6144;
  type.heads.value = 48;
  type.ffn.value = 24576;
  type.vocabulary.value = 256000;
  type.rest.bias = false;
  type.rest.tied_embeddings = false;
  type.states_attention_bias = type.states_mlp_bias = true;
  return type;
}

void finish_opt(HfKeys& keys, Model& model) {
  model.bias = keys.flag("enable_bias", true);
  if (!keys.flag("layer_norm_elementwise_affine", true)) model.norm = Norm::kLayerNormPlain;
  if (!keys.flag("do_layer_norm_before", true))
    keys.refuse("'do_layer_norm_before' is false: norms after the residual sum are not modelled");
  if (keys.flag("_remove_final_layer_norm", false))
    keys.refuse("'_remove_final_layer_norm' is true: a model without a last norm is not modelled");
  if (keys.size({"word_embed_proj_dim", model.hidden}) != model.hidden)
    keys.refuse(
        "'word_embed_proj_dim' differs from 'hidden_size': projections between the embedding and "
        "the layers are not modelled");
}

HfType opt() {
  HfType type = gpt2();
  type.name = "opt";
  type.layers = {"num_hidden_layers", 12};
  type.hidden = {"hidden_size", 768};
  type.heads = {"num_attention_heads", 12};
  type.ffn = {"ffn_dim", 3072};
  type.vocabulary.value = 50272;
  type.longest = {"max_position_embeddings", 2048};
  type.further_positions = 2;
  type.dropouts = "dropout attention_dropout";
  type.more = finish_opt;
  return type;
}

HfType bloom() {
  HfType type = gpt2();
  type.name = "bloom";
  type.layers = {"n_layer num_hidden_layers", 2};
  type.hidden = {"hidden_size n_embed", 64};
  type.heads = {"n_head num_attention_heads", 8};
  type.ffn = {};
  type.vocabulary.value = 250880;
  type.longest = {};
  type.activation = nullptr;
  type.rest.positions = Positions::kNone;
  type.rest.embedding_norm = true;
  type.rest.dropout = false;
  type.dropouts = "hidden_dropout attention_dropout";
  return type;
}

// Falcon-7B has one key head and one norm; the "new decoder architecture" has grouped key heads and
// two norms, or one (Falcon 2 11B). The RefinedWeb files are older than that name.
void finish_falcon(HfKeys& keys, Model& model) {
  model.bias = keys.flag("bias", false);
  const bool grouped = keys.flag("new_decoder_architecture", keys.find("n_head_kv") != nullptr);
  if (!grouped) model.kv_heads = keys.flag("multi_query", true) ? 1 : 0;
  if (keys.flag("alibi", false)) model.positions = Positions::kNone;
  const std::int64_t norms = keys.size({"num_ln_in_parallel_attn", grouped ? 2 : 1});
  if (grouped || keys.flag("parallel_attn", true))
    model.branches = norms == 2 ? Branches::kParallel : Branches::kParallelOneNorm;
}

HfType falcon() {
  HfType type = later_gpt("falcon RefinedWeb RefinedWebModel");
  type.layers = {"num_hidden_layers n_layer", 32};
  type.hidden.value = 4544;
  type.heads = {"num_attention_heads n_head", 71};
  type.kv_heads = {"num_kv_heads n_head_kv", 0};
  type.ffn = {"ffn_hidden_size", 0};
  type.vocabulary.value = 65024;
  type.activation = "activation";
  type.more = finish_falcon;
  return type;
}

// "no_bias" applies to the norms, too.
void finish_mpt(HfKeys& keys, Model& model) {
  model.bias = !keys.flag("no_bias", true);
  if (!model.bias) model.norm = Norm::kLayerNormScale;
  const bool alibi = keys.flag_in("attn_config", "alibi", true);
  if (!alibi && keys.flag_in("attn_config", "rope", false))
    model.positions = Positions::kRotary;
  else if (alibi || !keys.flag("learned_pos_emb", true))
    model.positions = Positions::kNone;
  if (keys.flag_in("attn_config", "qk_ln", false)) model.qk_norm = QkNorm::kAllHeads;
  if (keys.flag_in("attn_config", "prefix_lm", false))
    keys.refuse(
        "'attn_config.prefix_lm' is true: a prefix that attention sees in both directions "
        "is not modelled");
  constexpr std::int64_t kWidest = 1024;
  const std::int64_t ratio = keys.size({"expansion_ratio", 4});
  if (ratio > kWidest) keys.fault(fmt::format("'expansion_ratio' is {}", ratio));
  model.ffn = std::min(ratio, kWidest) * model.hidden;
  const auto* kind = keys.find_in("attn_config", "attn_type");
  if (kind != nullptr && *kind == "multiquery_attention") model.kv_heads = 1;
  model.kv_heads = keys.size_in("attn_config", "kv_n_heads", model.kv_heads);
}

HfType mpt() {
  HfType type = gpt2();
  type.name = "mpt";
  type.layers = {"n_layers num_hidden_layers", 24};
  type.hidden = {"d_model hidden_size", 2048};
  type.heads = {"n_heads num_attention_heads", 16};
  type.ffn = {};
  type.vocabulary.value = 50368;
  type.longest = {"max_seq_len", 2048};
  type.activation = nullptr;
  type.rest.dropout = false;
  type.dropouts = "resid_pdrop";
  type.more = finish_mpt;
  return type;
}

}  // namespace

std::vector<HfType> gpt_types() {
  return {gpt2(),     gpt_bigcode(), gptj("gptj"), gptj("codegen"), gpt_neox(),
          gpt_neo(),  phi(),         phi_msft(),   persimmon(),     starcoder2(),
          nemotron(), opt(),         bloom(),      falcon(),        mpt()};
}

}  // namespace foreshard::internal
