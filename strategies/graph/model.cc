#include "strategies/graph/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace foreshard {
namespace {

// Far beyond every published model, and small enough for sizes of tensors to be exact.
constexpr double kMaxLayers = 1 << 14;
constexpr double kMaxHeads = 1 << 12;
constexpr double kMaxWidth = 1 << 20;
constexpr double kMaxTokens = 1 << 24;
constexpr double kMaxExperts = 1 << 14;

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
  };
  return names;
}

const yaml::Names<Positions>& yaml_names(const Positions*) {
  static const yaml::Names<Positions> names{
      {"learned", Positions::kLearned, "A trained vector per position, added to the embedding."},
      {"rotary", Positions::kRotary, "Rotation of queries and keys."},
      {"none", Positions::kNone, "No positions, or ones without cost (ALiBi)."},
  };
  return names;
}

const yaml::Names<NormPlaces>& yaml_names(const NormPlaces*) {
  static const yaml::Names<NormPlaces> names{
      {"before", NormPlaces::kBefore, "x + branch(norm(x))."},
      {"after", NormPlaces::kAfter, "x + norm(branch(x)) (OLMo 2)."},
      {"both", NormPlaces::kBoth, "x + norm(branch(norm(x))) (Gemma 2)."},
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

const yaml::Table<Model>& yaml_table(const Model*) {
  static const auto table =
      yaml::Table<Model>("model", "A decoder transformer.")
          .folder("models")
          .required("name", &Model::name, "Name in reports.")
          .required("layers", &Model::layers, "Transformer layers.", yaml::between(1, kMaxLayers))
          .required("hidden", &Model::hidden, "Width of the residual stream.",
                    yaml::between(1, kMaxWidth))
          .required("heads", &Model::heads, "Attention (query) heads.", yaml::between(1, kMaxHeads))
          .optional("kv_heads", &Model::kv_heads, "Key and value heads; 0: as many as heads.",
                    yaml::between(0, kMaxHeads))
          .optional("head_dim", &Model::head_dim, "Width of a head; 0: hidden / heads.",
                    yaml::between(0, kMaxWidth))
          .optional("ffn", &Model::ffn, "Width of the feed-forward layer; 0: 4 x hidden.",
                    yaml::between(0, kMaxWidth))
          .required("vocabulary", &Model::vocabulary, "Tokens in the vocabulary.",
                    yaml::between(1, kMaxTokens))
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
          .optional("experts", &Model::experts, "Routed experts of a layer; 0: a dense model.",
                    yaml::between(0, kMaxExperts))
          .optional("experts_per_token", &Model::experts_per_token,
                    "Experts that each token is routed to (top-k).", yaml::between(1, kMaxExperts))
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
          .optional("adapters", &Model::adapters,
                    "Low-rank adapters (LoRA), which alone are trained (default: all parameters "
                    "are).")
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

// Of both norms of a layer's queries and keys. Source: Transformers, where the layer norms of whole
// heads (StableLM, Cohere) have no shift, whatever the model's others have.
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

std::int64_t norms_of_layer(const Model& model) {
  if (model.branches == Branches::kParallelOneNorm) return 1;
  return model.norm_places == NormPlaces::kBoth ? 4 : 2;
}

std::int64_t matrices_of(Activation activation) {
  return activation == Activation::kSwiglu ? 3 : 2;
}

// Elements of the matrices behind attention of which `experts` routed ones count.
std::int64_t feed_forward_matrices(const Model& model, LayerKind kind, std::int64_t experts) {
  const std::int64_t row = model.hidden * matrices_of(model.activation);
  if (kind == LayerKind::kDense) return row * model.ffn_width();
  return row * (experts * model.expert_width() + model.shared_ffn) + model.hidden * model.experts;
}

// Of all layers.
std::int64_t feed_forward_matrices(const Model& model, std::int64_t experts) {
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    sum += feed_forward_matrices(model, model.kind_of_layer(layer), experts);
  return sum;
}

// Of the adapter of a linear layer from `in` to `out` values, where it has one.
std::int64_t adapter_parameters(const Model& model, AdapterTarget target, std::int64_t in,
                                std::int64_t out) {
  return model.has_adapter(target) ? model.adapters->rank * (in + out) : 0;
}

std::int64_t qkv_width(const Model& model) {
  return (model.heads + 2 * model.kv()) * model.head_size();
}

// Of a layer.
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

std::int64_t parameters_with(const Model& model, std::int64_t experts) {
  const std::int64_t h = model.hidden;
  const std::int64_t attention_width = model.heads * model.head_size();
  const std::int64_t qkv_width = foreshard::qkv_width(model);
  const std::int64_t up_width = (matrices_of(model.activation) - 1) * model.ffn_width();
  const std::int64_t norm = (has_scale(model.norm) ? h : 0) + (has_shift(model.norm) ? h : 0);
  std::int64_t layer = h * qkv_width + attention_width * h;
  layer += norms_of_layer(model) * norm + qk_norm_parameters(model);
  if (model.has_qkv_bias()) layer += qkv_width;
  if (model.has_attention_out_bias()) layer += h;
  if (model.has_mlp_bias()) layer += up_width + h;
  layer += adapter_parameters(model);
  std::int64_t total =
      model.layers * layer + feed_forward_matrices(model, experts) + model.vocabulary * h + norm;
  if (model.embedding_norm) total += norm;
  if (!model.tied_embeddings) total += model.vocabulary * h;
  if (model.head_bias) total += model.vocabulary;
  if (model.positions == Positions::kLearned) total += model.position_rows() * h;
  return total;
}

}  // namespace

LayerKind Model::kind_of_layer(std::int64_t layer) const {
  const bool is_dense = experts == 0 || layer < dense_layers || (layer + 1) % expert_interval != 0;
  return is_dense ? LayerKind::kDense : LayerKind::kExperts;
}

std::vector<LayerKind> Model::layer_kinds() const {
  std::int64_t dense = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    dense += kind_of_layer(layer) == LayerKind::kDense ? 1 : 0;
  if (dense == layers) return {LayerKind::kDense};
  if (dense == 0) return {LayerKind::kExperts};
  return {LayerKind::kDense, LayerKind::kExperts};
}

std::size_t Model::kind_index(std::int64_t layer) const {
  return kind_of_layer(layer) == layer_kinds().front() ? 0 : 1;
}

std::int64_t parameter_count(const Model& model) {
  return parameters_with(model, model.experts);
}

std::int64_t active_parameter_count(const Model& model) {
  return parameters_with(model, std::min(model.experts, model.experts_per_token));
}

std::int64_t trained_parameter_count(const Model& model) {
  return model.adapters ? model.layers * adapter_parameters(model) : parameter_count(model);
}

// `products` of each matrix and of attention, of 2 operations an element: forward, and of the
// gradients.
struct ProductCounts {
  double of_matrix;
  double of_adapter;
  double of_attention;
};

static Flops flops_of(const Model& model, double samples, const ProductCounts& products) {
  const auto h = static_cast<double>(model.hidden);
  const double attention_width = static_cast<double>(model.heads * model.head_size());
  const double qkv_width = static_cast<double>(foreshard::qkv_width(model));
  const auto s = static_cast<double>(model.sequence);
  const auto layers = static_cast<double>(model.layers);
  const auto fed = static_cast<double>(
      feed_forward_matrices(model, std::min(model.experts, model.experts_per_token)));
  const double per_token_layer = h * qkv_width + attention_width * h + fed / layers;
  const double layer = 2 * s *
                           (products.of_matrix * per_token_layer +
                            products.of_adapter * static_cast<double>(adapter_parameters(model))) +
                       4 * products.of_attention * s * s * attention_width;
  const double head = 2 * products.of_matrix * s * h * static_cast<double>(model.vocabulary);
  return Flops::from_base(samples * (layers * layer + head));
}

Flops model_flops(const Model& model, double samples) {
  return flops_of(model, samples,
                  {.of_matrix = model.adapters ? 2.0 : 3.0, .of_adapter = 3, .of_attention = 3});
}

Flops forward_flops(const Model& model, double samples) {
  return flops_of(model, samples, {.of_matrix = 1, .of_adapter = 1, .of_attention = 1});
}

Result<Model> checked(Model model) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, fmt::format("model '{}': {}", model.name, why)};
  };
  if (model.head_dim <= 0 && model.hidden % model.heads != 0)
    return fault(fmt::format("hidden {} is not divisible by heads {}; give head_dim", model.hidden,
                             model.heads));
  if (model.heads % model.kv() != 0)
    return fault(fmt::format("heads {} is not divisible by kv_heads {}", model.heads, model.kv()));
  if (model.positions == Positions::kLearned && model.position_rows() < model.sequence)
    return fault(fmt::format("position_table {} has no row for each of the sequence's {} tokens",
                             model.position_table, model.sequence));
  if (model.branches != Branches::kSequential && model.norm_places != NormPlaces::kBefore)
    return fault("parallel branches are normalised before, not after; leave out norm_places");
  if (model.experts > 0)
    for (const AdapterTarget target : {AdapterTarget::kMlpUp, AdapterTarget::kMlpDown})
      if (model.has_adapter(target))
        return fault(
            "adapters of experts are not modelled; set adapters.targets: [qkv, attention-out]");
  if (model.experts > 0) {
    if (model.experts_per_token > model.experts)
      return fault(fmt::format("experts_per_token {} is more than the {} experts of a layer",
                               model.experts_per_token, model.experts));
    if (model.layer_kinds() == std::vector{LayerKind::kDense})
      return fault(
          fmt::format("dense_layers {} and expert_interval {} leave none of {} layers with experts",
                      model.dense_layers, model.expert_interval, model.layers));
    if (model.expert_ffn > 0 && model.ffn > 0 &&
        model.layer_kinds() == std::vector{LayerKind::kExperts})
      return fault("every layer has experts, of width expert_ffn: leave out ffn");
    if (model.has_mlp_bias())
      return fault("experts whose projections have biases are not modelled; set bias: false");
    return model;
  }
  for (const auto& [key, is_set] : {std::pair("experts_per_token", model.experts_per_token != 1),
                                    std::pair("expert_ffn", model.expert_ffn != 0),
                                    std::pair("shared_ffn", model.shared_ffn != 0),
                                    std::pair("dense_layers", model.dense_layers != 0),
                                    std::pair("expert_interval", model.expert_interval != 1)})
    if (is_set) return fault(fmt::format("{} has no meaning without experts", key));
  return model;
}

}  // namespace foreshard
