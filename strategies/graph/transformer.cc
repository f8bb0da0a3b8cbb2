#include "strategies/graph/transformer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "strategies/graph/internal/block_builder.h"
#include "strategies/graph/model.h"

namespace foreshard {

namespace internal {

// A layer with attention and feed-forward layer in parallel. Each rank adds the summands of the two
// branches first, so that the ranks reduce once for both.
// Source: EleutherAI/gpt-neox, megatron/model/transformer.py (gpt_j_residual).
TensorId BlockBuilder::parallel_layer(TensorId x, const std::string& output) {
  capture(Capture::kAttention);
  const TensorId norm1 = norm("attention_norm", x);
  const TensorId norm2 =
      model_.branches == Branches::kParallelOneNorm ? norm1 : norm("mlp_norm", x);
  const TensorId attended = attention_branch(norm1);
  if (model_.has_attention_out_bias())
    fused_bias("attention_residual", attended, model_.hidden, kWhole);
  capture(feed_forward_capture());
  const TensorId fed = feed_forward(norm2);
  if (has_feed_forward_bias()) fused_bias("mlp_residual", fed, model_.hidden, kWhole);
  begin(LayerPart::kResidual);
  return join("residual", sum("branches", attended, fed), false, x, output);
}

TensorId BlockBuilder::layer(TensorId x, const std::string& output, TensorId encoded) {
  if (has_one_branch(kind_)) return one_branch_layer(x, output);
  if (model_.branches != Branches::kSequential) return parallel_layer(x, output);
  const auto normed = [&](const std::string& name, TensorId stream) {
    const bool is_before =
        model_.norm_places != NormPlaces::kAfter && model_.norm_places != NormPlaces::kAfterSum;
    return is_before ? norm(name, stream) : stream;
  };
  capture(Capture::kAttention);
  const TensorId attended = attention_branch(normed("attention_norm", x));
  TensorId middle = join("attention_residual", attended, model_.has_attention_out_bias(), x);
  if (encoded.valid()) {
    const TensorId crossed =
        cross_attention_branch(normed("cross_attention_norm", middle), encoded);
    middle = join("cross_attention_residual", crossed, model_.has_attention_out_bias(), middle);
  }
  capture(feed_forward_capture());
  const TensorId fed = feed_forward(normed("mlp_norm", middle));
  return join("mlp_residual", fed, has_feed_forward_bias(), middle, output);
}

}  // namespace internal

namespace {

using internal::BlockBuilder;

Graph layer_graph(const Model& model, const TransformerOptions& options, LayerKind kind) {
  if (model.encoder) return internal::layer_graph_beside_encoder(model, options, kind);
  BlockBuilder build(name_of(kind), model, options, kind);
  build.begin_layer();
  const TensorId x = build.boundary("layer_in");
  const TensorId y = build.layer(x, "layer_out");
  return build.take({x}, {y});
}

Graph embedding_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("embedding", model, options);
  build.freeze(model.frozen && model.frozen->embedding);
  const bool learned = model.positions == Positions::kLearned;
  const std::string sum = model.embedding_norm ? "embedding_sum" : "embedded";
  const bool adds_types = model.token_types > 0;
  TensorId table;
  if (!model.image)
    table = build.parameter("embedding.weight", {build.vocabulary(), model.hidden},
                            {build.tensor(), build.kWhole});
  TensorId out = model.image ? internal::embedded_image(build)
                             : build.looked_up(build.token_ids(), table,
                                               learned || adds_types ? "embedding" : sum);
  if (adds_types) out = internal::with_token_types(build, out);
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
  std::vector<TensorId> outputs{build.at_boundary(out)};
  if (model.encoder) outputs.push_back(internal::embedded_for_encoder(build, table));
  return build.take({}, std::move(outputs));
}

Graph head_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("head", model, options);
  build.freeze(model.frozen && model.frozen->head);
  // After modules that predict more tokens, the streams of all predictions arrive normalised and in
  // one tensor. Megatron-LM has a separate product for each
  // (megatron/core/transformer/multi_token_prediction.py).
  const std::int64_t predictions = 1 + model.multi_token_prediction;
  const bool several = predictions > 1;
  const TensorId x = several ? build.streams("head_in", predictions) : build.boundary("head_in");
  const bool is_normed = several || !model.has_final_norm();
  const TensorId states = is_normed ? x : build.norm("final_norm", x);
  build.begin(LayerPart::kNone);
  std::vector<TensorId> outputs;
  if (model.classes > 0 || model.pooler) outputs.push_back(internal::of_first_token(build, states));
  if (model.head == Head::kNone) {
    if (outputs.empty()) outputs.push_back(build.at_boundary(states));
    return build.take({x}, std::move(outputs));
  }
  const TensorId normed =
      model.head == Head::kMasked ? internal::transformed(build, states) : states;
  const std::int64_t v = build.vocabulary();
  const TensorId logits =
      build.matmul("logits", normed, model.hidden, v, {build.kWhole, build.tensor()});
  if (model.head_bias) build.fused_bias("logits", logits, v, build.tensor());
  std::vector<std::int64_t> tokens{options.batch, model.sequence};
  if (several) tokens.insert(tokens.begin(), predictions);
  const TensorId targets = build.typed("targets", tokens, DType::kInt64);
  outputs.insert(outputs.begin(), internal::vocabulary_loss(build, "loss", logits, targets));
  Graph graph = build.take({x}, std::move(outputs));
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
  for (const LayerKind kind : model.layer_kinds(options.unquantized))
    graphs.layers.push_back(layer_graph(model, options, kind));
  for (std::int64_t depth = 1; depth <= model.multi_token_prediction; ++depth)
    graphs.predictions.push_back(internal::prediction_graph(model, options, depth));
  return graphs;
}

Graph transformer_graph(const Model& model, const TransformerOptions& options) {
  const TransformerGraphs blocks = transformer_graphs(model, options);
  Graph whole{.name = "transformer", .tensors = {}, .operators = {}, .gradients_apart = true};
  std::vector<TensorId> streams;
  // Appends a block. Its inputs are the current streams; its first outputs are the streams after
  // it.
  const auto append = [&](const Graph& block, const std::string& name) {
    std::vector<TensorId> ids;
    ids.reserve(block.tensors.size());
    for (std::size_t t = 0; t < block.tensors.size(); ++t) {
      const auto input = std::ranges::find(block.inputs, TensorId{static_cast<std::int64_t>(t)});
      const auto which = static_cast<std::size_t>(input - block.inputs.begin());
      if (which < std::min(block.inputs.size(), streams.size())) {
        ids.push_back(streams[which]);
        continue;
      }
      Tensor tensor = block.tensors[t];
      tensor.name = name + "." + tensor.name;
      ids.push_back(whole.add(std::move(tensor)));
    }
    for (Operator op : block.operators) {
      op.name = name + "." + op.name;
      for (TensorId& id : op.inputs) id = ids[id.index()];
      for (TensorId& id : op.outputs) id = ids[id.index()];
      whole.operators.push_back(std::move(op));
    }
    streams.clear();
    for (const TensorId id : block.outputs) streams.push_back(ids[id.index()]);
  };
  append(blocks.embedding, "embedding");
  for (std::int64_t i = 0; i < model.layers; ++i)
    append(blocks.layers[model.kind_index(i, options.unquantized)], "layer" + std::to_string(i));
  for (const Graph& prediction : blocks.predictions) append(prediction, prediction.name);
  append(blocks.head, "head");
  whole.outputs = streams;
  return whole;
}

}  // namespace foreshard
