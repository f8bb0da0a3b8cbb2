#include "strategies/graph/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace foreshard {

namespace {

// Bounds far beyond every published model, and small enough for exact tensor sizes.
constexpr double kMaxLayers = 1 << 14;
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

namespace {

// Parameters of the two norms of a layer's queries and keys. Source: Transformers, where layer
// norms with weights for each head (StableLM, Cohere) have no shift, whatever the model's other
// norms have.
std::int64_t qk_norm_parameters(const Model& model) {
  const std::int64_t both = (model.heads + model.kv()) * model.head_size();
  switch (model.qk_norm) {
    case QkNorm::kNone:
      return 0;
    case QkNorm::kPerHead:
      return 2 * model.head_size() * (has_shift(model.norm) ? 2 : 1);
    case QkNorm::kEveryHead:
    case QkNorm::kAllHeads:
      return both;
  }
  return 0;
}

std::int64_t norms_of_layer(const Model& model, LayerKind kind) {
  if (has_one_branch(kind)) return 1;
  if (model.branches == Branches::kParallelOneNorm) return 1;
  return model.norm_places == NormPlaces::kBoth ? 4 : 2;
}

std::int64_t matrices_of(Activation activation) {
  return activation == Activation::kSwiglu ? 3 : 2;
}

std::int64_t norm_parameters(const Model& model, std::int64_t width) {
  return (has_scale(model.norm) ? width : 0) + (has_shift(model.norm) ? width : 0);
}

// Elements of the matrices of attention.
std::int64_t attention_matrices(const Model& model) {
  const std::int64_t h = model.hidden;
  const std::int64_t queries = model.heads * model.head_size();
  const std::int64_t out = model.heads * model.value_size() * h;
  if (!model.has_latents()) return h * (queries + 2 * model.kv() * model.head_size()) + out;
  const std::int64_t rank = model.query_rank;
  const std::int64_t unrotated = model.head_size() - model.rotary_dim;
  return (rank > 0 ? (h + queries) * rank : h * queries) +
         h * (model.key_value_rank + model.rotary_dim) +
         model.key_value_rank * model.heads * (unrotated + model.value_dim) + out;
}
std::int64_t attention_parameters(const Model& model) {
  const std::int64_t qkv_width = (model.heads + 2 * model.kv()) * model.head_size();
  std::int64_t sum = attention_matrices(model) + qk_norm_parameters(model);
  if (model.has_latents())
    sum += norm_parameters(model, model.query_rank) + norm_parameters(model, model.key_value_rank);
  if (model.has_qkv_bias())
    sum += qkv_width - (model.key_bias ? 0 : model.kv() * model.head_size());
  if (model.has_attention_out_bias()) sum += model.hidden;
  if (model.sinks) sum += model.heads;
  return sum;
}

std::int64_t mixer_parameters(const Model& model, Mixer mixer) {
  if (mixer == Mixer::kMamba) return mamba_parameters(*model.mamba, model.hidden);
  return mixer == Mixer::kAttention ? attention_parameters(model) : 0;
}
std::int64_t mixer_matrices(const Model& model, Mixer mixer) {
  if (mixer == Mixer::kMamba) return mamba_matrices(*model.mamba, model.hidden);
  return mixer == Mixer::kAttention ? attention_matrices(model) : 0;
}

// Parameters of the adapter of a linear layer from `in` to `out` values; 0 if it has none.
std::int64_t adapter_parameters(const Model& model, AdapterTarget target, std::int64_t in,
                                std::int64_t out) {
  return model.has_adapter(target) ? model.adapters->rank * (in + out) : 0;
}

std::int64_t qkv_width(const Model& model) {
  return (model.heads + 2 * model.kv()) * model.head_size();
}

// Parameters of the adapters of a layer.
std::int64_t adapter_parameters(const Model& model) {
  const std::int64_t h = model.hidden;
  const std::int64_t f = model.ffn_width();
  return adapter_parameters(model, AdapterTarget::kQkv, h, qkv_width(model)) +
         adapter_parameters(model, AdapterTarget::kAttentionOut, model.heads * model.head_size(),
                            h) +
         adapter_parameters(model, AdapterTarget::kMlpUp, h,
                            (matrices_of(model.activation) - 1) * f) +
         adapter_parameters(model, AdapterTarget::kMlpDown, f, h);
}

// Elements of the matrices after attention, with `experts` routed experts.
std::int64_t feed_forward_matrices(const Model& model, LayerKind kind, std::int64_t experts) {
  const std::int64_t row = model.hidden * matrices_of(model.activation);
  if (!kind.feed_forward) return 0;
  if (!kind.experts) return row * model.ffn_width();
  return row * (experts * model.expert_width() + model.shared_ffn) +
         model.hidden * (model.experts + (model.shared_gate ? 1 : 0));
}
std::int64_t feed_forward_biases(const Model& model, LayerKind kind, std::int64_t experts) {
  if (!kind.feed_forward) return 0;
  const std::int64_t width = kind.experts ? model.expert_width() : model.ffn_width();
  const std::int64_t of_one = (matrices_of(model.activation) - 1) * width + model.hidden;
  const std::int64_t router = kind.experts && model.router_bias ? model.experts : 0;
  return router + (model.has_mlp_bias() ? of_one * (kind.experts ? experts : 1) : 0);
}

// Elements of the matrix that joins stream and next embedding in a module that predicts one more
// token.
std::int64_t prediction_matrix(const Model& model) {
  return 2 * model.hidden * model.hidden;
}

std::int64_t layer_parameters(const Model& model, LayerKind kind, std::int64_t experts) {
  const std::int64_t crosses = model.attends_to_encoder(kind) ? 1 : 0;
  const std::int64_t table = model.has_relative_table(kind) ? kRelativeBuckets * model.heads : 0;
  const std::int64_t norms = norms_of_layer(model, kind) + crosses + (kind.ends_encoder ? 1 : 0);
  return mixer_parameters(model, kind.mixer) + crosses * attention_parameters(model) + table +
         norms * norm_parameters(model, model.hidden) +
         feed_forward_matrices(model, kind, experts) + feed_forward_biases(model, kind, experts);
}

std::int64_t embedding_parameters(const Model& model) {
  const std::int64_t positions =
      model.positions == Positions::kLearned ? model.position_rows() * model.hidden : 0;
  const std::int64_t norm = model.embedding_norm ? norm_parameters(model, model.hidden) : 0;
  return model.vocabulary * model.hidden + positions + norm;
}

// Parameters of the head, without a table that it shares with the embedding.
std::int64_t head_parameters(const Model& model) {
  return norm_parameters(model, model.hidden) +
         (model.tied_embeddings ? 0 : model.vocabulary * model.hidden) +
         (model.head_bias ? model.vocabulary : 0);
}

// Parameters of the model, with `experts` routed experts per layer.
std::int64_t parameters_with(const Model& model, std::int64_t experts) {
  const std::int64_t norm = norm_parameters(model, model.hidden);
  const auto of_layer = [&](LayerKind kind) { return layer_parameters(model, kind, experts); };
  std::int64_t total = parameters_of_ends(model);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    total += of_layer(model.kind_of_layer(layer));
  constexpr std::int64_t kNorms = 3;  // norms of the stream, of the embedding and of the result
  total += model.multi_token_prediction *
           (of_layer(model.kind_of_prediction()) + prediction_matrix(model) + kNorms * norm);
  return total + model.layers * adapter_parameters(model);
}

// Twice the scores that a head with a causal mask computes for one sequence, which is as many as a
// head without a mask computes.
double doubled_scores(const Model& model, LayerKind kind) {
  const auto s = static_cast<double>(model.sequence_of(kind));
  if (model.attends_to_encoder(kind)) return s * (s + static_cast<double>(model.encoder->sequence));
  const auto w = static_cast<double>(model.window);
  if (kind.mixer != Mixer::kAttention) return 0;
  if (model.has_packed_samples())
    return 2 * s * model.samples->keys_of_query(kind.window ? model.window : 0);
  if (!kind.window) return s * s;
  return model.window_kind == WindowKind::kChunk ? s * w : w * (2 * s - w);
}

}  // namespace

std::int64_t parameter_count(const Model& model) {
  return parameters_with(model, model.experts);
}

std::int64_t active_parameter_count(const Model& model) {
  return parameters_with(model, std::min(model.experts, model.experts_per_token));
}

std::int64_t trained_parameter_count(const Model& model) {
  if (model.adapters) return model.layers * adapter_parameters(model);
  std::int64_t trained = parameter_count(model) - elements_of_sines(model);
  if (!model.frozen) return trained;
  if (model.frozen->embedding) trained -= embedding_parameters(model);
  if (model.frozen->head) trained -= head_parameters(model);
  for (std::int64_t layer = 0; layer < model.frozen->layers; ++layer)
    trained -= layer_parameters(model, model.kind_of_layer(layer), model.experts);
  return trained;
}

// Number of products (forward, and for gradients) per matrix and for attention; a product takes 2
// operations per element.
struct ProductCounts {
  double of_matrix;
  double of_adapter;
  double of_attention;
};

// Multiplications of one sample by the matrices that read the sample itself: pixels, or frames of
// sound, which are twice as many as tokens. The sample has no gradient.
static double products_of_samples(const Model& model) {
  std::int64_t products = model.image ? model.image->patches() * model.image->patch_values() : 0;
  if (const auto& encoder = model.encoder)
    products += encoder->sequence * Encoder::kWidth * 2 * encoder->mel_bins;
  return static_cast<double>(products * model.hidden);
}

static Flops flops_of(const Model& model, double samples, const ProductCounts& products) {
  const auto s = static_cast<double>(model.sequence);
  const std::int64_t experts = std::min(model.experts, model.experts_per_token);
  const double widths = static_cast<double>(model.heads * (model.head_size() + model.value_size()));
  const std::int64_t predictions = model.multi_token_prediction;
  const bool trains = products.of_attention > 1;
  const bool is_head_frozen = trains && model.frozen && model.frozen->head;
  // `matrices`: multiplications of one sample, times the number of products. `scores`: the same.
  const double of_ends = is_head_frozen ? 2 : products.of_matrix;
  double matrices = of_ends * (products_of_ends(model) +
                               s * static_cast<double>(prediction_matrix(model) * predictions));
  if (trains)  // the samples have no gradient, and frozen matrices that read them have none either
    matrices -= (model.freezes_embedding() ? of_ends - 1 : 1) * products_of_samples(model);
  double scores = 0;
  double scans = 0;
  for (std::int64_t layer = 0; layer < model.layers + predictions; ++layer) {
    const LayerKind kind =
        layer < model.layers ? model.kind_of_layer(layer) : model.kind_of_prediction();
    const bool is_frozen = trains && kind.frozen;
    const bool ends = is_frozen && !model.is_trained_before(layer);  // nothing runs backward
    const double of_matrix = ends ? 1 : is_frozen ? 2 : products.of_matrix;
    const double of_attention = ends ? 1 : products.of_attention;
    matrices += of_matrix * static_cast<double>(model.sequence_of(kind)) *
                static_cast<double>(mixer_matrices(model, kind.mixer) +
                                    feed_forward_matrices(model, kind, experts));
    if (model.attends_to_encoder(kind)) matrices += of_matrix * cross_attention_products(model);
    scores += of_attention * doubled_scores(model, kind);
    if (kind.mixer == Mixer::kMamba)
      scans += of_attention * (scan_flops_per_token(*model.mamba) / 1_FLOP);
  }
  const double adapters = static_cast<double>(model.layers * adapter_parameters(model));
  return Flops::from_base(
      2 * samples *
      (matrices + products.of_adapter * s * adapters + scores * widths + s * scans / 2));
}

Flops model_flops(const Model& model, double samples) {
  return flops_of(model, samples,
                  {.of_matrix = model.adapters ? 2.0 : 3.0, .of_adapter = 3, .of_attention = 3});
}

Flops forward_flops(const Model& model, double samples) {
  return flops_of(model, samples, {.of_matrix = 1, .of_adapter = 1, .of_attention = 1});
}

}  // namespace foreshard
