// The Llama family: gates and rotary positions, mostly RMS norms without biases.
#include <utility>

#include "strategies/graph/internal/hf_types.h"

namespace foreshard::internal {
namespace {

constexpr std::string_view kSilu = " silu swish ";
constexpr std::string_view kGatedGelu = " gelu gelu_pytorch_tanh silu ";

}  // namespace

HfType llama() {
  Model model;
  model.norm = Norm::kRmsNorm;
  model.activation = Activation::kSwiglu;
  model.positions = Positions::kRotary;
  model.bias = false;
  model.tied_embeddings = false;
  model.dropout = false;
  return {.name = "llama Yi",
          .layers = {"num_hidden_layers", 32},
          .hidden = {"hidden_size", 4096},
          .heads = {"num_attention_heads", 32},
          .kv_heads = {"num_key_value_heads", 0},
          .head_dim = {"head_dim", 0},
          .ffn = {"intermediate_size", 11008},
          .vocabulary = {"vocab_size", 32000},
          .longest = {"max_position_embeddings", 0},
          .activation = "hidden_act",
          .activations = kSilu,
          .rest = model,
          .dropouts = "attention_dropout",
          .states_attention_bias = true,
          .states_mlp_bias = true};
}

HfType qwen2() {
  HfType type = llama();
  type.name = "qwen2";
  type.kv_heads.value = 32;
  type.ffn.value = 22016;
  type.vocabulary.value = 151936;
  type.rest.qkv_bias = true;
  type.states_attention_bias = type.states_mlp_bias = false;
  type.window = 4096;
  type.slides = false;
  type.full_layers = 28;
  return type;
}

namespace {

HfType mistral() {
  HfType type = llama();
  type.name = "mistral";
  type.kv_heads.value = 8;
  type.ffn.value = 14336;
  type.states_attention_bias = type.states_mlp_bias = false;
  type.window = 4096;
  return type;
}

HfType qwen3() {
  HfType type = qwen2();
  type.name = "qwen3";
  type.head_dim.value = 128;
  type.rest.qkv_bias = false;
  type.rest.qk_norm = QkNorm::kPerHead;
  type.states_attention_bias = true;
  return type;
}

// Qwen's feed-forward width counts gate and up together.
void finish_qwen(HfKeys& keys, Model& model) {
  model.ffn = model.ffn_width() / 2;
  const bool biased = !keys.flag("no_bias", true);
  model.attention_out_bias = biased;
  model.mlp_bias = biased;
}

HfType qwen() {
  HfType type = llama();
  type.name = "qwen";
  type.kv_heads = {};
  type.head_dim = {"kv_channels", 128};
  type.ffn.value = 22016;
  type.vocabulary.value = 151936;
  type.activation = nullptr;
  type.rest.qkv_bias = true;
  type.dropouts = "emb_dropout_prob attn_dropout_prob";
  type.states_attention_bias = type.states_mlp_bias = false;
  type.more = finish_qwen;
  return type;
}

HfType phi3() {
  HfType type = llama();
  type.name = "phi3";
  type.hidden.value = 3072;
  type.ffn.value = 8192;
  type.vocabulary.value = 32064;
  type.dropouts = "resid_pdrop attention_dropout";
  type.states_attention_bias = type.states_mlp_bias = false;
  // A token sees sliding_window tokens before it, and itself (modeling_phi3.py of the model).
  type.beyond_window = 1;
  return type;
}

HfType granite() {
  HfType type = llama();
  type.name = "granite";
  return type;
}

HfType olmo(std::string_view name, Norm norm, NormPlaces places, QkNorm qk_norm) {
  HfType type = llama();
  type.name = name;
  type.vocabulary.value = 50304;
  type.rest.norm = norm;
  type.rest.norm_places = places;
  type.rest.qk_norm = qk_norm;
  type.states_mlp_bias = false;
  return type;
}

HfType olmo3() {
  HfType type = olmo("olmo3", Norm::kRmsNorm, NormPlaces::kAfter, QkNorm::kAllHeads);
  type.window = 4096;
  type.full_interval.value = 4;
  return type;
}

HfType gemma() {
  HfType type = llama();
  type.name = "gemma";
  type.layers.value = 28;
  type.hidden.value = 3072;
  type.heads.value = 16;
  type.kv_heads.value = 16;
  type.head_dim.value = 256;
  type.ffn.value = 24576;
  type.vocabulary.value = 256000;
  type.activation = "hidden_activation hidden_act";
  type.activations = kGatedGelu;
  type.rest.tied_embeddings = true;
  type.states_mlp_bias = false;
  return type;
}

HfType gemma2() {
  HfType type = gemma();
  type.name = "gemma2";
  type.layers.value = 26;
  type.hidden.value = 2304;
  type.heads.value = 8;
  type.kv_heads.value = 4;
  type.ffn.value = 9216;
  type.rest.norm_places = NormPlaces::kBoth;
  type.window = 4096;
  type.full_interval.value = 2;
  return type;
}

HfType gemma3() {
  HfType type = gemma2();
  type.name = "gemma3_text";
  type.vocabulary.value = 262208;
  type.rest.qk_norm = QkNorm::kPerHead;
  type.full_interval = {"sliding_window_pattern", 6};
  return type;
}

// ChatGLM has biases of queries, keys and values, and a padded vocabulary.
void finish_chatglm(HfKeys& keys, Model& model) {
  if (!keys.flag("multi_query_attention", false)) model.kv_heads = 0;
  if (!keys.flag("rmsnorm", true)) model.norm = Norm::kLayerNorm;
  model.bias = keys.flag("add_bias_linear", false);
  model.qkv_bias = keys.flag("add_qkv_bias", false);
  if (!keys.flag("post_layer_norm", true))
    keys.refuse("'post_layer_norm' is false: a model without a last norm is not modelled");
}

HfType chatglm() {
  HfType type = llama();
  type.name = "chatglm";
  type.layers = {"num_layers num_hidden_layers", 28};
  type.kv_heads = {"multi_query_group_num", 1};
  type.head_dim = {"kv_channels", 128};
  type.ffn = {"ffn_hidden_size", 13696};
  type.vocabulary = {"padded_vocab_size vocab_size", 65024};
  type.longest = {"seq_length", 0};
  type.activation = nullptr;
  type.dropouts = "hidden_dropout attention_dropout";
  type.states_attention_bias = type.states_mlp_bias = false;
  type.more = finish_chatglm;
  return type;
}

// The 13B models, which state no max_position_embeddings, have ALiBi.
void finish_baichuan(HfKeys& keys, Model& model) {
  if (keys.find("max_position_embeddings") == nullptr) model.positions = Positions::kNone;
}

HfType baichuan() {
  HfType type = llama();
  type.name = "baichuan";
  type.vocabulary.value = 125696;
  type.longest = {"max_position_embeddings model_max_length", 0};
  type.kv_heads = {};
  type.dropouts = "";
  type.states_attention_bias = type.states_mlp_bias = false;
  type.more = finish_baichuan;
  return type;
}

void finish_internlm(HfKeys& keys, Model& model) {
  model.attention_bias = keys.flag("bias", model.attention_bias);
  model.qkv_bias = keys.flag("qkv_bias", false);
}

HfType internlm(std::string_view name, std::int64_t vocabulary, bool biased) {
  HfType type = llama();
  type.name = name;
  type.vocabulary.value = vocabulary;
  type.rest.attention_bias = biased;
  type.states_attention_bias = type.states_mlp_bias = false;
  type.more = finish_internlm;
  return type;
}

// GLM's attention_bias is a bias of queries, keys and values only.
void finish_glm(HfKeys&, Model& model) {
  model.qkv_bias = std::exchange(model.attention_bias, false);
}

HfType glm(std::string_view name, NormPlaces places) {
  HfType type = llama();
  type.name = name;
  type.layers.value = 40;
  type.kv_heads.value = 2;
  type.head_dim.value = 128;
  type.ffn.value = 13696;
  type.vocabulary.value = 151552;
  type.rest.norm_places = places;
  type.states_mlp_bias = false;
  type.more = finish_glm;
  return type;
}

// Seed-OSS's attention_bias is a bias of queries, keys and values only.
void finish_seed_oss(HfKeys& keys, Model& model) {
  finish_glm(keys, model);
  model.attention_out_bias = keys.flag("attention_out_bias", false);
}

HfType seed_oss() {
  HfType type = llama();
  type.name = "seed_oss";
  type.layers.value = 64;
  type.heads.value = 80;
  type.kv_heads.value = 8;
  type.head_dim.value = 128;
  type.ffn.value = 27648;
  type.vocabulary.value = 155136;
  type.rest.attention_bias = true;
  type.rest.dropout = true;
  type.dropouts = "attention_dropout residual_dropout";
  type.more = finish_seed_oss;
  return type;
}

HfType smollm3() {
  HfType type = llama();
  type.name = "smollm3";
  type.layers.value = 36;
  type.hidden.value = 2048;
  type.heads.value = 16;
  type.kv_heads.value = 4;
  type.vocabulary.value = 128256;
  type.rest.tied_embeddings = true;
  type.slides = false;
  type.unrotated = {"no_rope_layer_interval", 4};
  return type;
}

HfType minicpm() {
  HfType type = llama();
  type.name = "minicpm";
  type.rest.tied_embeddings = true;
  type.states_mlp_bias = false;
  return type;
}

HfType exaone() {
  HfType type = llama();
  type.name = "exaone";
  type.layers = {"num_layers num_hidden_layers", 32};
  type.vocabulary.value = 102400;
  type.activation = "activation_function";
  type.dropouts = "embed_dropout attention_dropout";
  type.states_attention_bias = type.states_mlp_bias = false;
  return type;
}

// --- gates with layer norms ------------------------------------------------------------------

void finish_stablelm(HfKeys& keys, Model& model) {
  model.qkv_bias = keys.flag("use_qkv_bias", false);
  if (keys.flag("qk_layernorm", false)) model.qk_norm = QkNorm::kEveryHead;
  if (keys.flag("use_parallel_residual", false)) model.branches = Branches::kParallelOneNorm;
}

HfType stablelm() {
  HfType type = llama();
  type.name = "stablelm stablelm_epoch";
  type.hidden.value = 2560;
  type.ffn.value = 6912;
  type.vocabulary.value = 50304;
  type.rest.norm = Norm::kLayerNorm;
  type.dropouts = "hidden_dropout attention_dropout";
  type.states_attention_bias = type.states_mlp_bias = false;
  type.more = finish_stablelm;
  return type;
}

void finish_cohere(HfKeys& keys, Model& model) {
  if (keys.flag("use_qk_norm", false)) model.qk_norm = QkNorm::kEveryHead;
}

HfType cohere() {
  HfType type = llama();
  type.name = "cohere";
  type.layers.value = 40;
  type.hidden.value = 8192;
  type.heads.value = 64;
  type.ffn.value = 22528;
  type.vocabulary.value = 256000;
  type.rest.norm = Norm::kLayerNormScale;
  type.rest.branches = Branches::kParallelOneNorm;
  type.rest.tied_embeddings = true;
  type.states_mlp_bias = false;
  type.more = finish_cohere;
  return type;
}

HfType cohere2() {
  HfType type = cohere();
  type.name = "cohere2";
  type.window = 4096;
  type.full_interval = type.unrotated = {"sliding_window_pattern", 4};
  return type;
}

}  // namespace

std::vector<HfType> llama_types() {
  return {llama(),
          mistral(),
          qwen2(),
          qwen3(),
          qwen(),
          phi3(),
          granite(),
          olmo("olmo", Norm::kLayerNormPlain, NormPlaces::kBefore, QkNorm::kNone),
          olmo("olmo2", Norm::kRmsNorm, NormPlaces::kAfter, QkNorm::kAllHeads),
          olmo3(),
          gemma(),
          gemma2(),
          gemma3(),
          chatglm(),
          baichuan(),
          internlm("internlm", 103168, true),
          internlm("internlm2 internlm3", 92544, false),
          glm("glm", NormPlaces::kBefore),
          glm("glm4", NormPlaces::kBoth),
          seed_oss(),
          smollm3(),
          minicpm(),
          exaone(),
          stablelm(),
          cohere(),
          cohere2()};
}

}  // namespace foreshard::internal
