#include "strategies/graph/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "strategies/graph/internal/model_limits.h"

namespace foreshard {

namespace {

// Bounds far beyond every published model, and small enough for exact tensor sizes.
constexpr double kMaxLayers = internal::kMostLayers;
constexpr double kMaxHeads = 1 << 12;
constexpr double kMaxWidth = 1 << 20;
constexpr double kMaxTokens = 1 << 24;
constexpr double kMaxExperts = 1 << 14;
constexpr double kMaxPredictions = 16;
constexpr double kMaxTypes = 1 << 10;

}  // namespace

const yaml::Names<Norm>& yaml_names(const Norm*) {
  static const yaml::Names<Norm> names{
      {"layer-norm", Norm::kLayerNorm, "Mean and variance, scale and shift."},
      {"rms-norm", Norm::kRmsNorm, "Root mean square, scale only."},
      {"layer-norm-scale", Norm::kLayerNormScale, "Mean and variance, scale only (MPT, Cohere)."},
      {"layer-norm-plain", Norm::kLayerNormPlain, "Mean and variance, no parameters (OLMo)."},
  };
  return names;
}

const yaml::Names<Activation>& yaml_names(const Activation*) {
  static const yaml::Names<Activation> names{
      {"gelu", Activation::kGelu, "Two matrices: down(gelu(up(x)))."},
      {"swiglu", Activation::kSwiglu, "Three matrices: down(silu(gate(x)) * up(x))."},
      {"squared-relu", Activation::kSquaredRelu, "Two matrices: down(relu(up(x))^2) (Nemotron)."},
  };
  return names;
}

const yaml::Names<Positions>& yaml_names(const Positions*) {
  static const yaml::Names<Positions> names{
      {"learned", Positions::kLearned, "A trained vector per position, added to the embedding."},
      {"rotary", Positions::kRotary, "Rotation of queries and keys."},
      {"none", Positions::kNone, "No positions, or ones without cost (ALiBi)."},
      {"relative", Positions::kRelative,
       "A trained number per range of distances and head, added to scores (T5)."},
  };
  return names;
}

const yaml::Names<NormPlaces>& yaml_names(const NormPlaces*) {
  static const yaml::Names<NormPlaces> names{
      {"before", NormPlaces::kBefore, "x + branch(norm(x))."},
      {"after", NormPlaces::kAfter, "x + norm(branch(x)) (OLMo 2)."},
      {"both", NormPlaces::kBoth, "x + norm(branch(norm(x))) (Gemma 2)."},
      {"after-sum", NormPlaces::kAfterSum, "norm(x + branch(x)), and no last norm (BERT)."},
  };
  return names;
}

const yaml::Names<Branches>& yaml_names(const Branches*) {
  static const yaml::Names<Branches> names{
      {"sequential", Branches::kSequential, "y = x + attention(x), then y + mlp(y)."},
      {"parallel", Branches::kParallel,
       "x + attention(norm(x)) + mlp(norm'(x)), a norm for each (GPT-NeoX)."},
      {"parallel-one-norm", Branches::kParallelOneNorm,
       "x + attention(n) + mlp(n), where n = norm(x) (GPT-J)."},
  };
  return names;
}

const yaml::Names<QkNorm>& yaml_names(const QkNorm*) {
  static const yaml::Names<QkNorm> names{
      {"none", QkNorm::kNone, "Queries and keys are used as projected."},
      {"per-head", QkNorm::kPerHead, "Each head by itself, all with the same weights (Qwen 3)."},
      {"every-head", QkNorm::kEveryHead, "Each head by itself, with weights of its own (Cohere)."},
      {"all-heads", QkNorm::kAllHeads, "The heads of a token together (OLMo 2)."},
  };
  return names;
}

const yaml::Names<WindowKind>& yaml_names(const WindowKind*) {
  static const yaml::Names<WindowKind> names{
      {"sliding", WindowKind::kSliding, "The query's token and those before it (Mistral)."},
      {"chunk", WindowKind::kChunk, "Sequences are cut into chunks of its length (Llama 4)."},
  };
  return names;
}

const yaml::Names<Router>& yaml_names(const Router*) {
  static const yaml::Names<Router> names{
      {"softmax", Router::kSoftmax, "Weights of a token's experts add up to 1."},
      {"sigmoid", Router::kSigmoid, "Each expert has a weight of its own (DeepSeek-V3, Llama 4)."},
  };
  return names;
}

const yaml::Table<Model>& yaml_table(const Model*) {
  static const auto table =
      yaml::Table<Model>("model", "A transformer.")
          .folder("models")
          .required("name", &Model::name, "Name in reports.")
          .required("layers", &Model::layers, "Transformer layers.", yaml::between(1, kMaxLayers))
          .required("hidden", &Model::hidden, "Width of the residual stream.",
                    yaml::between(1, kMaxWidth))
          .required("heads", &Model::heads,
                    "Attention (query) heads; 0: no layer has attention (`pattern`).",
                    yaml::between(0, kMaxHeads))
          .optional("kv_heads", &Model::kv_heads, "Key and value heads; 0: as many as heads.",
                    yaml::between(0, kMaxHeads))
          .optional("head_dim", &Model::head_dim,
                    "Width of a head of queries and keys; 0: hidden / heads.",
                    yaml::between(0, kMaxWidth))
          .optional("ffn", &Model::ffn, "Width of the feed-forward layer; 0: 4 x hidden.",
                    yaml::between(0, kMaxWidth))
          .optional("vocabulary", &Model::vocabulary,
                    "Tokens in the vocabulary; 0: images are read in their place.",
                    yaml::between(0, kMaxTokens))
          .required("sequence", &Model::sequence, "Tokens per training sample.",
                    yaml::between(1, kMaxTokens))
          .optional("norm", &Model::norm, "Normalisation.")
          .optional("activation", &Model::activation, "Activation of the feed-forward layer.")
          .optional("positions", &Model::positions, "How positions are encoded.")
          .optional("bias", &Model::bias, "Whether all projections of a layer have biases.")
          .optional(
              "qkv_bias", &Model::qkv_bias,
              "Whether the query, key and value projection has a bias, where `bias` is false.")
          .optional("attention_bias", &Model::attention_bias,
                    "Whether both projections of attention have biases, where `bias` is false.")
          .optional("key_bias", &Model::key_bias,
                    "Whether keys have a bias where queries and values do (Whisper: no).")
          .optional("attention_out_bias", &Model::attention_out_bias,
                    "Whether the output projection of attention has a bias, where `bias` is false.")
          .optional("mlp_bias", &Model::mlp_bias,
                    "Whether the projections of the feed-forward layer have biases, where `bias` "
                    "is false.")
          .optional("head_bias", &Model::head_bias,
                    "Whether the output projection of the model has a bias.")
          .optional("norm_places", &Model::norm_places,
                    "Which side of attention and of the feed-forward layer is normalised.")
          .optional("branches", &Model::branches,
                    "Whether attention and the feed-forward layer follow each other.")
          .optional("qk_norm", &Model::qk_norm, "Normalisation of queries and keys.")
          .optional("embedding_norm", &Model::embedding_norm,
                    "Whether the embedding is normalised.")
          .optional(
              "position_table", &Model::position_table,
              "Rows of the table of learned positions; 0: as many as the sequence has tokens.",
              yaml::between(0, kMaxTokens))
          .optional("tied_embeddings", &Model::tied_embeddings,
                    "Whether the output projection is the input embedding.")
          .optional("dropout", &Model::dropout, "Whether dropout is applied in training.")
          .optional("window", &Model::window,
                    "Tokens that a query sees, itself included; 0: all before it.",
                    yaml::between(0, kMaxTokens))
          .optional("window_kind", &Model::window_kind, "What the window is.")
          .optional("full_layers", &Model::full_layers,
                    "The first so many layers see the whole sequence.",
                    yaml::between(0, kMaxLayers))
          .optional("full_interval", &Model::full_interval,
                    "Of every so many layers the last sees the whole sequence; 0: none.",
                    yaml::between(0, kMaxLayers))
          .optional("unrotated_interval", &Model::unrotated_interval,
                    "Of every so many layers the last has no rotary positions; 0: none.",
                    yaml::between(0, kMaxLayers))
          .optional("sinks", &Model::sinks,
                    "Whether each head has a learned logit beside its scores.")
          .optional("clamped_activation", &Model::clamped_activation,
                    "Whether what a SwiGLU reads is clamped.")
          .optional("key_value_rank", &Model::key_value_rank,
                    "Width of the latents that keys and values are projected from (MLA); 0: they "
                    "are projected from the stream.",
                    yaml::between(0, kMaxWidth))
          .optional("query_rank", &Model::query_rank,
                    "Width of the latents of queries; 0: they are projected from the stream.",
                    yaml::between(0, kMaxWidth))
          .optional(
              "rotary_dim", &Model::rotary_dim,
              "With latents: columns of a head that rotate; of the keys all heads share them.",
              yaml::between(0, kMaxWidth))
          .optional("value_dim", &Model::value_dim, "With latents: width of a head of the values.",
                    yaml::between(0, kMaxWidth))
          .optional("experts", &Model::experts, "Routed experts of a layer; 0: a dense model.",
                    yaml::between(0, kMaxExperts))
          .optional("experts_per_token", &Model::experts_per_token,
                    "Experts that each token is routed to (top-k).", yaml::between(1, kMaxExperts))
          .optional("expert_groups", &Model::expert_groups,
                    "Equal groups that the experts form (DeepSeek's n_group); 1: none.",
                    yaml::between(1, kMaxExperts))
          .optional("groups_per_token", &Model::groups_per_token,
                    "Groups that the experts of one token are in, at most (topk_group).",
                    yaml::between(1, kMaxExperts))
          .optional("expert_ffn", &Model::expert_ffn,
                    "Width of one routed expert; 0: that of `ffn`.", yaml::between(0, kMaxWidth))
          .optional("shared_ffn", &Model::shared_ffn,
                    "Width of the experts that every token passes, together; 0: there are none.",
                    yaml::between(0, kMaxWidth))
          .optional("dense_layers", &Model::dense_layers,
                    "The first so many layers have a feed-forward layer in place of experts.",
                    yaml::between(0, kMaxLayers))
          .optional("expert_interval", &Model::expert_interval,
                    "Of every so many layers the last has experts; 1: all.",
                    yaml::between(1, kMaxLayers))
          .optional("router", &Model::router, "What makes weights of the router's logits.")
          .optional("router_bias", &Model::router_bias, "Whether the router's product has a bias.")
          .optional("shared_gate", &Model::shared_gate,
                    "Whether what the experts of every token give is gated.")
          .optional("pattern", &Model::pattern,
                    "A letter for each layer, which then has one branch and one norm: M (Mamba), * "
                    "(attention), - (feed-forward layer), E (experts).")
          .optional("mamba", &Model::mamba, "The layers of letter M (Mamba-2).")
          .optional("multi_token_prediction", &Model::multi_token_prediction,
                    "Modules behind the layers, each of which predicts one more token (MTP of "
                    "DeepSeek-V3; Megatron-LM's --mtp-num-layers).",
                    yaml::between(0, kMaxPredictions))
          .optional("causal", &Model::causal,
                    "Whether tokens see those before them alone; else all (an encoder).")
          .optional("token_types", &Model::token_types,
                    "Rows of a table of the types of tokens, added to the embedding (BERT's "
                    "segments); 0: there is none.",
                    yaml::between(0, kMaxTypes))
          .optional("head", &Model::head, "What is made of the state of every token.")
          .optional("pooler", &Model::pooler,
                    "Whether a product and tanh follow the state of the first token.")
          .optional("classes", &Model::classes,
                    "Classes that are told of the first token's state; 0: none are.",
                    yaml::between(0, kMaxTokens))
          .optional("image", &Model::image,
                    "Images that are read in place of tokens (default: tokens are).")
          .optional("encoder", &Model::encoder,
                    "An encoder before the decoder (default: there is none).")
          .optional("adapters", &Model::adapters,
                    "Low-rank adapters (LoRA), which alone are trained (default: all parameters "
                    "are).")
          .optional("frozen", &Model::frozen,
                    "What is not trained, beside adapters (default: all is trained).")
          .optional("samples", &Model::samples,
                    "Lengths of training samples, and how they lie in sequences (default: each is "
                    "a sequence).")
          .optional("source", &Model::source, "Where these figures are published.");
  return table;
}

bool has_scale(Norm norm) {
  return norm != Norm::kLayerNormPlain;
}

bool has_shift(Norm norm) {
  return norm == Norm::kLayerNorm;
}

}  // namespace foreshard
