// The keys of an encoder in YAML, its checks, and counts of its elements and products for
// model.h.
#include "strategies/graph/encoder.h"

#include <fmt/format.h>

#include "strategies/graph/model.h"

namespace foreshard {
namespace {

constexpr double kMostLayers = 1 << 14;
constexpr double kMostTokens = 1 << 24;
constexpr double kMostBins = 1 << 12;

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

double cross_attention_products(const Model& model) {
  const auto width = static_cast<double>(model.hidden * model.head_size());
  return width * (static_cast<double>(2 * model.heads * model.sequence) +
                  static_cast<double>(2 * model.kv() * model.encoder->sequence));
}

std::int64_t elements_of_sines(const Model& model) {
  const bool has_sines =
      model.encoder && model.encoder->mel_bins > 0 && model.positions == Positions::kLearned;
  return has_sines ? model.encoder->sequence * model.hidden : 0;
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

}  // namespace foreshard
