/// \file
/// Models small enough to train a step of in double precision, with every part that a family has.
#pragma once

#include <vector>

#include "tests/strategies/graph/written_model.h"

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// GPT-2's kind: layer norm, biases, GELU, learned positions, tied embeddings, dropout. The
/// vocabulary is odd, so that it is padded where it is split.
inline Model tiny_gpt() {
  return written_model(
      "name: tiny gpt, layers: 4, hidden: 16, heads: 4, vocabulary: 21, sequence: 8");
}

/// Llama's kind: RMS norm, no biases, SwiGLU, rotary positions, an output projection of its own,
/// groups of two query heads, no dropout.
/// \param more  keys, each after a comma.
inline Model tiny_llama(const std::string& name = "tiny llama", const std::string& more = "") {
  return written_model("name: " + name +
                       ", layers: 4, hidden: 16, heads: 8, kv_heads: 4, "
                       "head_dim: 4, ffn: 24, vocabulary: 21, sequence: 8, norm: rms-norm, "
                       "activation: swiglu, positions: rotary, bias: false, "
                       "tied_embeddings: false, dropout: false" +
                       more);
}

/// DeepSeek-V3's kind: modules that predict more tokens.
inline Model tiny_prediction(std::int64_t modules, bool tied) {
  Model model = tiny_llama();
  model.name = tied ? "tiny predictions with a tied table" : "tiny predictions";
  model.multi_token_prediction = modules;
  model.tied_embeddings = tied;
  model.dropout = tied;
  return model;
}

/// What neither has: RMS norm with biases everywhere and grouped heads, a gate with a bias, rotary
/// positions and tied embeddings, dropout after a projection with a bias and after one without.
inline Model tiny_mixture(bool dropout) {
  Model model = tiny_llama();
  model.name = dropout ? "tiny mixture with dropout" : "tiny mixture";
  model.bias = !dropout;
  model.qkv_bias = true;
  model.mlp_bias = dropout;
  model.tied_embeddings = true;
  model.dropout = dropout;
  model.positions = dropout ? Positions::kNone : Positions::kLearned;
  return model;
}

/// Falcon's kind: attention beside the feed-forward layer, with a norm each, after a normalised
/// embedding; norms of heads with weights of their own, scales alone; biases of two projections and
/// of the output.
inline Model tiny_parallel(bool one_norm) {
  Model model = tiny_gpt();
  model.name = one_norm ? "tiny parallel with one norm" : "tiny parallel";
  model.heads = 8;
  model.kv_heads = 4;
  model.head_dim = 4;
  model.positions = Positions::kRotary;
  model.branches = one_norm ? Branches::kParallelOneNorm : Branches::kParallel;
  model.norm = one_norm ? Norm::kLayerNorm : Norm::kLayerNormScale;
  model.qk_norm = one_norm ? QkNorm::kPerHead : QkNorm::kEveryHead;
  model.embedding_norm = !one_norm;
  model.bias = false;
  model.attention_out_bias = true;
  model.mlp_bias = true;
  model.head_bias = true;
  model.tied_embeddings = !one_norm;
  model.dropout = one_norm;
  return model;
}

/// Gemma's and OLMo's kind: what branches give is normalised, too or alone; a table of positions
/// that is longer than the sequence.
inline Model tiny_normed(bool both) {
  Model model = tiny_llama();
  model.name = both ? "tiny normed on both sides" : "tiny normed after";
  model.norm_places = both ? NormPlaces::kBoth : NormPlaces::kAfter;
  model.qk_norm = both ? QkNorm::kPerHead : QkNorm::kNone;
  model.norm = both ? Norm::kRmsNorm : Norm::kLayerNormPlain;
  model.positions = both ? Positions::kRotary : Positions::kLearned;
  model.position_table = 11;
  model.mlp_bias = !both;
  model.dropout = !both;
  return model;
}

/// GPT-OSS's kind: every second layer sees two tokens alone, heads have sinks, experts and their
/// router biases.
inline Model tiny_windows() {
  return tiny_llama("tiny windows",
                    ", window: 2, full_interval: 2, sinks: true, attention_bias: true");
}

/// Llama 4's kind: chunks, and layers without positions that see all.
inline Model tiny_chunks() {
  return tiny_llama("tiny chunks",
                    ", window: 4, window_kind: chunk, full_interval: 2, unrotated_interval: 2");
}

/// DeepSeek's kind: queries, keys and values from latents.
inline Model tiny_latents(bool queries) {
  Model model = tiny_llama();
  model.name = queries ? "tiny latents" : "tiny latents of keys";
  model.kv_heads = 0;
  model.head_dim = 6;
  model.query_rank = queries ? 12 : 0;
  model.key_value_rank = 10;
  model.rotary_dim = 2;
  model.value_dim = 3;
  return model;
}

/// Nemotron-H's kind: layers of one branch each, of which some are Mamba-2; a feed-forward layer of
/// squared ReLU, or experts.
inline Model tiny_hybrid(bool experts) {
  Model model = tiny_llama();
  model.name = experts ? "tiny hybrid with experts" : "tiny hybrid";
  model.positions = Positions::kNone;
  model.activation = Activation::kSquaredRelu;
  model.pattern = experts ? "MEM*" : "M-*M";
  model.mamba = Mamba{.heads = 8, .head_dim = 2, .groups = 4, .state = 3, .conv = 3, .chunk = 4};
  if (!experts) return model;
  model.mamba->conv_bias = false;
  model.ffn = 0;
  model.experts = 4;
  model.experts_per_token = 2;
  model.expert_ffn = 12;
  model.shared_ffn = 8;
  model.router = Router::kSigmoid;
  return model;
}

/// Mamba-2's kind: nothing else.
inline Model tiny_mamba() {
  Model model = tiny_hybrid(false);
  model.name = "tiny mamba";
  model.pattern = "MMMM";
  model.heads = model.kv_heads = model.head_dim = model.ffn = 0;
  model.activation = Activation::kGelu;
  model.tied_embeddings = true;
  return model;
}

/// Packed samples, of three tokens and the last of one, and in every second layer a window of two.
inline Model tiny_samples() {
  return tiny_llama("tiny samples",
                    ", samples: {lengths: [3], shares: [1]}, window: 2, full_interval: 2");
}

/// Those that fused attention alone computes.
inline std::vector<Model> tiny_fused_models() {
  return {tiny_windows(), tiny_chunks(), tiny_samples(), tiny_latents(true), tiny_latents(false)};
}

/// One of each kind, which any strategy divides.
inline std::vector<Model> tiny_models() {
  return {tiny_gpt(),           tiny_llama(),        tiny_mixture(false), tiny_mixture(true),
          tiny_parallel(false), tiny_parallel(true), tiny_normed(false),  tiny_normed(true)};
}

inline Strategy tiny_strategy(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                              std::int64_t micro_batches = 4) {
  Strategy s;
  s.tensor_parallel = tensor;
  s.pipeline_parallel = pipeline;
  s.data_parallel = data;
  s.framework.value.vocabulary_multiple = 1;
  s.global_batch = micro_batches * data;
  return s;
}

}  // namespace foreshard
