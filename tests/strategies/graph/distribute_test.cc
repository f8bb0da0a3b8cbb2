// Propagation from partial annotations: what lies how, what is converted, and what is said about
// conflicts. "tensor: how it lies -> how it is needed".
#include "strategies/graph/distribute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "operator_examples.h"
#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/internal/propagation.h"
#include "strategies/graph/layout.h"
#include "strategies/graph/transformer.h"

namespace foreshard::distribute_test {

using Lines = std::vector<std::string>;
using S = std::string;

const std::vector<MeshAxis> kMesh{{"data", 2}, {"tensor", 4}};

Graph graph_named(const char* name) {
  return {.name = name, .tensors = {}, .operators = {}};
}

TensorId add(Graph& graph, OperatorSpec spec) {
  return value_of(add_single(graph, std::move(spec)));
}

TensorId named(const Graph& graph, const std::string& name) {
  const auto it = std::ranges::find(graph.tensors, name, &Tensor::name);
  EXPECT_NE(it, graph.tensors.end()) << name;
  return TensorId{it - graph.tensors.begin()};
}

ShardedGraph must(const Graph& graph, const std::vector<MeshAxis>& mesh = kMesh) {
  return value_of(distribute(graph, mesh));
}

Lines conversions(const ShardedGraph& sharded) {
  Lines lines;
  for (const Conversion& c : sharded.conversions)
    lines.push_back((*sharded.graph)[c.tensor].name + ": " + describe(c.from, sharded.mesh) +
                    " -> " + describe(c.to, sharded.mesh));
  return lines;
}

std::string lies(const ShardedGraph& sharded, const std::string& name) {
  return describe(sharded.attributes[named(*sharded.graph, name).index()], sharded.mesh);
}

// x [8, 16] up [16, 32] gelu down [32, 16] -> y
Graph mlp() {
  Graph graph = graph_named("mlp");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 16}});
  const TensorId up = add_parameter(graph, "up", {DType::kBf16, {16, 32}});
  const TensorId down = add_parameter(graph, "down", {DType::kBf16, {32, 16}});
  const TensorId h = add(graph, {.type = "matmul", .name = "h", .inputs = {x, up}});
  const TensorId g = add(
      graph, {.type = "unary", .name = "g", .inputs = {h}, .settings = {{"operation", S("gelu")}}});
  const TensorId y = add(graph, {.type = "matmul", .name = "y", .inputs = {g, down}});
  graph.outputs = {y};
  return graph;
}

// The batch is annotated on x, the columns on `up` alone: the rows of `down` follow (its input
// arrives split along them), and its product is a sum over the tensor axis, reduced once.
TEST(Distribute, FindsTheMegatronPatternFromTwoAnnotations) {
  Graph graph = mlp();
  graph[named(graph, "x")].pinned = Attribute{.dims = {{0}, {}}};
  graph[named(graph, "up")].pinned = Attribute{.dims = {{}, {1}}};
  const ShardedGraph sharded = must(graph);
  EXPECT_EQ(lies(sharded, "g"), "[S(data), S(tensor)]");
  EXPECT_EQ(lies(sharded, "down"), "[S(tensor), -]");
  EXPECT_THAT(conversions(sharded), ElementsAre("y: [S(data), -] partial(tensor) -> [S(data), -]"));
  EXPECT_THAT(sharded.after_operator[2], ElementsAre(0));
  EXPECT_THAT(sharded.remarks, IsEmpty());
}

// The same from the far end: annotations of a result and of the second weight go backward.
TEST(Distribute, PropagatesBackward) {
  Graph graph = mlp();
  graph[named(graph, "y")].pinned = Attribute{.dims = {{0}, {}}};
  graph[named(graph, "down")].pinned = Attribute{.dims = {{1}, {}}};
  const ShardedGraph sharded = must(graph);
  EXPECT_EQ(lies(sharded, "x"), "[S(data), -]");
  EXPECT_EQ(lies(sharded, "h"), "[S(data), S(tensor)]");
  EXPECT_EQ(lies(sharded, "up"), "[-, S(tensor)]");
}

// In the training graph: x and the gradients arrive split over data, so weight gradients are sums
// over data and stay so; that of h's input is a sum over tensor.
TEST(Distribute, ReachesGradients) {
  Graph graph = mlp();
  graph[named(graph, "x")].pinned = Attribute{.dims = {{0}, {}}};
  graph[named(graph, "up")].pinned = Attribute{.dims = {{}, {1}}};
  const Graph training = training_graph(graph, {});
  const ShardedGraph sharded = must(training);
  EXPECT_EQ(lies(sharded, "d.up"), "[-, S(tensor)] partial(data)");
  EXPECT_EQ(lies(sharded, "d.down"), "[S(tensor), -] partial(data)");
  EXPECT_THAT(conversions(sharded),
              ElementsAre("y: [S(data), -] partial(tensor) -> [S(data), -]",
                          "d.h.data: [S(data), -] partial(tensor) -> [S(data), -]"));
}

// Two readers want `x` whole along the tensor axis: one all-gather serves both.
TEST(Distribute, ConvertsOncePerDistinctNeed) {
  Graph graph = graph_named("two readers");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 16}});
  graph[x].pinned = Attribute{.dims = {{1}, {}}};
  for (const char* name : {"a", "b"}) {
    const TensorId w = add_parameter(graph, S("w") + name, {DType::kBf16, {16, 32}});
    graph[w].pinned = Attribute{.dims = {{}, {1}}};
    graph.outputs.push_back(add(graph, {.type = "matmul", .name = name, .inputs = {x, w}}));
  }
  const ShardedGraph sharded = must(graph);
  EXPECT_THAT(conversions(sharded), ElementsAre("x: [S(tensor), -] -> [-, -]"));
  EXPECT_EQ(sharded.operators[0].conversions, sharded.operators[1].conversions);
}

// Rows of x and columns of the weight both want the tensor axis: the weight has it; the remark
// names operator, tensor, axis and both factors.
TEST(Distribute, SaysWhichAxisTwoFactorsWant) {
  Graph graph = mlp();
  graph[named(graph, "x")].pinned = Attribute{.dims = {{1}, {}}};
  graph[named(graph, "up")].pinned = Attribute{.dims = {{}, {1}}};
  const ShardedGraph sharded = must(graph);
  ASSERT_FALSE(sharded.remarks.empty());
  EXPECT_THAT(sharded.remarks.front(),
              HasSubstr("operator 'h' cannot take tensor 'x' in its sharding [S(tensor), -]: axis "
                        "'tensor' splits its factor 'z' already, and cannot split 'x' as well"));
}

TEST(Distribute, RefusesAnnotationsThatNoTensorCanHave) {
  Graph graph = mlp();
  graph[named(graph, "x")].pinned = Attribute{.dims = {{0}, {0}}};
  EXPECT_THAT(distribute(graph, kMesh).error().message,
              AllOf(HasSubstr("tensor 'x'"), HasSubstr("'data'")));
  graph[named(graph, "x")].pinned = Attribute{.dims = {{}, {}}};
  graph[named(graph, "x")].shape = {6, 16};
  graph[named(graph, "x")].pinned = Attribute{.dims = {{1}, {}}};
  EXPECT_THAT(distribute(graph, kMesh).error().message,
              AllOf(HasSubstr("tensor 'x'"), HasSubstr("6"), HasSubstr("4")));
}

// A softmax along a split dimension: legal, at the price of a conversion, and said.
TEST(Distribute, GathersWhatMustBeWhole) {
  Graph graph = graph_named("softmax");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 16}});
  graph[x].pinned = Attribute{.dims = {{0}, {1}}};
  graph.outputs = {add(graph, {.type = "softmax", .name = "y", .inputs = {x}})};
  const ShardedGraph sharded = must(graph);
  EXPECT_THAT(conversions(sharded), ElementsAre("x: [S(data), S(tensor)] -> [S(data), -]"));
  EXPECT_THAT(sharded.remarks, ElementsAre(HasSubstr("its factor 'f1' must stay whole")));
}

// [batch, (heads width)] -> [batch, heads, width]: four ways along the joined dimension are four
// along the heads; with 2 heads, two axes of 2 fill the heads and go on to the width.
TEST(Distribute, FollowsFactorsThroughAReshape) {
  Graph graph = graph_named("heads");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {6, 32}});
  graph[x].pinned = Attribute{.dims = {{}, {1}}};
  graph.outputs = {add(
      graph,
      {.type = "reshape", .name = "y", .inputs = {x}, .settings = {{"shape", Integers{6, 8, 4}}}})};
  EXPECT_EQ(lies(must(graph), "y"), "[-, S(tensor), -]");
  EXPECT_THAT(must(graph).conversions, IsEmpty());

  Graph two = graph_named("two heads");
  const TensorId z = add_input(two, "x", {DType::kBf16, {6, 32}});
  two[z].pinned = Attribute{.dims = {{}, {0, 1}}};
  two.outputs = {add(two, {.type = "reshape",
                           .name = "y",
                           .inputs = {z},
                           .settings = {{"shape", Integers{6, 2, 16}}}})};
  EXPECT_EQ(lies(must(two), "y"), "[-, S(data), S(tensor)]");

  // 3 of 4 heads lie across 2 ranks each: the split does not line up, so the tensor is gathered.
  Graph three = graph_named("three heads");
  const TensorId v = add_input(three, "x", {DType::kBf16, {6, 24}});
  three[v].pinned = Attribute{.dims = {{}, {1}}};
  three.outputs = {add(
      three,
      {.type = "reshape", .name = "y", .inputs = {v}, .settings = {{"shape", Integers{6, 3, 8}}}})};
  EXPECT_THAT(conversions(must(three)), ElementsAre("x: [-, S(tensor)] -> [-, -]"));
}

// Expert parallelism: groups of tokens split over data, experts over the same axis. Slots change
// from one to the other by an all-to-all each way.
TEST(Distribute, FindsTheAllToAllOfExperts) {
  Graph graph = graph_named("experts");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {2, 10, 8}});
  const TensorId scores = add_input(graph, "scores", {DType::kBf16, {2, 10, 4}});
  graph[x].pinned = Attribute{.dims = {{0}, {}, {}}};
  const auto chosen = value_of(add_operator(
      graph,
      {.type = "top_k", .name = "top", .inputs = {scores}, .settings = {{"k", std::int64_t{2}}}}));
  const TensorId slots =
      add(graph, {.type = "moe_dispatch",
                  .name = "slots",
                  .inputs = {x, chosen[1]},
                  .settings = {{"experts", std::int64_t{4}}, {"capacity", std::int64_t{6}}}});
  const TensorId w = add_parameter(graph, "w", {DType::kBf16, {4, 8, 16}});
  graph[w].pinned = Attribute{.dims = {{0}, {}, {}}};
  const TensorId v = add_parameter(graph, "v", {DType::kBf16, {4, 16, 8}});
  graph[v].pinned = Attribute{.dims = {{0}, {}, {}}};
  const TensorId h = add(graph, {.type = "einsum",
                                 .name = "h",
                                 .inputs = {slots, w},
                                 .settings = {{"equation", S("egch,ehf->egcf")}}});
  const TensorId z = add(graph, {.type = "einsum",
                                 .name = "z",
                                 .inputs = {h, v},
                                 .settings = {{"equation", S("egcf,efh->egch")}}});
  const TensorId y =
      add(graph, {.type = "moe_combine", .name = "y", .inputs = {z, chosen[1], chosen[0]}});
  graph.outputs = {y};
  graph[y].pinned = Attribute{.dims = {{0}, {}, {}}};
  EXPECT_THAT(conversions(must(graph)),
              ElementsAre("slots: [-, S(data), -, -] -> [S(data), -, -, -]",
                          "z: [S(data), -, -, -] -> [-, S(data), -, -]"));
}

// Slices of 3, 3, 2, 2 rows go through an activation; the matmul wants equal ones, and 10 is not
// divisible by 4, so it takes the rows whole.
TEST(Distribute, CarriesUnevenSlicesAsFarAsTheyLineUp) {
  Graph graph = graph_named("uneven");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {10, 16}});
  graph[x].pinned = Attribute{.dims = {{1}, {}}, .sizes = {{3, 3, 2, 2}, {}}};
  const TensorId w = add_parameter(graph, "w", {DType::kBf16, {16, 32}});
  const TensorId g = add(
      graph, {.type = "unary", .name = "g", .inputs = {x}, .settings = {{"operation", S("relu")}}});
  graph.outputs = {add(graph, {.type = "matmul", .name = "y", .inputs = {g, w}})};
  const ShardedGraph sharded = must(graph);
  EXPECT_EQ(lies(sharded, "g"), "[S(tensor){3,3,2,2}, -]");
  EXPECT_THAT(conversions(sharded), ElementsAre("g: [S(tensor){3,3,2,2}, -] -> [-, -]"));
}

// A sum over the split dimension is partial; its negative still is, and is reduced after, when it
// is small; an exponential needs the value.
TEST(Distribute, ReducesSummandsLate) {
  Graph graph = graph_named("late");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 16}});
  graph[x].pinned = Attribute{.dims = {{1}, {}}};
  const TensorId s = add(graph, {.type = "reduce",
                                 .name = "s",
                                 .inputs = {x},
                                 .settings = {{"operation", S("sum")}, {"axes", Integers{0}}}});
  const TensorId n = add(
      graph, {.type = "unary", .name = "n", .inputs = {s}, .settings = {{"operation", S("neg")}}});
  graph.outputs = {add(
      graph, {.type = "unary", .name = "e", .inputs = {n}, .settings = {{"operation", S("exp")}}})};
  EXPECT_THAT(conversions(must(graph)), ElementsAre("n: [-] partial(tensor) -> [-]"));
}

// The widths are those of the matrices behind one whose columns and rows are split: 16 -> wide ->
// narrow is reduced when it is narrow, 16 -> narrow -> wide before it is wide.
TEST(Distribute, ReducesWhereAChainOfProductsIsNarrow) {
  const auto chain = [](std::int64_t first, std::int64_t second) {
    Graph graph = graph_named("chain");
    const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 16}});
    graph[x].pinned = Attribute{.dims = {{}, {1}}};
    const TensorId w = add_parameter(graph, "w", {DType::kBf16, {16, first}});
    const TensorId v = add_parameter(graph, "v", {DType::kBf16, {first, second}});
    const TensorId h = add(graph, {.type = "matmul", .name = "h", .inputs = {x, w}});
    graph.outputs = {add(graph, {.type = "matmul", .name = "y", .inputs = {h, v}})};
    return conversions(must(graph));
  };
  EXPECT_THAT(chain(64, 4), ElementsAre("y: [-, -] partial(tensor) -> [-, -]"));
  EXPECT_THAT(chain(4, 64), ElementsAre("h: [-, -] partial(tensor) -> [-, -]"));
}

// A product is linear in one input at a time: the wide one stays summands, the other is reduced.
// What is multiplied by itself is not linear.
TEST(Distribute, ReducesOneInputOfAProductOfSummands) {
  Graph graph = graph_named("product");
  const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 16, 64}});
  graph[x].pinned = Attribute{.dims = {{}, {1}, {}}};
  const auto sum = [&](const char* name, Integers axes) {
    return add(graph, {.type = "reduce",
                       .name = name,
                       .inputs = {x},
                       .settings = {{"operation", S("sum")}, {"axes", std::move(axes)}}});
  };
  const TensorId wide = sum("wide", Integers{1});
  const TensorId narrow = sum("narrow", Integers{0, 1});
  const TensorId scaled = add(graph, {.type = "binary",
                                      .name = "scaled",
                                      .inputs = {wide, narrow},
                                      .settings = {{"operation", S("mul")}}});
  const TensorId square = add(graph, {.type = "binary",
                                      .name = "square",
                                      .inputs = {scaled, scaled},
                                      .settings = {{"operation", S("mul")}}});
  graph.outputs = {square};
  EXPECT_THAT(conversions(must(graph)),
              UnorderedElementsAre("narrow: [-] partial(tensor) -> [-]",
                                   "scaled: [-, -] partial(tensor) -> [-, -]"));
}

TEST(Distribute, EntersTheBodiesOfLoops) {
  Graph body = graph_named("layer");
  const TensorId x = add_input(body, "x", {DType::kBf16, {8, 16}});
  const TensorId up = add_parameter(body, "up", {DType::kBf16, {16, 32}});
  const TensorId down = add_parameter(body, "down", {DType::kBf16, {32, 16}});
  body[up].pinned = Attribute{.dims = {{}, {1}}};
  const TensorId h = add(body, {.type = "matmul", .name = "h", .inputs = {x, up}});
  body.outputs = {add(body, {.type = "matmul", .name = "y", .inputs = {h, down}})};

  Graph graph = graph_named("model");
  const TensorId in = add_input(graph, "in", {DType::kBf16, {8, 16}});
  graph[in].pinned = Attribute{.dims = {{0}, {}}};
  graph.outputs = {add(graph, {.type = "loop",
                               .name = "layers",
                               .inputs = {in},
                               .settings = {{"count", std::int64_t{12}}},
                               .bodies = {body}})};
  EXPECT_EQ(parameter_elements(graph), 12 * 2 * 16 * 32);
  EXPECT_DOUBLE_EQ(flops_of(graph) / 1_FLOP, 12.0 * 2 * 2 * 8 * 16 * 32);
  const ShardedGraph sharded = must(graph);
  EXPECT_EQ(lies(sharded, "layers"), "[S(data), -]");
  ASSERT_EQ(sharded.bodies.size(), 1U);
  EXPECT_THAT(conversions(sharded.bodies[0]),
              ElementsAre("y: [S(data), -] partial(tensor) -> [S(data), -]"));
}

TEST(LegalSignatures, OfAMatmul) {
  const std::vector<Shape> shapes{{8, 16}, {16, 32}, {8, 32}};
  const auto rule = value_of(rule_from("mk,kn->mn", shapes, {.linearity = Linearity::kSeparate}));
  const std::vector<MeshAxis> mesh{{"x", 4}};
  const auto outputs = [&](const Attribute& a, const Attribute& b) {
    Lines lines;
    const auto legal = legal_signatures(rule, shapes, {a, b}, mesh);
    if (!legal) return Lines{legal.error().message};
    for (const Signature& each : *legal) lines.push_back(describe(each.outputs[0], mesh));
    return lines;
  };
  const Attribute whole = replicated(2);
  const Attribute rows{.dims = {{0}, {}}};
  const Attribute columns{.dims = {{}, {0}}};
  const Attribute summand{.dims = {{}, {}}, .partial = {{0}}};
  // B, B: whole, or any factor sliced for nothing.
  EXPECT_THAT(outputs(whole, whole),
              ElementsAre("[-, -]", "[S(x), -]", "[-, -] partial(x)", "[-, S(x)]"));
  EXPECT_THAT(outputs(rows, whole), ElementsAre("[S(x), -]"));
  EXPECT_THAT(outputs(whole, columns), ElementsAre("[-, S(x)]"));
  EXPECT_THAT(outputs(columns, rows), ElementsAre("[-, -] partial(x)"));
  EXPECT_THAT(outputs(summand, whole), ElementsAre("[-, -] partial(x)"));
  EXPECT_THAT(outputs(summand, columns), ElementsAre(HasSubstr("input 1 is not whole over it")));
  EXPECT_THAT(outputs(rows, columns),
              ElementsAre("axis 'x' splits factor 'm' already; input 1 wants it for factor 'n'"));
}

// The transformer's layers, annotated as their builder annotates them: the fixpoint converts the
// same tensors to the same ends as the forward pass over pinned graphs.
TEST(Distribute, AgreesWithTheForwardPassOnTransformers) {
  const std::vector<MeshAxis> mesh{{"tensor", 2}, {"data", 2}, {"pipeline", 1}};
  const Model model =
      written_model("name: tiny, layers: 1, hidden: 8, heads: 4, vocabulary: 10, sequence: 4");
  for (const bool sequence_parallel : {false, true}) {
    for (const bool flash : {false, true}) {
      const auto graphs = transformer_graphs(
          model,
          {.mesh = mesh,
           .batch = 2,
           .sequence_parallel = sequence_parallel,
           .attention = flash ? AttentionImplementation::kFused : AttentionImplementation::kUnfused,
           .vocabulary_multiple = 2});
      const auto forward = value_of(distribute(graphs.layers.front(), mesh, Flow::kForward));
      const ShardedGraph both = must(graphs.layers.front(), mesh);
      const auto ends = [](const ShardedGraph& sharded) {
        std::multiset<std::string> lines;
        for (const Conversion& c : sharded.conversions)
          lines.insert((*sharded.graph)[c.tensor].name + " -> " + describe(c.to, sharded.mesh));
        return lines;
      };
      EXPECT_EQ(ends(both), ends(forward)) << sequence_parallel << flash;
    }
  }
}

// x [8, 12] with its columns split two ways meets two weights split by row: each product is left as
// summands, and so is the sum of the two, which is reduced once. With a second reader that needs
// values the first product is reduced by itself, and then the sum takes values of both.
TEST(Distribute, SumsOfSummandsAreReducedOnce) {
  const std::vector<MeshAxis> mesh{{"x", 2}};
  for (const bool second_reader : {false, true}) {
    Graph graph = graph_named("sum");
    const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 12}});
    graph[x].pinned = Attribute{.dims = {{}, {0}}};
    std::vector<TensorId> products;
    for (const char* name : {"u", "v"}) {
      const TensorId weight = add_parameter(graph, name, {DType::kBf16, {12, 6}});
      graph[weight].pinned = Attribute{.dims = {{0}, {}}};
      products.push_back(*add_single(
          graph, {.type = "matmul", .name = std::string("x") + name, .inputs = {x, weight}}));
    }
    const TensorId sum = *add_single(graph, {.type = "binary",
                                             .name = "sum",
                                             .inputs = products,
                                             .settings = {{"operation", S("add")}}});
    const TensorId out = *add_single(
        graph,
        {.type = "unary", .name = "out", .inputs = {sum}, .settings = {{"operation", S("relu")}}});
    graph.outputs = {out};
    if (second_reader)
      graph.outputs.push_back(*add_single(graph, {.type = "unary",
                                                  .name = "other",
                                                  .inputs = {products[0]},
                                                  .settings = {{"operation", S("relu")}}}));
    const ShardedGraph sharded = must(graph, mesh);
    std::vector<TensorId> reduced;
    for (const Conversion& c : sharded.conversions) {
      EXPECT_EQ(c.from.partial, sums_over({0}));
      EXPECT_EQ(c.to, replicated(2));
      reduced.push_back(c.tensor);
    }
    EXPECT_EQ(reduced, second_reader ? products : std::vector<TensorId>{sum});
  }
}

// Random graphs, random annotations: every attribute is one that a tensor can have, every operator
// works as its rule allows, no conversion is listed twice, and all are used.
RC_GTEST_PROP(Distribute, YieldsLegalAttributesForAnyAnnotation, ()) {
  const std::vector<MeshAxis> mesh{{"a", 2}, {"b", *rc::gen::element(1, 2, 3)}, {"c", 2}};
  const auto examples = operator_examples();
  Graph graph = graph_named("random");
  // Operators in a chain or beside each other: an operand is an older tensor of its type, if any.
  const int count = *rc::gen::inRange(1, 12);
  for (int n = 0; n < count; ++n) {
    const Example example = examples[*rc::gen::inRange<std::size_t>(0, examples.size())];
    std::vector<TensorId> inputs;
    for (const TensorType& type : example.inputs) {
      std::vector<TensorId> fitting;
      for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        if (graph.tensors[t].dtype == type.dtype && graph.tensors[t].shape == type.shape)
          fitting.emplace_back(static_cast<std::int64_t>(t));
      if (!fitting.empty() && *rc::gen::inRange(0, 4) > 0) {
        inputs.push_back(*rc::gen::elementOf(fitting));
      } else if (*rc::gen::arbitrary<bool>()) {
        inputs.push_back(add_parameter(graph, "p" + std::to_string(graph.tensors.size()), type));
      } else {
        inputs.push_back(add_input(graph, "x" + std::to_string(graph.tensors.size()), type));
      }
    }
    const auto outputs = add_operator(graph, {.type = example.type,
                                              .name = "op" + std::to_string(n),
                                              .inputs = inputs,
                                              .settings = example.settings,
                                              .bodies = example.bodies});
    RC_ASSERT(outputs.has_value());
    graph.outputs = *outputs;
  }
  const bool training = *rc::gen::arbitrary<bool>();
  for (Tensor& tensor : graph.tensors) {
    if (*rc::gen::inRange(0, 3) > 0) continue;
    Attribute attribute = replicated(tensor.shape.size());
    for (Axis axis = 0; axis < 3; ++axis) {
      if (tensor.shape.empty() || *rc::gen::arbitrary<bool>()) continue;
      const auto d = *rc::gen::inRange<std::size_t>(0, tensor.shape.size());
      attribute.dims[d].push_back(axis);
      if (tensor.shape[d] % ways(attribute.dims[d], mesh) != 0) attribute.dims[d].pop_back();
    }
    tensor.pinned = attribute;
    if (!tensor.shape.empty() && *rc::gen::arbitrary<bool>()) tensor.open = {0};
  }
  const Graph whole = training ? training_graph(graph, {}) : graph;
  const auto sharded = distribute(whole, mesh);
  RC_ASSERT(sharded.has_value());
  const ProcessMesh ranks = mesh_from(mesh);
  for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
    RC_ASSERT(!fault_in({ranks, sharded->attributes[t]}, whole.tensors[t].shape));
    if (whole.tensors[t].pinned && whole.tensors[t].open.empty() &&
        whole.tensors[t].role == TensorRole::kActivation)
      RC_ASSERT(sharded->attributes[t] == *whole.tensors[t].pinned);
  }
  std::set<std::int32_t> used;
  for (std::size_t i = 0; i < whole.operators.size(); ++i) {
    const Operator& op = whole.operators[i];
    const auto& how = sharded->operators[i];
    std::vector<Shape> shapes;
    std::vector<TensorId> ids = op.inputs;
    ids.insert(ids.end(), op.outputs.begin(), op.outputs.end());
    shapes.reserve(ids.size());
    for (const TensorId id : ids) shapes.push_back(whole[id].shape);
    for (std::size_t o = 0; o < ids.size(); ++o)
      RC_ASSERT(!fault_in({ranks, how.operands[o]}, shapes[o]));
    used.insert(how.conversions.begin(), how.conversions.end());
    used.insert(sharded->after_operator[i].begin(), sharded->after_operator[i].end());
    // All operands together are one assignment of axes to factors, and say all of it.
    const Rule& rule = op.rule;
    internal::Assignment assignment(rule, mesh);
    std::vector<internal::AxisConflict> clashes;
    for (std::size_t o = 0; o < ids.size(); ++o)
      assignment.merge(o, how.operands[o], shapes[o], &clashes);
    RC_ASSERT(clashes.empty());
    std::vector<Partial> carried;
    std::size_t carriers = 0;
    for (std::size_t o = 0; o < op.inputs.size(); ++o) {
      if (how.operands[o].partial.empty()) continue;
      RC_ASSERT(carried.empty() || carried == how.operands[o].partial);
      carried = how.operands[o].partial;
      ++carriers;
    }
    RC_ASSERT(carriers == 0 ||
              (rule.linearity == Linearity::kJoint && carriers == op.inputs.size()) ||
              (rule.linearity == Linearity::kSeparate && carriers == 1));
    for (std::size_t o = 0; o < ids.size(); ++o) {
      Attribute expected = assignment.attribute(o);
      if (o >= op.inputs.size()) expected.partial = assignment.partial(o);
      for (const Partial& p : carried)
        RC_ASSERT(state_of(expected, p.axis).kind == AxisState::Kind::kReplicated);
      if (o >= op.inputs.size() || !how.operands[o].partial.empty())
        expected.partial.insert(expected.partial.end(), carried.begin(), carried.end());
      std::ranges::sort(expected.partial);
      RC_ASSERT(how.operands[o] == expected);
    }
  }
  RC_ASSERT(used.size() == sharded->conversions.size());
  std::set<std::tuple<TensorId, Attribute, Attribute>> distinct;
  for (const Conversion& c : sharded->conversions) {
    RC_ASSERT(c.from != c.to);
    RC_ASSERT(distinct.insert({c.tensor, c.from, c.to}).second);
  }
}

}  // namespace foreshard::distribute_test
