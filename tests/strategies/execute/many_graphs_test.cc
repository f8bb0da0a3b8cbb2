// Serial = sharded for random graphs of the table's operators, forward or with their backward pass,
// under random annotations on meshes of up to three axes and 12 ranks.
#include <iostream>

#include "tests/strategies/execute/graphs.h"
#include "tests/strategies/graph/random_graph.h"
#include "tests/test.h"

namespace foreshard::execute::many_graphs_test {

// A chain of up to eight operators may magnify the rounding of its first one.
constexpr double kTolerance = 1e-8;

std::string describe(const Graph& graph, const std::vector<MeshAxis>& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh) text += axis.name + "=" + std::to_string(axis.size) + " ";
  for (const Operator& op : graph.operators) {
    text += "\n  " + op.name + " = " + op.type + "(";
    for (const TensorId id : op.inputs) text += graph[id].name + " ";
    text += ")";
  }
  for (const Tensor& tensor : graph.tensors)
    if (tensor.pinned)
      text += "\n  " + tensor.name + " " + foreshard::describe(*tensor.pinned, mesh);
  return text;
}

TEST(SerialIsSharded, ForRandomGraphs) {
  constexpr std::uint32_t kSeed = 1;
  constexpr int kGraphs = 3'000;
  std::mt19937 random(kSeed);
  const auto examples = executable_examples();
  std::int64_t operators = 0;
  std::int64_t tensors = 0;
  std::int64_t conversions = 0;
  std::int64_t skipped = 0;
  double worst = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const std::vector<MeshAxis> mesh{
        {"a", 2}, {"b", std::array<std::int64_t, 3>{1, 2, 3}[random() % 3]}, {"c", 2}};
    Graph graph = random_graph(examples, random);
    annotate(graph, mesh, random);
    const Graph whole = random() % 2 == 0 ? graph : training_graph(graph, {});
    const std::string what = "seed " + std::to_string(kSeed) + ", graph " + std::to_string(i) +
                             ": " + describe(graph, mesh);
    const auto sharded = value_of(distribute(whole, mesh), what);
    const Graph alone = unpinned(whole);
    const auto serial = value_of(distribute(alone, {{"one", 1}}), what);
    const auto expected = value_of(executed_graph(serial), what);
    const auto found = value_of(executed_graph(sharded), what);
    const auto comparison = compare(whole, expected, found, kTolerance);
    ASSERT_EQ(comparison.fault, "") << what;
    operators += static_cast<std::int64_t>(whole.operators.size());
    conversions += static_cast<std::int64_t>(sharded.conversions.size());
    tensors += comparison.tensors;
    skipped += comparison.skipped;
    worst = std::max(worst, comparison.worst);
  }
  std::cout << fmt::format(
      "serial = sharded: {} random graphs, {} operators, {} conversions, {} tensors, worst "
      "relative "
      "difference {:.2g} ({} values that are no numbers, or rounding alone, left out)\n",
      kGraphs, operators, conversions, tensors, worst, skipped);
}

}  // namespace foreshard::execute::many_graphs_test
