#include "strategies/graph/model.h"

#include <fmt/format.h>

namespace foreshard {
namespace {

// Far beyond every published model, and small enough for sizes of tensors to be exact.
constexpr double kMaxLayers = 1 << 14;
constexpr double kMaxHeads = 1 << 12;
constexpr double kMaxWidth = 1 << 20;
constexpr double kMaxTokens = 1 << 24;

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

}  // namespace

std::int64_t parameter_count(const Model& model) {
  const std::int64_t h = model.hidden;
  const std::int64_t attention_width = model.heads * model.head_size();
  const std::int64_t qkv_width = attention_width + 2 * model.kv() * model.head_size();
  const std::int64_t f = model.ffn_width();
  const std::int64_t up_width = model.activation == Activation::kSwiglu ? 2 * f : f;
  const std::int64_t norm = (has_scale(model.norm) ? h : 0) + (has_shift(model.norm) ? h : 0);
  std::int64_t layer = h * qkv_width + attention_width * h + h * up_width + f * h;
  layer += norms_of_layer(model) * norm + qk_norm_parameters(model);
  if (model.has_qkv_bias()) layer += qkv_width;
  if (model.has_attention_out_bias()) layer += h;
  if (model.has_mlp_bias()) layer += up_width + h;
  std::int64_t total = model.layers * layer + model.vocabulary * h + norm;
  if (model.embedding_norm) total += norm;
  if (!model.tied_embeddings) total += model.vocabulary * h;
  if (model.head_bias) total += model.vocabulary;
  if (model.positions == Positions::kLearned) total += model.position_rows() * h;
  return total;
}

Flops model_flops(const Model& model, double samples) {
  const auto h = static_cast<double>(model.hidden);
  const double attention_width = static_cast<double>(model.heads * model.head_size());
  const double qkv_width =
      attention_width + 2.0 * static_cast<double>(model.kv() * model.head_size());
  const auto f = static_cast<double>(model.ffn_width());
  const double matrices = model.activation == Activation::kSwiglu ? 3 : 2;
  const auto s = static_cast<double>(model.sequence);
  const double per_token_layer = h * qkv_width + attention_width * h + matrices * h * f;
  const double layer = 6 * s * per_token_layer + 12 * s * s * attention_width;
  const double head = 6 * s * h * static_cast<double>(model.vocabulary);
  return Flops::from_base(samples * (static_cast<double>(model.layers) * layer + head));
}

Flops forward_flops(const Model& model, double samples) {
  return model_flops(model, samples) / 3;
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
  return model;
}

}  // namespace foreshard
