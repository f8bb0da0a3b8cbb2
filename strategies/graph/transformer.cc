#include "strategies/graph/transformer.h"

#include <algorithm>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard {
namespace {

using internal::BlockBuilder;

// Attention and the feed-forward layer side by side: their summands are added before ranks add
// theirs up, once for both.
// Source: EleutherAI/gpt-neox, megatron/model/transformer.py (gpt_j_residual).
TensorId parallel_layer(BlockBuilder& build, TensorId x) {
  const Model& model = build.model();
  const TensorId norm1 = build.norm("attention_norm", x);
  const TensorId norm2 =
      model.branches == Branches::kParallelOneNorm ? norm1 : build.norm("mlp_norm", x);
  const TensorId attended = build.attention_branch(norm1);
  if (model.has_attention_out_bias())
    build.fused_bias("attention_residual", attended, model.hidden, build.kWhole);
  const TensorId fed = build.feed_forward(norm2);
  if (build.has_feed_forward_bias())
    build.fused_bias("mlp_residual", fed, model.hidden, build.kWhole);
  build.begin(Part::kResidual);
  return build.join("residual", build.sum("branches", attended, fed), false, x, "layer_out");
}

Graph layer_graph(const Model& model, const TransformerOptions& options, LayerKind kind) {
  BlockBuilder build(name_of(kind), model, options, kind);
  build.quantize();
  const TensorId x = build.boundary("layer_in");
  if (model.branches != Branches::kSequential) {
    const TensorId y = parallel_layer(build, x);
    return build.take({x}, {y});
  }
  const auto normed = [&](const std::string& name, TensorId stream) {
    return model.norm_places == NormPlaces::kAfter ? stream : build.norm(name, stream);
  };
  const TensorId attended = build.attention_branch(normed("attention_norm", x));
  const TensorId middle =
      build.join("attention_residual", attended, model.has_attention_out_bias(), x);
  const TensorId fed = build.feed_forward(normed("mlp_norm", middle));
  return build.take(
      {x}, {build.join("mlp_residual", fed, build.has_feed_forward_bias(), middle, "layer_out")});
}

std::int64_t padded_vocabulary(const Model& model, const TransformerOptions& options) {
  const std::int64_t multiple = std::max<std::int64_t>(1, options.vocabulary_multiple);
  return (model.vocabulary + multiple - 1) / multiple * multiple;
}

Graph embedding_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("embedding", model, options);
  const TensorId ids = build.typed("token_ids", {options.batch, model.sequence}, DType::kInt64);
  const TensorId table =
      build.parameter("embedding.weight", {padded_vocabulary(model, options), model.hidden},
                      {build.tensor(), build.kWhole});
  const bool learned = model.positions == Positions::kLearned;
  const std::string sum = model.embedding_norm ? "embedding_sum" : "embedded";
  TensorId out = build.added({.type = "embedding",
                              .name = "embedding",
                              .inputs = {ids, table},
                              .settings = {{"every_row", true}},
                              .output_names = {learned ? "embedding" : sum}});
  if (learned) {
    const TensorId positions = build.parameter(
        "position.weight", {model.position_rows(), model.hidden}, {build.kWhole, build.kWhole});
    out = build.added({.type = "add_positions",
                       .name = "add_positions",
                       .inputs = {out, positions},
                       .settings = {{"in_parts", !build.context().empty()}},
                       .output_names = {sum}});
  }
  if (model.embedding_norm) out = build.norm("embedding_norm", out, "embedded");
  build.at_boundary(out);
  Graph graph = build.take({}, {out});
  graph[ids].pinned = Attribute{.dims = {build.batch(), build.context()}, .partial = {}};
  return graph;
}

Graph head_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("head", model, options);
  const TensorId x = build.boundary("head_in");
  const TensorId normed = build.norm("final_norm", x);
  build.begin(Part::kNone);
  const std::int64_t v = padded_vocabulary(model, options);
  const TensorId logits =
      build.matmul("logits", normed, model.hidden, v, {build.kWhole, build.tensor()});
  if (model.head_bias) build.fused_bias("logits", logits, v, build.tensor());
  const TensorId targets = build.typed("targets", {options.batch, model.sequence}, DType::kInt64);
  // Vocabulary-parallel cross-entropy: each rank finds the maximum of its part of the vocabulary,
  // then, with that of all, the sum of exponentials and the target's logit of its part; those three
  // per token are what is reduced.
  // Source: Megatron-LM, megatron/core/fusions/fused_cross_entropy.py.
  const TensorId maximum =
      build.added({.type = "vocabulary_maximum", .name = "loss.maximum", .inputs = {logits}});
  const DType kept = options.fused_cross_entropy ? options.dtype : DType::kFp32;
  const TensorId parts = build.added(
      {.type = "vocabulary_cross_entropy",
       .name = "loss",
       .inputs = {logits, maximum, targets},
       .settings = {{"to", std::string(name_of(kept))},
                    {"kernels", internal::name_of_kernels(options.pointwise.cross_entropy)}},
       .output_names = {"loss.partial", "loss.exponentials"}});
  const TensorId statistics = build.added({.type = "vocabulary_loss",
                                           .name = "loss.combine",
                                           .inputs = {parts},
                                           .output_names = {"loss"}});
  Graph graph = build.take({x}, {statistics});
  graph[targets].pinned = Attribute{.dims = {build.batch(), build.context()}, .partial = {}};
  return graph;
}

}  // namespace

TransformerGraphs transformer_graphs(const Model& model, const TransformerOptions& options) {
  TransformerGraphs graphs{.embedding = embedding_graph(model, options),
                           .layers = {},
                           .head = head_graph(model, options)};
  for (const LayerKind kind : model.layer_kinds())
    graphs.layers.push_back(layer_graph(model, options, kind));
  return graphs;
}

}  // namespace foreshard
