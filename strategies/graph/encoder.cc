// The keys of an encoder in YAML, and its checks.
#include "strategies/graph/encoder.h"

#include <fmt/format.h>

#include "strategies/graph/model.h"

namespace foreshard {
namespace {

constexpr double kMostLayers = 1 << 14;
constexpr double kMostTokens = 1 << 24;
constexpr double kMostBins = 1 << 12;

constexpr double kMaxSide = 1 << 16;
constexpr double kMaxChannels = 1 << 12;

std::string fault_in_squares(const Image& image) {
  if (image.patch < 1 || image.size % image.patch == 0) return {};
  return fmt::format("an image of {0} x {0} pixels does not divide into squares of {1}", image.size,
                     image.patch);
}

}  // namespace

const yaml::Table<Encoder>& yaml_table(const Encoder*) {
  static const auto table =
      yaml::Table<Encoder>("encoder", "An encoder before the decoder, which attends to its states.")
          .required("layers", &Encoder::layers, "Of the model's layers, the first so many.",
                    yaml::between(0, kMostLayers))
          .required("sequence", &Encoder::sequence, "Tokens of a sample that it reads.",
                    yaml::between(1, kMostTokens))
          .optional(
              "mel_bins", &Encoder::mel_bins,
              "Values of a frame of sound, of which two convolutions make tokens; 0: it reads "
              "tokens of the vocabulary.",
              yaml::between(0, kMostBins))
          .check("layers", [](const Encoder& encoder) -> std::string {
            if (encoder.layers > 0) return {};
            return "an encoder has 1 layer or more; leave out encoder for a decoder alone";
          });
  return table;
}

std::string fault_in_encoder(const Model& model) {
  if (model.positions == Positions::kRelative && (model.window > 0 || model.sinks))
    return fmt::format("relative positions beside {} are not modelled; leave it out",
                       model.window > 0 ? "a window" : "sinks");
  if (model.positions == Positions::kRelative && model.has_latents())
    return "relative positions beside latents are not modelled; leave out key_value_rank";
  if (!model.key_bias &&
      (!model.has_qkv_bias() || model.kv() != model.heads || model.has_latents()))
    return model.has_qkv_bias() ? "keys without a bias (key_bias) are modelled where each head has "
                                  "its own; leave out kv_heads"
                                : "key_bias has no meaning where queries and values have no bias; "
                                  "leave it out";
  if (!model.key_bias && model.adapters)
    return "adapters of keys without a bias (key_bias) are not modelled; leave out one of the two";
  if (!model.encoder) return {};
  if (model.encoder->layers >= model.layers)
    return fmt::format(
        "all {} layers are the encoder's (encoder.layers {}): no decoder attends to it; raise "
        "layers, "
        "which counts both, or set causal: false in place of encoder",
        model.layers, model.encoder->layers);
  const std::string set = !model.causal                      ? "causal: false"
                          : model.image                      ? "image"
                          : model.head != Head::kLanguage    ? "head"
                          : model.token_types > 0            ? "token_types"
                          : model.window > 0                 ? "window"
                          : model.sinks                      ? "sinks"
                          : model.has_latents()              ? "key_value_rank"
                          : model.experts > 0                ? "experts"
                          : model.multi_token_prediction > 0 ? "multi_token_prediction"
                          : model.adapters.has_value()       ? "adapters"
                          : model.embedding_norm             ? "embedding_norm"
                          : model.qk_norm != QkNorm::kNone   ? "qk_norm"
                          : model.unrotated_interval > 0     ? "unrotated_interval"
                                                             : "";
  if (!set.empty()) return fmt::format("{} beside an encoder is not modelled; leave it out", set);
  if (model.norm_places != NormPlaces::kBefore || model.branches != Branches::kSequential)
    return "layers beside an encoder are normalised before each branch, one after the other; leave "
           "out norm_places and branches";
  if (model.positions == Positions::kRotary)
    return "rotary positions beside an encoder are not modelled; set positions: learned, relative "
           "or "
           "none";
  return {};
}

const yaml::Names<Head>& yaml_names(const Head*) {
  static const yaml::Names<Head> names{
      {"language", Head::kLanguage, "The projection to the vocabulary."},
      {"masked", Head::kMasked,
       "The projection to the vocabulary, behind a product, GELU and a norm (BERT)."},
      {"none", Head::kNone, "Nothing: the states go out, or `classes` are told of them."},
  };
  return names;
}

const yaml::Table<Image>& yaml_table(const Image*) {
  static const auto table =
      yaml::Table<Image>("image", "Images, cut into squares that take the place of tokens.")
          .required("size", &Image::size, "Pixels of a side.", yaml::between(1, kMaxSide))
          .required("patch", &Image::patch, "Pixels of a side of a square.",
                    yaml::between(1, kMaxSide))
          .optional("channels", &Image::channels, "Values of a pixel.",
                    yaml::between(1, kMaxChannels))
          .check("patch", fault_in_squares);
  return table;
}

std::string fault_in_ends(const Model& model) {
  if (model.image) {
    if (std::string why = fault_in_squares(*model.image); !why.empty()) return why;
    if (model.vocabulary > 0 || model.token_types > 0)
      return fmt::format("images are read in place of tokens: leave out {}",
                         model.vocabulary > 0 ? "vocabulary" : "token_types");
    if (model.sequence != model.image->tokens())
      return fmt::format(
          "an image of {0} x {0} pixels in squares of {1} is {2} tokens and the class token: set "
          "sequence: {3}",
          model.image->size, model.image->patch, model.image->patches(), model.image->tokens());
    if (model.causal || model.head != Head::kNone)
      return "images are encoded, not continued: set causal: false and head: none";
  } else if (model.vocabulary == 0) {
    return "vocabulary is missing: how many tokens there are";
  }
  if (model.causal) {
    const std::string set = model.head != Head::kLanguage ? "head"
                            : model.classes > 0           ? "classes"
                            : model.pooler                ? "pooler"
                                                          : "";
    if (!set.empty())
      return fmt::format(
          "{} is for an encoder: the first token of a causal model sees no other, and each is told "
          "the next; set causal: false, or leave it out",
          set);
  }
  if (model.pooler && model.classes == 0 && model.head != Head::kNone)
    return "nothing reads what the pooler makes: give classes, or leave out pooler";
  if (model.head == Head::kNone && (!model.tied_embeddings || model.head_bias))
    return fmt::format("{} has no meaning without a head (head: none): leave it out",
                       model.head_bias ? "head_bias" : "tied_embeddings");
  if (!model.causal &&
      (model.window > 0 || model.sinks || model.has_latents() || model.multi_token_prediction > 0))
    return fmt::format("without a causal mask {} not modelled; leave it out",
                       model.window > 0      ? "a window (window) is"
                       : model.sinks         ? "sinks (sinks) are"
                       : model.has_latents() ? "latents (key_value_rank) are"
                                             : "multi_token_prediction is");
  if (model.norm_places == NormPlaces::kAfterSum && model.multi_token_prediction > 0)
    return "multi_token_prediction with norms after the sum is not modelled; leave out one of the "
           "two";
  return {};
}

}  // namespace foreshard
