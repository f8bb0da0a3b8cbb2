// Mixtures of experts, mostly of the Llama family.
// Source: huggingface/transformers: models/*/configuration_*.py and modeling_*.py.
#include <fmt/format.h>

#include "strategies/graph/internal/hf_types.h"

namespace foreshard::internal {

// Layers in "mlp_only_layers" are dense; so are layers whose number, counted from 1, is not a
// multiple of "decoder_sparse_step".
void read_qwen_layers(HfKeys& keys, Model& model) {
  model.expert_interval = keys.size({"decoder_sparse_step", 1});
  if (const auto* list = keys.find("mlp_only_layers"); list != nullptr && list->is_array()) {
    model.dense_layers = std::ssize(*list);
    for (std::size_t i = 0; i < list->size(); ++i)
      if ((*list)[i] != i)
        keys.refuse("'mlp_only_layers' names others than the first layers, which is not modelled");
  }
  if (!model.has_dense_layers()) model.ffn = 0;
}

namespace {

// `type` as a mixture of experts, which `more` reads.
HfType mixture(HfType type, std::string_view name, void (*more)(HfKeys&, Model&)) {
  type.name = name;
  type.states_attention_bias = type.states_mlp_bias = false;
  type.window = 0;
  type.experts = true;
  type.more = more;
  return type;
}

HfType mixtral() {
  HfType type = mixture(llama(), "mixtral", [](HfKeys& keys, Model& model) {
    model.experts = keys.size({"num_local_experts", 8});
    model.experts_per_token = keys.size({"num_experts_per_tok", 2});
  });
  type.kv_heads.value = 8;
  type.ffn.value = 14336;
  return type;
}

void read_qwen2_experts(HfKeys& keys, Model& model) {
  model.experts = keys.size({"num_experts", 60});
  model.experts_per_token = keys.size({"num_experts_per_tok", 4});
  model.expert_ffn = keys.size({"moe_intermediate_size", 1408});
  model.shared_ffn = keys.size({"shared_expert_intermediate_size", 5632});
  model.shared_gate = true;
  model.qkv_bias = keys.flag("qkv_bias", true);
  read_qwen_layers(keys, model);
}

HfType qwen2_moe() {
  HfType type = mixture(qwen2(), "qwen2_moe", read_qwen2_experts);
  type.layers.value = 24;
  type.hidden.value = 2048;
  type.heads.value = 16;
  type.kv_heads.value = 16;
  type.ffn.value = 5632;
  return type;
}

void read_qwen3_experts(HfKeys& keys, Model& model) {
  model.experts = keys.size({"num_experts", 128});
  model.experts_per_token = keys.size({"num_experts_per_tok", 8});
  model.expert_ffn = keys.size({"moe_intermediate_size", 768});
  read_qwen_layers(keys, model);
}

HfType qwen3_moe() {
  HfType type = mixture(qwen2(), "qwen3_moe", read_qwen3_experts);
  type.kv_heads.value = 4;
  type.head_dim.value = 128;
  type.ffn.value = 6144;
  type.rest.qkv_bias = false;
  type.rest.qk_norm = QkNorm::kPerHead;
  type.states_attention_bias = true;
  return type;
}

// All projections have biases, including the router.
HfType gpt_oss() {
  HfType type = mixture(llama(), "gpt_oss", [](HfKeys& keys, Model& model) {
    model.experts = keys.size({"num_local_experts", 128});
    model.experts_per_token = keys.size({"num_experts_per_tok", 4});
    model.clamped_activation = keys.any_positive("swiglu_limit", true);
  });
  type.layers.value = 36;
  type.hidden.value = 2880;
  type.heads.value = 64;
  type.kv_heads.value = 8;
  type.head_dim.value = 64;
  type.ffn.value = 2880;
  type.vocabulary.value = 201088;
  type.states_attention_bias = true;
  type.rest.attention_bias = type.rest.mlp_bias = type.rest.router_bias = true;
  type.rest.sinks = true;
  type.window = 128;
  type.full_interval.value = 2;
  return type;
}

// The shared expert is as wide as a routed one. Not modelled: norms of queries and keys, which have
// no weights.
void read_llama4_experts(HfKeys& keys, Model& model) {
  model.expert_ffn = model.shared_ffn = model.ffn;
  model.ffn = keys.size({"intermediate_size_mlp", 16384});
  model.experts = keys.size({"num_local_experts", 16});
  model.experts_per_token = keys.size({"num_experts_per_tok", 1});
  model.expert_interval = keys.size({"interleave_moe_layer_step", 1});
  if (!model.has_dense_layers()) model.ffn = 0;
}

HfType llama4() {
  HfType type = mixture(llama(), "llama4_text", read_llama4_experts);
  type.layers.value = 48;
  type.hidden.value = 5120;
  type.heads.value = 40;
  type.kv_heads.value = 8;
  type.head_dim.value = 128;
  type.ffn.value = 8192;
  type.vocabulary.value = 202048;
  type.states_attention_bias = true;
  type.rest.router = Router::kSigmoid;
  type.chunk = 8192;
  type.full_interval = type.unrotated = {"no_rope_layer_interval", 4};
  return type;
}

// Experts of DeepSeek and its descendants: the first layers are dense, some experts are shared.
void read_deepseek_experts(HfKeys& keys, Model& model) {
  model.experts = keys.size({"n_routed_experts", model.experts});
  model.experts_per_token = keys.size({"num_experts_per_tok", model.experts_per_token});
  if (const auto* method = keys.find("topk_method"); method == nullptr || *method != "greedy") {
    model.expert_groups = keys.size({"n_group", model.expert_groups});
    model.groups_per_token = keys.size({"topk_group", model.groups_per_token});
  }
  model.expert_ffn = keys.size({"moe_intermediate_size", model.expert_ffn});
  model.dense_layers = keys.size({"first_k_dense_replace", model.dense_layers}, 0);
  model.shared_ffn = keys.size({"n_shared_experts", 1}, 0) * model.expert_ffn;
  const auto* every = keys.find("moe_layer_freq");
  if (every != nullptr && *every != 1)
    keys.refuse("'moe_layer_freq' is not 1: layers that take turns are not modelled for this type");
  if (const auto* scores = keys.find("scoring_func"); scores != nullptr)
    model.router = *scores == "sigmoid" ? Router::kSigmoid : Router::kSoftmax;
  if (!model.has_dense_layers()) model.ffn = 0;
}

// The file gives the columns of a head that rotate and those that do not separately. A query rank
// of null means that there are no latents of queries.
void read_latents(HfKeys& keys, Model& model) {
  model.key_value_rank = keys.size({"kv_lora_rank", 512});
  const bool is_direct = keys.has("q_lora_rank") && keys.find("q_lora_rank") == nullptr;
  model.query_rank = is_direct ? 0 : keys.size({"q_lora_rank", 1536});
  model.rotary_dim = keys.size({"qk_rope_head_dim", 64});
  model.head_dim = model.rotary_dim + keys.size({"qk_nope_head_dim", 128});
  model.value_dim = keys.size({"v_head_dim", 128});
  read_deepseek_experts(keys, model);
}

HfType deepseek_v2() {
  HfType type = mixture(llama(), "deepseek_v2", read_latents);
  type.latents = true;
  type.head_dim = {};
  type.rest.experts = 64;
  type.rest.experts_per_token = 6;
  type.rest.expert_ffn = 1407;
  type.states_attention_bias = true;
  return type;
}

HfType deepseek_v3() {
  HfType type = deepseek_v2();
  type.name = "deepseek_v3 kimi_k2";
  type.layers.value = 61;
  type.hidden.value = 7168;
  type.heads.value = 128;
  type.ffn.value = 18432;
  type.vocabulary.value = 129280;
  type.rest.experts = 256;
  type.rest.experts_per_token = 8;
  type.rest.expert_groups = 8;
  type.rest.groups_per_token = 4;
  type.rest.expert_ffn = 2048;
  type.rest.dense_layers = 3;
  type.rest.router = Router::kSigmoid;
  return type;
}

// GLM-4's attention_bias is a bias of queries, keys and values only.
void read_glm4_experts(HfKeys& keys, Model& model) {
  model.qkv_bias = model.attention_bias;
  model.attention_bias = false;
  if (keys.flag("use_qk_norm", false)) model.qk_norm = QkNorm::kPerHead;
  read_deepseek_experts(keys, model);
}

HfType glm4_moe() {
  HfType type = mixture(llama(), "glm4_moe", read_glm4_experts);
  type.layers.value = 46;
  type.heads.value = 96;
  type.kv_heads.value = 8;
  type.head_dim.value = 128;
  type.ffn.value = 10944;
  type.vocabulary.value = 151552;
  type.states_attention_bias = true;
  type.rest.experts = 128;
  type.rest.experts_per_token = 8;
  type.rest.expert_ffn = 1408;
  type.rest.dense_layers = 1;
  type.rest.router = Router::kSigmoid;
  return type;
}

void read_dbrx_experts(HfKeys& keys, Model& model) {
  model.kv_heads = keys.size_in("attn_config", "kv_n_heads", 1);
  model.experts = keys.size_in("ffn_config", "moe_num_experts", 4);
  model.experts_per_token = keys.size_in("ffn_config", "moe_top_k", 1);
  model.expert_ffn = keys.size_in("ffn_config", "ffn_hidden_size", 3584);
}

HfType dbrx() {
  HfType type = mixture(llama(), "dbrx", read_dbrx_experts);
  type.layers = {"n_layers", 24};
  type.hidden = {"d_model", 2048};
  type.heads = {"n_heads", 16};
  type.kv_heads = {};
  type.head_dim = {};
  type.ffn = {};
  type.longest = {"max_seq_len", 2048};
  type.activation = nullptr;
  type.dropouts = "resid_pdrop";
  type.rest.norm = Norm::kLayerNormScale;
  return type;
}

}  // namespace

std::vector<HfType> mixture_types() {
  return {mixtral(),     qwen2_moe(),   qwen3_moe(), gpt_oss(), llama4(),
          deepseek_v2(), deepseek_v3(), glm4_moe(),  dbrx()};
}

}  // namespace foreshard::internal
