// General graphs executed on arrays: gradients are those of the result, and sharded is serial.
#include "tests/oracle/graph.h"

#include <iostream>

#include "tests/strategies/execute/graphs.h"
#include "tests/strategies/graph/random_graph.h"
#include "tests/test.h"

namespace foreshard::execute::graph_test {

constexpr double kTolerance = 1e-10;

// --- by hand ---------------------------------------------------------------------------------

// x = [1 2; 3 4], w = [5 6; 7 8], bias [10 20]; the contracted dimension split over two ranks: each
// has an outer product, [5 6; 15 18] and [14 16; 28 32], and only the first adds the bias.
TEST(ExecutedGraph, AddsABiasOnceToSummands) {
  Graph graph{.name = "row parallel", .tensors = {}, .operators = {}};
  const Attribute columns{.dims = {{}, {0}}};
  const Attribute rows{.dims = {{0}, {}}};
  const auto parameter = [&](const char* name, Shape shape, const Attribute& lies) {
    return graph.add(
        {.name = name, .shape = std::move(shape), .role = TensorRole::kParameter, .pinned = lies});
  };
  const TensorId x = graph.add({.name = "x", .shape = {2, 2}, .pinned = columns});
  const TensorId w = parameter("w", {2, 2}, rows);
  const TensorId bias = parameter("bias", {2}, replicated(1));
  const TensorId y =
      *add_single(graph, {.type = "matmul", .name = "product", .inputs = {x, w, bias}});
  const std::vector<MeshAxis> mesh{{"tensor", 2}};
  const auto sharded = value_of(distribute(graph, mesh, Flow::kForward));
  Tensors tensors;
  tensors[x] = {columns, {{{1, 3}, {2, 4}}}};
  tensors[w] = {rows, {{{5, 6}, {7, 8}}}};
  tensors[bias] = {replicated(1), {{{10, 20}, {10, 20}}}};
  ASSERT_TRUE(run(sharded, {.mesh = mesh_from(mesh)}, tensors).ok());
  EXPECT_EQ(tensors[y].shards.of_position,
            (std::vector<std::vector<double>>{{15, 26, 25, 38}, {14, 16, 28, 32}}));
  EXPECT_EQ(convert(tensors[y].shards, {2, 2}, tensors[y].attribute, replicated(2), mesh_from(mesh))
                .of_position,
            (std::vector<std::vector<double>>(2, {29, 42, 53, 70})));
}

// A table of 4 rows over two ranks: rank 0 has rows 0 and 1, and yields zeroes for token 3.
TEST(ExecutedGraph, LooksUpItsPartOfTheVocabulary) {
  Graph graph{.name = "lookup", .tensors = {}, .operators = {}};
  const TensorId ids = add_input(graph, "ids", {DType::kInt32, {2}});
  const TensorId table = add_parameter(graph, "table", {DType::kBf16, {4, 1}});
  const auto y =
      value_of(add_single(graph, {.type = "embedding", .name = "lookup", .inputs = {ids, table}}));
  graph[table].pinned = Attribute{.dims = {{0}, {}}};
  const std::vector<MeshAxis> mesh{{"tensor", 2}};
  const auto distributed = value_of(distribute(graph, mesh));
  ShardedGraph sharded = distributed;
  sharded.after_operator[0].clear();  // look at the summands before they are reduced
  Tensors tensors;
  tensors[ids] = {replicated(1), {{{3, 0}, {3, 0}}}};
  tensors[table] = {*graph[table].pinned, {{{5, 6}, {7, 8}}}};
  ASSERT_TRUE(run(sharded, {.mesh = mesh_from(mesh)}, tensors).ok());
  EXPECT_EQ(tensors[y].shards.of_position, (std::vector<std::vector<double>>{{0, 5}, {8, 0}}));
}

// --- what a wrong graph is told --------------------------------------------------------------

TEST(ExecutedGraph, NamesWhatIsMissing) {
  Graph graph{.name = "mlp", .tensors = {}, .operators = {}};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {4, 4}});
  const TensorId w = add_parameter(graph, "w", {DType::kBf16, {4, 4}});
  ASSERT_TRUE(add_single(graph, {.type = "matmul", .name = "up", .inputs = {x, w}}));
  graph[x].pinned = Attribute{.dims = {{}, {0}}};
  graph[w].pinned = Attribute{.dims = {{}, {0}}};
  const std::vector<MeshAxis> mesh{{"tensor", 2}};
  const auto distributed = value_of(distribute(graph, mesh));
  ASSERT_TRUE(executed_graph(distributed));
  ShardedGraph sharded = distributed;
  for (auto& how : sharded.operators) how.conversions.clear();
  EXPECT_EQ(message_of(executed_graph(sharded)),
            "mlp: operator 'up' needs 'x' as [-, -], it lies as [-, S(tensor)], and the graph has "
            "no conversion");
  Tensors nothing;
  EXPECT_EQ(message_of(run(sharded, {.mesh = mesh_from(mesh)}, nothing)),
            "mlp: operator 'up' reads 'x', which nobody made");
}

TEST(ExecutedGraph, RefusesWhatItHasNoArithmeticFor) {
  for (const Example& example : operator_examples()) {
    const Graph graph = graph_of(example);
    if (can_compute(graph.operators.front())) continue;
    EXPECT_THAT(example.type, AnyOf("condition", "loop", "optimizer_update"));
    const auto sharded = value_of(distribute(graph, {{"x", 1}}));
    EXPECT_THAT(message_of(executed_graph(sharded)), HasSubstr("is not executed on arrays"));
  }
}

// --- gradients -------------------------------------------------------------------------------

Graph unary_graph(const std::string& operation) {
  return graph_of({"unary", {{DType::kFp32, {4, 6}}}, {{"operation", operation}}});
}
Graph binary_graph(const std::string& operation) {
  return graph_of(
      {"binary", {{DType::kFp32, {4, 6}}, {DType::kFp32, {6}}}, {{"operation", operation}}});
}

// Statistics of x itself: the gradient of batch_norm counts what flows through them.
Graph batch_norm_graph() {
  Graph graph{.name = "batch_norm", .tensors = {}, .operators = {}};
  const TensorId x = add_input(graph, "x", {DType::kFp32, {4, 6, 3, 3}});
  const TensorId scale = add_input(graph, "scale", {DType::kFp32, {6}});
  const TensorId shift = add_input(graph, "shift", {DType::kFp32, {6}});
  const auto statistics =
      add_single(graph, {.type = "batch_statistics", .name = "statistics", .inputs = {x}});
  const auto y = add_single(
      graph, {.type = "batch_norm", .name = "op", .inputs = {x, scale, shift, *statistics}});
  graph.outputs = {*y};
  return graph;
}

// The sum of the first result (of split: of all), each element with a weight of its own, as a
// function of its inputs: the gradient is its slope.
void expect_gradients(const Graph& graph, const std::string& what) {
  const Graph training = training_graph(graph, {});
  const auto sharded = value_of(distribute(training, {{"x", 1}}), what);
  Wholes given;
  for (const TensorId id : training.inputs) given[id] = values_for(training[id]);
  std::vector<std::pair<TensorId, TensorId>> weighted;  // result, its gradient
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    for (const TensorId id : training.inputs) {
      if (training[id].name != "d." + training[graph.outputs[o]].name) continue;
      if (o == 0 || graph.name == "split") {
        weighted.emplace_back(graph.outputs[o], id);
      } else {
        std::ranges::fill(given[id], 0.0);
      }
    }
  }
  ASSERT_FALSE(weighted.empty()) << what;
  const auto value = [&](const Wholes& at) {
    const auto wholes = value_of(executed_graph(sharded, at), what);
    double sum = 0;
    for (const auto& [result, weight] : weighted) {
      for (std::size_t i = 0; i < at.at(weight).size(); ++i)
        sum += wholes.at(result)[i] * at.at(weight)[i];
    }
    return sum;
  };
  const auto base = value_of(executed_graph(sharded, given), what);
  std::size_t checked = 0;
  // Gradients of the inputs follow the results, in the order of the inputs.
  std::size_t next = graph.outputs.size();
  for (const TensorId input : graph.inputs) {
    const DType dtype = training[input].dtype;
    if (dtype == DType::kInt8 || dtype == DType::kInt32) continue;
    ASSERT_LT(next, training.outputs.size()) << what;
    const TensorId gradient = training.outputs[next++];
    constexpr double kStep = 1e-5;
    const std::size_t count = given[input].size();
    for (const std::size_t element : {std::size_t{0}, count / 2, count - 1}) {
      Wholes nudged = given;
      nudged[input][element] += kStep;
      const double above = value(nudged);
      nudged[input][element] -= 2 * kStep;
      const double slope = (above - value(nudged)) / (2 * kStep);
      const double found = base.at(gradient)[element];
      EXPECT_NEAR(found, slope, 1e-6 * std::max(1.0, std::abs(slope)))
          << what << ", " << training[input].name << " [" << element << "]";
      ++checked;
    }
  }
  EXPECT_GT(checked, 0U) << what;
}

TEST(ExecutedGradients, AreSlopesOfTheResult) {
  for (const Example& example : executable_examples()) {
    const bool of_parts = example.type.starts_with("vocabulary");  // below
    if (find_operator(example.type)->gradient == nullptr || example.type == "batch_norm" ||
        of_parts)
      continue;
    expect_gradients(graph_of(example), example.type);
  }
  for (const char* operation :
       {"abs",        "clip", "cos", "elu",        "erf",  "exp",    "gelu",         "identity",
        "leaky_relu", "log",  "neg", "reciprocal", "relu", "scale",  "hard_sigmoid", "hard_swish",
        "sigmoid",    "silu", "sin", "softplus",   "sqrt", "square", "squared_relu", "tanh"})
    expect_gradients(unary_graph(operation), operation);
  for (const char* operation : {"add", "div", "max", "min", "mul", "pow", "sub"})
    expect_gradients(binary_graph(operation), operation);
  expect_gradients(batch_norm_graph(), "batch_norm");
}

// The loss over a vocabulary in parts, from its statistics: log(sum of exponentials) - the target's
// logit, less the maximum. Its slope is the gradient, whatever is taken for the maximum.
TEST(ExecutedGradients, AreSlopesOfTheLossOverAVocabulary) {
  Graph graph{.name = "loss", .tensors = {}, .operators = {}};
  const TensorId logits = add_input(graph, "logits", {DType::kFp32, {2, 3, 8}});
  const TensorId targets = add_input(graph, "targets", {DType::kInt32, {2, 3}});
  const auto maximum =
      add_single(graph, {.type = "vocabulary_maximum", .name = "maximum", .inputs = {logits}});
  const auto parts = add_single(
      graph,
      {.type = "vocabulary_cross_entropy", .name = "parts", .inputs = {logits, *maximum, targets}});
  const auto loss =
      add_single(graph, {.type = "vocabulary_loss", .name = "loss", .inputs = {*parts}});
  graph.outputs = {*loss};
  graph[logits].pinned = Attribute{.dims = {{}, {}, {0}}};
  const Graph training = training_graph(graph, {});
  const auto sharded = value_of(distribute(training, {{"tensor", 2}}));
  const auto run = [&](double nudge) {
    Wholes given;
    for (const TensorId id : training.inputs) given[id] = values_for(training[id]);
    given[logits][5] += nudge;
    return *executed_graph(sharded, given);
  };
  const auto value = [&](double nudge) {
    const Wholes wholes = run(nudge);
    double sum = 0;
    for (std::size_t token = 0; token < 6; ++token)
      sum += std::log(wholes.at(*loss)[2 * token]) - wholes.at(*loss)[2 * token + 1];
    return sum;
  };
  constexpr double kStep = 1e-5;
  EXPECT_NEAR(run(0).at(training.outputs.back())[5], (value(kStep) - value(-kStep)) / (2 * kStep),
              1e-6);
}

// --- what rules claim ------------------------------------------------------------------------

// f(x + x') = f(x) + f(x'), for all inputs together or for one of them at a time.
void expect_linear(const Graph& graph, const std::string& what) {
  const Linearity linearity = graph.operators.front().rule.linearity;
  const auto sharded = value_of(distribute(graph, {{"x", 1}}), what);
  std::vector<TensorId> moved;
  for (const TensorId id : graph.inputs)
    if (graph[id].dtype != DType::kInt8 && graph[id].dtype != DType::kInt32) moved.push_back(id);
  std::vector<std::vector<TensorId>> turns{moved};
  if (linearity == Linearity::kSeparate) {
    turns.clear();
    for (const TensorId id : moved) turns.push_back({id});
  }
  for (const auto& together : turns) {
    Wholes one;
    for (const TensorId id : graph.inputs) one[id] = values_for(graph[id]);
    Wholes other = one;
    Wholes both = one;
    for (const TensorId id : together) {
      std::ranges::reverse(other[id]);
      for (std::size_t i = 0; i < other[id].size(); ++i) {
        other[id][i] = 0.3 - 0.7 * other[id][i];
        both[id][i] += other[id][i];
      }
    }
    const auto a = executed_graph(sharded, one);
    const auto b = executed_graph(sharded, other);
    const auto sum = executed_graph(sharded, both);
    ASSERT_TRUE(a && b && sum) << what;
    for (const TensorId out : graph.operators.front().outputs)
      for (std::size_t i = 0; i < sum->at(out).size(); ++i)
        ASSERT_NEAR(sum->at(out)[i], a->at(out)[i] + b->at(out)[i], 1e-9)
            << what << ", " << graph[out].name << " [" << i << "]";
  }
}

// Reductions are put off over operators that say they are linear: so they must be.
TEST(Linearity, IsWhatRulesClaim) {
  std::vector<std::pair<std::string, Graph>> graphs;
  for (const Example& example : executable_examples()) {
    graphs.emplace_back(example.type, graph_of(example));
    if (example.type == "pad") {  // with what is not zero
      Example other = example;
      other.settings.set("value", 1.5);
      graphs.emplace_back("pad by 1.5", graph_of(other));
    }
    const OperatorDefinition& definition = *find_operator(example.type);
    for (const SettingDefinition& setting : definition.settings) {
      if (setting.name != "operation") continue;
      for (const auto& word : setting.words) {
        Example other = example;
        other.settings.set("operation", std::string(word));
        graphs.emplace_back(example.type + " " + std::string(word), graph_of(other));
      }
    }
  }
  std::size_t linear = 0;
  for (const auto& [what, graph] : graphs) {
    if (graph.operators.front().rule.linearity == Linearity::kNone) continue;
    expect_linear(graph, what);
    ++linear;
  }
  EXPECT_GT(linear, 20U);
}

// --- serial = sharded ------------------------------------------------------------------------

// Every operator of the table, forward and backward, under annotations on meshes of two axes.
TEST(SerialIsSharded, ForEveryOperator) {
  std::mt19937 random(3);
  std::int64_t cases = 0;
  std::int64_t tensors = 0;
  double worst = 0;
  for (const Example& example : executable_examples()) {
    for (const std::int64_t second : {1, 2, 3}) {
      for (int turn = 0; turn < 4; ++turn) {
        const std::vector<MeshAxis> mesh{{"a", 2}, {"b", second}};
        Graph graph = graph_of(example);
        annotate(graph, mesh, random);
        const Graph training = training_graph(graph, {});
        const auto sharded = value_of(distribute(training, mesh), example.type);
        const Graph alone = unpinned(training);
        const auto serial = value_of(distribute(alone, {{"one", 1}}), example.type);
        const auto expected = value_of(executed_graph(serial), example.type);
        const auto found = value_of(executed_graph(sharded), example.type);
        const auto comparison = compare(training, expected, found, kTolerance);
        std::string pins;
        for (const Tensor& tensor : graph.tensors)
          if (tensor.pinned) pins += ", " + tensor.name + " " + describe(*tensor.pinned, mesh);
        EXPECT_EQ(comparison.fault, "") << example.type << pins;
        EXPECT_EQ(comparison.skipped, 0) << example.type;
        ++cases;
        tensors += comparison.tensors;
        worst = std::max(worst, comparison.worst);
      }
    }
  }
  std::cout << fmt::format(
      "serial = sharded: {} annotated operators with their gradients, {} tensors, worst relative "
      "difference {:.2g}\n",
      cases, tensors, worst);
}

}  // namespace foreshard::execute::graph_test
