// Layers of an encoder and of the decoder that attends to its states (encoder.h).
//
// The inputs of each block are the decoder's stream, then the encoder's. A stream that a layer does
// not work on passes through it: the embedding of the decoder's tokens through the encoder, the
// encoder's states through the decoder, whose layers add up the states' gradient one after the
// other. Not modelled: the last layer, whose contribution to that gradient comes first, has no sum
// to add it to; kernels that read separate queries, keys and values in place (here they are copied
// side by side).
#include <fmt/format.h>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

TensorId BlockBuilder::separate_heads(const std::string& name, TensorId x,
                                      const std::vector<std::string>& parts) {
  const std::int64_t length = graph_[x].shape[1];
  const std::int64_t d = model_.head_size();
  std::vector<TensorId> heads;
  for (const std::string& part : parts) {
    const std::string own = fmt::format("{}_{}", name, part);
    const TensorId y = matmul(own, x, model_.hidden, model_.heads * d, {kWhole, tensor()});
    if (part != "key") fused_bias(own, y, model_.heads * d, tensor());
    heads.push_back(reshaped(own + "_heads", y, {options_.batch, length, model_.heads, d}));
  }
  const auto count = static_cast<std::int64_t>(parts.size());
  const TensorId all = added({.type = "concat",
                              .name = name + "_heads",
                              .inputs = std::move(heads),
                              .settings = {{"axis", std::int64_t{3}}}});
  return reshaped(name, all, {options_.batch, length, model_.heads * count * d});
}

// Keys and values lie by key-value group, as in the packed projection.
TensorId BlockBuilder::cross_attention_branch(TensorId x, TensorId encoded) {
  begin(LayerPart::kQkv);
  const std::int64_t queries_width = model_.heads * model_.head_size();
  const std::int64_t keys_width = 2 * model_.kv() * model_.head_size();
  const TensorId queries =
      matmul("cross_query", x, model_.hidden, queries_width, {kWhole, tensor()});
  if (model_.has_qkv_bias()) fused_bias("cross_query", queries, queries_width, tensor());
  TensorId keys;
  if (model_.key_bias) {
    keys = matmul("cross_key_value", encoded, model_.hidden, keys_width, {kWhole, tensor()});
    if (model_.has_qkv_bias()) fused_bias("cross_key_value", keys, keys_width, tensor());
  } else {
    keys = separate_heads("cross", encoded, {"key", "value"});
  }
  begin(LayerPart::kCoreAttention);
  Settings settings = attention_settings();
  settings.set("causal", false);
  const TensorId heads = added({.type = "context_attention",
                                .name = "cross_attention",
                                .inputs = {queries, keys},
                                .settings = std::move(settings),
                                .output_names = {"cross_context", "cross_attention.logsumexp"}});
  begin(LayerPart::kAttentionOut);
  return matmul("cross_attention_out", heads, attention_width(), model_.hidden, {tensor(), kWhole});
}

Graph layer_graph_beside_encoder(const Model& model, const TransformerOptions& options,
                                 LayerKind kind) {
  BlockBuilder build(name_of(kind), model, options, kind);
  build.quantize();
  const auto stream = [&](const std::string& name, std::int64_t length, bool carried) {
    const TensorId id =
        build.at_boundary(build.activation(name, {options.batch, length, model.hidden}));
    if (carried) build.carry(id);
    return id;
  };
  const TensorId decoded =
      stream(kind.encoder ? "decoder_in" : "layer_in", model.sequence, kind.encoder);
  const TensorId encoded = stream(kind.encoder ? "layer_in" : "encoded", model.encoder->sequence,
                                  !kind.encoder && !kind.first);
  if (!kind.encoder) {
    const TensorId y = build.layer(decoded, "layer_out", encoded);
    return build.take({decoded, encoded}, {y, encoded});
  }
  TensorId y = build.layer(encoded, kind.ends_encoder ? "encoder_out" : "layer_out");
  if (kind.ends_encoder) y = build.at_boundary(build.norm("encoder_norm", y, "layer_out"));
  return build.take({decoded, encoded}, {decoded, y});
}

// Frames of sound as embedded tokens: two convolutions over time, each with a bias and GELU; then a
// transposition that puts tokens before channels.
// Source: Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023,
// section 2.2; huggingface/transformers, models/whisper/modeling_whisper.py (WhisperEncoder, whose
// sinusoidal positions are a table that is not trained).
static TensorId embedded_frames(BlockBuilder& build) {
  const Model& model = build.model();
  const Encoder& encoder = *model.encoder;
  const std::int64_t h = model.hidden;
  const TensorId frames = build.pin(
      build.activation("frames", {build.options().batch, encoder.mel_bins, 2 * encoder.sequence}),
      {build.batch(), build.kWhole, build.kWhole});
  const auto convolved = [&](const std::string& name, TensorId x, std::int64_t in,
                             std::int64_t stride) {
    const auto whole = [&](std::size_t rank) {
      return std::vector<std::vector<Axis>>(rank, build.kWhole);
    };
    const TensorId weight = build.parameter(name + ".weight", {h, in, Encoder::kWidth}, whole(3));
    const TensorId bias = build.parameter(name + ".bias", {h, 1}, whole(2));
    const TensorId y = build.added({.type = "conv",
                                    .name = name,
                                    .inputs = {x, weight},
                                    .settings = {{"strides", std::vector{stride}},
                                                 {"pads", std::vector<std::int64_t>{1, 1}}}});
    return build.added({.type = "unary",
                        .name = name + "_activation",
                        .inputs = {build.sum(name + "_biased", y, bias)},
                        .settings = {{"operation", std::string("gelu")}}});
  };
  const TensorId heard = convolved("conv_1", frames, encoder.mel_bins, 1);
  return build.added({.type = "transpose",
                      .name = "encoder_embedding",
                      .inputs = {convolved("conv_2", heard, h, 2)},
                      .settings = {{"order", std::vector<std::int64_t>{0, 2, 1}}}});
}

TensorId embedded_for_encoder(BlockBuilder& build, TensorId table) {
  const Model& model = build.model();
  const std::int64_t length = model.encoder->sequence;
  const bool hears = model.encoder->mel_bins > 0;
  TensorId out =
      hears ? embedded_frames(build)
            : build.looked_up(build.given("encoder_token_ids", {build.options().batch, length}),
                              table, "encoder_embedding", "encoder_embedding");
  if (model.positions == Positions::kLearned) {
    const TensorId positions = build.parameter("encoder_position.weight", {length, model.hidden},
                                               {build.kWhole, build.kWhole});
    if (hears) build.freeze(positions);
    out = build.added(
        {.type = "add_positions", .name = "add_encoder_positions", .inputs = {out, positions}});
  }
  return build.at_boundary(out);
}

}  // namespace foreshard::internal
