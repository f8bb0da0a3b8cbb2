// Blocks before and after the layers (encoder.h).
#include <fmt/format.h>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

TensorId embedded_image(BlockBuilder& build) {
  const Image& image = *build.model().image;
  const std::int64_t batch = build.options().batch;
  const std::int64_t h = build.model().hidden;
  const TensorId squares =
      build.activation("squares", {batch, image.patches(), image.patch_values()});
  build.pin(squares, {build.batch(), build.kWhole, build.kWhole});
  const TensorId tokens =
      build.matmul("patch", squares, image.patch_values(), h, {build.kWhole, build.kWhole});
  build.fused_bias("patch", tokens, h, build.kWhole);
  const TensorId one = build.parameter("class_token", {1, h}, {build.kWhole, build.kWhole});
  const TensorId first =
      build.looked_up(build.given("class_ids", {batch, 1}), one, "class_tokens", "class_tokens");
  return build.added({.type = "concat",
                      .name = "embedding",
                      .inputs = {first, tokens},
                      .settings = {{"axis", std::int64_t{1}}}});
}

TensorId with_token_types(BlockBuilder& build, TensorId embedded) {
  const Model& model = build.model();
  const TensorId types = build.given("token_types", {build.options().batch, model.sequence});
  const TensorId table = build.parameter("token_type.weight", {model.token_types, model.hidden},
                                         {build.kWhole, build.kWhole});
  const TensorId rows = build.added({.type = "embedding",
                                     .name = "token_type",
                                     .inputs = {types, table},
                                     .settings = {{"every_row", true}}});
  const bool is_last = model.positions != Positions::kLearned && !model.embedding_norm;
  return build.sum("typed", embedded, rows, is_last ? "embedded" : "");
}

// The product is whole on every tensor-parallel rank; under sequence parallelism each rank computes
// it for its own tokens.
// Source: NVIDIA/Megatron-LM, megatron/core/models/bert/bert_lm_head.py.
TensorId transformed(BlockBuilder& build, TensorId states) {
  const std::int64_t h = build.model().hidden;
  const TensorId up = build.matmul("transform", states, h, h, {build.kWhole, build.kWhole});
  const TensorId bias = build.parameter("transform.bias", {h}, {build.kWhole});
  const TensorId active =
      build.added({.type = "bias_gelu", .name = "transform_activation", .inputs = {up, bias}});
  const TensorId normed = build.norm("transform_norm", active);
  build.begin(LayerPart::kNone);
  return normed;
}

// Under sequence parallelism, whole sequences are gathered first.
// Source: NVIDIA/Megatron-LM, megatron/core/models/bert/pooler.py.
TensorId of_first_token(BlockBuilder& build, TensorId states) {
  const Model& model = build.model();
  const std::int64_t h = model.hidden;
  const TensorId sequence =
      build.moved("whole_states", states, {build.batch(), build.kWhole, build.kWhole});
  TensorId state = build.added({.type = "slice",
                                .name = "first_token",
                                .inputs = {sequence},
                                .settings = {{"axis", std::int64_t{1}}, {"end", std::int64_t{1}}}});
  const auto linear = [&](const std::string& name, std::int64_t out) {
    const TensorId y = build.matmul(name, state, h, out, {build.kWhole, build.kWhole});
    build.fused_bias(name, y, out, build.kWhole);
    return y;
  };
  if (model.pooler)
    state = build.added({.type = "unary",
                         .name = "pooled",
                         .inputs = {linear("pooler", h)},
                         .settings = {{"operation", std::string("tanh")}}});
  if (model.classes == 0) return state;
  const TensorId logits = linear("classifier", model.classes);
  const TensorId targets =
      build.typed("classes", {build.options().batch, std::int64_t{1}}, DType::kInt64);
  build.pin(targets, {build.batch(), build.kWhole});
  return vocabulary_loss(build, "class_loss", logits, targets);
}

// Vocabulary-parallel cross-entropy: each rank finds the maximum over its part of the vocabulary;
// with the maximum over all parts it then computes, for its part, the sum of exponentials and the
// target's logit. Only these three numbers per token are reduced.
// Source: Megatron-LM, megatron/core/fusions/fused_cross_entropy.py.
TensorId vocabulary_loss(BlockBuilder& build, const std::string& name, TensorId logits,
                         TensorId targets) {
  const TransformerOptions& options = build.options();
  const TensorId maximum =
      build.added({.type = "vocabulary_maximum", .name = name + ".maximum", .inputs = {logits}});
  const bool keeps_logits = options.pointwise.cross_entropy == LossKernels::kRecomputed;
  const DType kept = options.fused_cross_entropy || keeps_logits ? options.dtype : DType::kFp32;
  Settings settings{{"to", std::string(name_of(kept))},
                    {"kernels", name_of_kernels(options.pointwise.cross_entropy)}};
  if (keeps_logits && !options.fused_cross_entropy) settings.set("keeps", true);
  if (options.logged_losses > 0) settings.set("logged", options.logged_losses);
  const TensorId parts = build.added({.type = "vocabulary_cross_entropy",
                                      .name = name,
                                      .inputs = {logits, maximum, targets},
                                      .settings = std::move(settings),
                                      .output_names = {name + ".partial", name + ".exponentials"}});
  return build.added({.type = "vocabulary_loss",
                      .name = name + ".combine",
                      .inputs = {parts},
                      .output_names = {name}});
}

Graph prediction_graph(const Model& model, const TransformerOptions& options, std::int64_t depth) {
  const bool several = model.multi_token_prediction > 1;
  BlockBuilder build(several ? fmt::format("prediction_{}", depth) : "prediction", model, options,
                     model.kind_of_prediction());
  build.quantize();
  // Only operators of the module's layer belong to parts; norms around it belong to none.
  const auto normed = [&](const std::string& name, TensorId x) {
    const TensorId y = build.norm(name, x);
    build.maker_of(y)->part = LayerPart::kNone;
    build.begin(LayerPart::kNone);
    return y;
  };
  const auto alone = [&](const std::string& name, TensorId x) {
    return build.reshaped(name, x, {1, options.batch, model.sequence, model.hidden});
  };
  TensorId x;
  TensorId before;  // streams of the earlier predictions
  TensorId stream;
  if (depth == 1) {
    x = build.boundary("prediction_in");
    stream = normed("final_norm", x);
    before = alone("streams_before", stream);
  } else {
    before = x = build.streams("prediction_in", depth);
    const TensorId last = build.added({.type = "slice",
                                       .name = "last_stream",
                                       .inputs = {x},
                                       .settings = {{"start", depth - 1}, {"end", depth}}});
    stream = build.reshaped("stream", last, build.tokens(model.hidden));
  }
  const TensorId ids = build.token_ids();
  const TensorId embedded = build.at_boundary(build.looked_up(ids, "embedded"));
  const TensorId next = normed("embedding_norm", embedded);
  const TensorId own = normed("stream_norm", stream);
  const TensorId both = build.added({.type = "concat",
                                     .name = "joined",
                                     .inputs = {next, own},
                                     .settings = {{"axis", std::int64_t{2}}}});
  TensorId projected = build.matmul("projection", both, 2 * model.hidden, model.hidden,
                                    {build.kWhole, build.tensor()});
  projected = build.moved("projected", projected, {build.batch(), build.context(), build.kWhole});
  if (options.sequence_parallel)
    projected =
        build.moved("own_projected", projected, {build.batch(), build.sequence(), build.kWhole});
  const TensorId predicted = normed("prediction_norm", build.layer(projected, "layer_out"));
  const TensorId all = build.added({.type = "concat",
                                    .name = "streams",
                                    .inputs = {before, alone("own_stream", predicted)},
                                    .settings = {{"axis", std::int64_t{0}}}});
  return build.take({x, ids}, {build.as_streams(all)});
}

}  // namespace foreshard::internal
