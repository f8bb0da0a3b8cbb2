// Propagation: what is converted where, in words. Expectations are written as people draw the
// Megatron pattern; "tensor: how it lies -> how it is needed".
#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"
#include "strategies/graph/transformer.h"

namespace foreshard::sharding_test {

using Lines = std::vector<std::string>;

const std::vector<MeshAxis> kMesh{{"tensor", 2}, {"data", 2}, {"pipeline", 1}};

// One block's forward and backward graph, sharded. Not movable: sharded graphs point into it.
struct Pass {
  explicit Pass(Graph graph, BackwardOptions options = {})
      : forward(std::move(graph)),
        sharded(must(distribute(forward, kMesh, Flow::kForward, BackwardPass::kFollows))),
        backward(backward_graph(sharded, options)),
        back(must(distribute(backward, kMesh, Flow::kForward))) {}
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  static ShardedGraph must(Result<ShardedGraph> result) {
    EXPECT_TRUE(result) << result.error().message;
    return *std::move(result);
  }

  Graph forward;
  ShardedGraph sharded;
  Graph backward;
  ShardedGraph back;
};

Lines conversions(const ShardedGraph& sharded) {
  Lines lines;
  for (const Conversion& c : sharded.conversions)
    lines.push_back((*sharded.graph)[c.tensor].name + ": " + describe(c.from, sharded.mesh) +
                    " -> " + describe(c.to, sharded.mesh));
  return lines;
}

std::string lies(const ShardedGraph& sharded, const std::string& tensor) {
  for (std::size_t i = 0; i < sharded.graph->tensors.size(); ++i) {
    if (sharded.graph->tensors[i].name == tensor)
      return describe(sharded.attributes[i], sharded.mesh);
  }
  return "no tensor " + tensor;
}

Lines names(const Graph& graph) {
  Lines lines;
  for (const Operator& op : graph.operators) lines.push_back(op.name);
  return lines;
}

Lines names(const Graph& graph, const std::vector<TensorId>& tensors) {
  Lines lines;
  for (const TensorId id : tensors) lines.push_back(graph[id].name);
  return lines;
}

Model gpt() {
  return written_model(
      "name: tiny GPT, layers: 1, hidden: 8, heads: 4, vocabulary: 10, sequence: 4");
}

Model llama() {
  return written_model(
      "name: tiny Llama, layers: 1, hidden: 8, heads: 4, kv_heads: 2, ffn: 12, vocabulary: 10, "
      "sequence: 4, norm: rms-norm, activation: swiglu, positions: rotary, bias: false, "
      "tied_embeddings: false, dropout: false");
}

TransformerGraphs graphs_of(const Model& model, bool sequence_parallel, bool flash = true) {
  return transformer_graphs(model, {.mesh = kMesh,
                                    .batch = 2,
                                    .sequence_parallel = sequence_parallel,
                                    .attention = flash ? AttentionImplementation::kFused
                                                       : AttentionImplementation::kUnfused,
                                    .vocabulary_multiple = 4});
}

// Shoeybi et al. 2019, figure 4: operator g (all-reduce) after each row-parallel product forward,
// operator f after each column-parallel one backward.
TEST(TensorParallelLayer, ReducesTwiceEachWay) {
  for (const Model& model : {gpt(), llama()}) {
    for (const bool flash : {true, false}) {
      const Pass pass(graphs_of(model, false, flash).layers.front());
      EXPECT_EQ(conversions(pass.sharded),
                (Lines{"attention_out: [S(data), -, -] partial(tensor) -> [S(data), -, -]",
                       "mlp_down: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
      EXPECT_EQ(conversions(pass.back),
                (Lines{"d.mlp_norm: [S(data), -, -] partial(tensor) -> [S(data), -, -]",
                       "d.attention_norm: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
      EXPECT_EQ(lies(pass.sharded, "qkv"), "[S(data), -, S(tensor)]");
      EXPECT_EQ(lies(pass.sharded, "context"), "[S(data), -, S(tensor)]");
      EXPECT_EQ(lies(pass.sharded, "mlp_activation"), "[S(data), -, S(tensor)]");
    }
  }
}

// GPT-NeoX, gpt_j_residual: what both branches give is added before it is reduced, once forward;
// backward each branch's input, or the one of both, twice.
TEST(TensorParallelLayer, ReducesParallelBranchesOnce) {
  Model model = llama();
  model.branches = Branches::kParallel;
  const Pass two(graphs_of(model, false).layers.front());
  EXPECT_EQ(conversions(two.sharded),
            (Lines{"branches: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
  EXPECT_EQ(conversions(two.back),
            (Lines{"d.mlp_norm: [S(data), -, -] partial(tensor) -> [S(data), -, -]",
                   "d.attention_norm: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
  model.branches = Branches::kParallelOneNorm;
  const Pass one(graphs_of(model, false).layers.front());
  EXPECT_EQ(conversions(one.sharded), conversions(two.sharded));
  EXPECT_EQ(one.back.conversions.size(), 2U);
}

// Korthikanti et al. 2022, figure 5: g becomes a reduce-scatter and f an all-gather along the
// sequence; backward the gathered inputs of the column-parallel products are gathered once more
// (section 4.2.2: only a part is saved).
TEST(SequenceParallelLayer, GathersAndScattersInstead) {
  const std::string whole = "[S(data), -, -]";
  const std::string part = "[S(data), S(tensor), -]";
  const std::string summand = "[S(data), -, -] partial(tensor)";
  const auto conversion = [](const std::string& tensor, const std::string& from,
                             const std::string& to) { return tensor + ": " + from + " -> " + to; };
  for (const Model& model : {gpt(), llama()}) {
    const Pass pass(graphs_of(model, true).layers.front());
    EXPECT_EQ(conversions(pass.sharded),
              (Lines{conversion("attention_norm", part, whole),
                     conversion("attention_out", summand, part),
                     conversion("mlp_norm", part, whole), conversion("mlp_down", summand, part)}));
    // With dropout the gradient of the product is its own tensor, else that of the layer's output.
    const std::string last = model.dropout ? "d.mlp_down" : "d.layer_out";
    const std::string middle = model.dropout ? "d.attention_out" : "d.attention_residual";
    EXPECT_EQ(conversions(pass.back),
              (Lines{conversion(last, part, whole), conversion("mlp_norm", part, whole),
                     conversion("d.mlp_norm", summand, part), conversion(middle, part, whole),
                     conversion("attention_norm", part, whole),
                     conversion("d.attention_norm", summand, part)}));
    EXPECT_EQ(lies(pass.sharded, "attention_norm"), part);
  }
}

// Weight gradients are summands over data-parallel ranks; those of norms and of biases after a
// row-parallel product also over tensor-parallel ranks, if each saw its part of the sequence.
TEST(ParameterGradients, ArePartialOverWhatTheirRanksDidNotSee) {
  const Pass plain(graphs_of(gpt(), false).layers.front());
  EXPECT_EQ(lies(plain.back, "d.qkv.weight"), "[-, S(tensor)] partial(data)");
  EXPECT_EQ(lies(plain.back, "d.qkv.bias"), "[S(tensor)] partial(data)");
  EXPECT_EQ(lies(plain.back, "d.mlp_up.bias"), "[S(tensor)] partial(data)");
  EXPECT_EQ(lies(plain.back, "d.mlp_down.weight"), "[S(tensor), -] partial(data)");
  EXPECT_EQ(lies(plain.back, "d.mlp_norm.weight"), "[-] partial(data)");
  EXPECT_EQ(lies(plain.back, "d.mlp_residual.bias"), "[-] partial(data)");

  const Pass sequence(graphs_of(gpt(), true).layers.front());
  EXPECT_EQ(lies(sequence.back, "d.qkv.weight"), "[-, S(tensor)] partial(data)");
  EXPECT_EQ(lies(sequence.back, "d.mlp_norm.weight"), "[-] partial(tensor, data)");
  EXPECT_EQ(lies(sequence.back, "d.mlp_norm.bias"), "[-] partial(tensor, data)");
  EXPECT_EQ(lies(sequence.back, "d.attention_residual.bias"), "[-] partial(tensor, data)");
}

// Every parameter has a gradient, whatever the model has of biases and dropout.
TEST(ParameterGradients, AreComplete) {
  for (const bool bias : {false, true}) {
    for (const bool dropout : {false, true}) {
      for (const bool fused : {false, true}) {
        Model model = gpt();
        model.bias = bias;
        model.dropout = dropout;
        TransformerGraphs graphs = graphs_of(model, true);
        for (Graph* graph : {&graphs.embedding, &graphs.layers.front(), &graphs.head}) {
          const Pass pass(std::move(*graph), {.fused_accumulation = fused});
          for (const Tensor& tensor : pass.forward.tensors) {
            if (tensor.role == TensorRole::kParameter) {
              EXPECT_NE(lies(pass.back, "d." + tensor.name), "no tensor d." + tensor.name);
            }
          }
        }
      }
    }
  }
}

// The table is split by vocabulary: a rank finds the rows of its part only, so what it looks up is
// a summand; backward each rank needs the gradients of all tokens.
TEST(VocabularyParallel, Embedding) {
  const Pass rotary(graphs_of(llama(), false).embedding);
  EXPECT_EQ(conversions(rotary.sharded),
            (Lines{"embedded: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
  EXPECT_EQ(conversions(rotary.back), Lines{});
  EXPECT_EQ(lies(rotary.back, "d.embedding.weight"), "[S(tensor), -] partial(data)");

  const Pass sequence(graphs_of(llama(), true).embedding);
  EXPECT_EQ(conversions(sequence.sharded),
            (Lines{"embedded: [S(data), -, -] partial(tensor) -> [S(data), S(tensor), -]"}));
  EXPECT_EQ(conversions(sequence.back),
            (Lines{"d.embedded: [S(data), S(tensor), -] -> [S(data), -, -]"}));

  // Learned positions are added in between.
  const Pass learned(graphs_of(gpt(), false).embedding);
  EXPECT_EQ(conversions(learned.sharded),
            (Lines{"embedding: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
  EXPECT_EQ(lies(learned.back, "d.position.weight"), "[-, -] partial(data)");
}

// Of the logits nothing but three numbers per token is ever reduced: maximum, sum and target.
TEST(VocabularyParallel, CrossEntropy) {
  const Pass pass(graphs_of(llama(), false).head);
  EXPECT_EQ(lies(pass.sharded, "logits"), "[S(data), -, S(tensor)]");
  EXPECT_EQ(conversions(pass.sharded),
            (Lines{"loss.maximum: [S(data), -, -] max(tensor) -> [S(data), -, -]",
                   "loss.partial: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
  EXPECT_EQ(conversions(pass.back),
            (Lines{"d.final_norm: [S(data), -, -] partial(tensor) -> [S(data), -, -]"}));
  // 10 tokens padded to a multiple of 4.
  EXPECT_EQ(lies(pass.back, "d.logits.weight"), "[-, S(tensor)] partial(data)");
  for (const Tensor& tensor : pass.forward.tensors) {
    if (tensor.name == "logits.weight") {
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{8, 12}));
    }
  }
}

// The data gradient of a product comes before its weight gradient; the two gradients of a tensor
// with two users are added.
TEST(BackwardGraph, RunsTheForwardOneInReverse) {
  const Pass pass(graphs_of(llama(), false).layers.front());
  EXPECT_EQ(names(pass.forward), (Lines{"attention_norm", "qkv", "rope", "attention",
                                        "attention_out", "attention_residual", "mlp_norm", "mlp_up",
                                        "mlp_activation", "mlp_down", "mlp_residual"}));
  EXPECT_EQ(names(pass.backward),
            (Lines{"d.mlp_down.data", "d.mlp_down.weight", "d.mlp_activation", "d.mlp_up.data",
                   "d.mlp_up.weight", "d.mlp_norm", "sum.d.attention_residual",
                   "d.attention_out.data", "d.attention_out.weight", "d.attention", "d.rope",
                   "d.qkv.data", "d.qkv.weight", "d.attention_norm", "sum.d.layer_in"}));
  EXPECT_EQ(names(pass.backward, pass.backward.inputs), (Lines{"d.layer_out"}));
  EXPECT_EQ(names(pass.backward, pass.backward.outputs), (Lines{"d.layer_in"}));
}

TEST(BackwardGraph, OfUnfusedAttentionHasEveryProductTwice) {
  const Pass pass(graphs_of(llama(), false, false).layers.front());
  const Lines all = names(pass.backward);
  const auto first = std::find(all.begin(), all.end(), "d.merge_heads");
  ASSERT_NE(first, all.end());
  EXPECT_EQ(Lines(first, first + 8),
            (Lines{"d.merge_heads", "d.context_heads.data", "d.context_heads.weight", "d.softmax",
                   "d.scores.data", "d.scores.weight", "d.split_heads", "d.rope"}));
}

TEST(BackwardGraph, OfTheEmbeddingHasNoGradientOfTokens) {
  const Pass pass(graphs_of(gpt(), false).embedding);
  EXPECT_EQ(names(pass.backward), (Lines{"d.add_positions", "d.embedding"}));
  EXPECT_EQ(names(pass.backward, pass.backward.outputs), Lines{});
  const Pass head(graphs_of(gpt(), false).head);
  EXPECT_EQ(names(head.backward),
            (Lines{"d.loss", "d.logits.data", "d.logits.weight", "d.final_norm"}));
  EXPECT_EQ(names(head.backward, head.backward.inputs), Lines{});
}

// Without fused accumulation each weight gradient is added to its fp32 buffer by a pass.
TEST(BackwardGraph, AccumulatesInPassesOfItsOwnIfAsked) {
  const Pass pass(graphs_of(llama(), false).head, {.fused_accumulation = false});
  EXPECT_EQ(names(pass.backward), (Lines{"d.loss", "d.logits.data", "d.logits.weight",
                                         "accumulate.d.logits.weight", "d.final_norm"}));
}

// What the backward pass reads; the heads' views are the projection that they look at.
TEST(SavedTensors, OfALayer) {
  const Pass flash(graphs_of(gpt(), false).layers.front());
  EXPECT_EQ(names(flash.forward, saved_tensors(flash.forward, flash.backward)),
            (Lines{"layer_in", "attention_norm", "qkv", "context", "attention.logsumexp",
                   "attention_residual", "attention_residual.mask", "mlp_norm", "mlp_up",
                   "mlp_activation", "mlp_residual.mask"}));
  const Pass unfused(graphs_of(gpt(), false, false).layers.front());
  EXPECT_EQ(
      names(unfused.forward, saved_tensors(unfused.forward, unfused.backward)),
      (Lines{"layer_in", "attention_norm", "qkv", "softmax", "attention_dropout",
             "attention_dropout.mask", "context", "attention_residual", "attention_residual.mask",
             "mlp_norm", "mlp_up", "mlp_activation", "mlp_residual.mask"}));
}

TEST(Sharding, NamesWhatCannotBeSplit) {
  Graph graph{.name = "odd", .tensors = {}, .operators = {}};
  const TensorId x = graph.add({.name = "x", .shape = {4, 4, 6}});
  const TensorId w = graph.add({.name = "w",
                                .shape = {6, 5},
                                .role = TensorRole::kParameter,
                                .pinned = Attribute{.dims = {{}, {0}}, .partial = {}}});
  ASSERT_TRUE(add_operator(graph, {.type = "einsum",
                                   .name = "m",
                                   .inputs = {x, w},
                                   .settings = {{"equation", std::string("bsi,io->bso")}}}));
  EXPECT_EQ(distribute(graph, kMesh, Flow::kForward).error().message,
            "tensor 'w': dimension 1 of extent 5 is not divisible by the 2 parts of 'tensor': give "
            "explicit slice sizes, such as tensor~ (as equal as possible), or choose another "
            "dimension");
  // The same by propagation: 36 columns divide, but not the 3 groups of heads that they are.
  graph[w].pinned = replicated(2);
  const TensorId qkv = graph.add({.name = "qkv", .shape = {4, 4, 36}});
  graph[qkv].pinned = Attribute{.dims = {{}, {}, {0}}};
  ASSERT_TRUE(add_operator(
      graph, {.type = "rope",
              .name = "turned",
              .inputs = {qkv},
              .settings = {{"query_heads", std::int64_t{3}}, {"kv_heads", std::int64_t{3}}}}));
  EXPECT_EQ(distribute(graph, kMesh, Flow::kForward).error().message,
            "operator 'turned' cannot take tensor 'qkv' in its sharding [-, -, S(tensor)]: its "
            "factor 'groups' of size 3 is split otherwise (rule batch sequence groups->batch "
            "sequence groups)");
}

// A tensor needed in one new form by several is converted once.
TEST(Sharding, ConvertsOncePerNeed) {
  const Pass pass(graphs_of(gpt(), true).layers.front());
  std::size_t uses = 0;
  for (const ShardedOperator& op : pass.back.operators) uses += op.conversions.size();
  EXPECT_GT(uses, pass.back.conversions.size());
}

}  // namespace foreshard::sharding_test
