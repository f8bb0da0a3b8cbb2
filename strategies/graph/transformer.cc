#include "strategies/graph/transformer.h"

#include <algorithm>

#include "strategies/graph/internal/block_builder.h"
#include "strategies/graph/internal/model_faults.h"

namespace foreshard {
namespace internal {

// Attention and the feed-forward layer side by side: their summands are added before ranks add
// theirs up, once for both.
// Source: EleutherAI/gpt-neox, megatron/model/transformer.py (gpt_j_residual).
TensorId BlockBuilder::parallel_layer(TensorId x, const std::string& output) {
  const TensorId norm1 = norm("attention_norm", x);
  const TensorId norm2 =
      model_.branches == Branches::kParallelOneNorm ? norm1 : norm("mlp_norm", x);
  const TensorId attended = attention_branch(norm1);
  if (model_.has_attention_out_bias())
    fused_bias("attention_residual", attended, model_.hidden, kWhole);
  const TensorId fed = feed_forward(norm2);
  if (has_feed_forward_bias()) fused_bias("mlp_residual", fed, model_.hidden, kWhole);
  begin(Part::kResidual);
  return join("residual", sum("branches", attended, fed), false, x, output);
}

TensorId BlockBuilder::layer(TensorId x, const std::string& output) {
  if (has_one_branch(kind_)) return one_branch_layer(x, output);
  if (model_.branches != Branches::kSequential) return parallel_layer(x, output);
  const auto normed = [&](const std::string& name, TensorId stream) {
    return model_.norm_places == NormPlaces::kAfter ? stream : norm(name, stream);
  };
  const TensorId attended = attention_branch(normed("attention_norm", x));
  const TensorId middle = join("attention_residual", attended, model_.has_attention_out_bias(), x);
  const TensorId fed = feed_forward(normed("mlp_norm", middle));
  return join("mlp_residual", fed, has_feed_forward_bias(), middle, output);
}

}  // namespace internal

namespace {

using internal::BlockBuilder;

Graph layer_graph(const Model& model, const TransformerOptions& options, LayerKind kind) {
  BlockBuilder build(name_of(kind), model, options, kind);
  build.quantize();
  const TensorId x = build.boundary("layer_in");
  const TensorId y = build.layer(x, "layer_out");
  return build.take({x}, {y});
}

Graph embedding_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("embedding", model, options);
  const bool learned = model.positions == Positions::kLearned;
  const std::string sum = model.embedding_norm ? "embedding_sum" : "embedded";
  TensorId out = build.looked_up(build.token_ids(), learned ? "embedding" : sum);
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
  return build.take({}, {build.at_boundary(out)});
}

Graph head_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("head", model, options);
  // Behind modules that predict more tokens, streams come normalised, and all of them at once.
  // Megatron-LM has a product for each (megatron/core/transformer/multi_token_prediction.py).
  const std::int64_t predictions = 1 + model.multi_token_prediction;
  const bool several = predictions > 1;
  const TensorId x = several ? build.streams("head_in", predictions) : build.boundary("head_in");
  const TensorId normed = several ? x : build.norm("final_norm", x);
  build.begin(Part::kNone);
  const std::int64_t v = build.vocabulary();
  const TensorId logits =
      build.matmul("logits", normed, model.hidden, v, {build.kWhole, build.tensor()});
  if (model.head_bias) build.fused_bias("logits", logits, v, build.tensor());
  std::vector<std::int64_t> tokens{options.batch, model.sequence};
  if (several) tokens.insert(tokens.begin(), predictions);
  const TensorId targets = build.typed("targets", tokens, DType::kInt64);
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
  if (several)
    graph[targets].pinned->dims.insert(graph[targets].pinned->dims.begin(), build.kWhole);
  return graph;
}

}  // namespace

TransformerGraphs transformer_graphs(const Model& model, const TransformerOptions& options) {
  TransformerGraphs graphs{.embedding = embedding_graph(model, options),
                           .layers = {},
                           .predictions = {},
                           .head = head_graph(model, options)};
  for (const LayerKind kind : model.layer_kinds())
    graphs.layers.push_back(layer_graph(model, options, kind));
  for (std::int64_t depth = 1; depth <= model.multi_token_prediction; ++depth)
    graphs.predictions.push_back(internal::prediction_graph(model, options, depth));
  return graphs;
}

}  // namespace foreshard
