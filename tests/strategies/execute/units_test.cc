// Random graphs cut into units, executed unit by unit, compute what the whole graph computes on one
// rank: every tensor, and every parameter's gradient.
#include "strategies/graph/units.h"

#include <iostream>

#include "tests/strategies/execute/graphs.h"
#include "tests/strategies/graph/random_graph.h"
#include "tests/test.h"

namespace foreshard::execute::units_test {

constexpr double kLargestDifference = 1e-8;

struct Executed {
  Wholes values{};     // by tensor of the whole graph
  Wholes gradients{};  // of parameters
  std::set<TensorId> noise{};
};

Executed run_whole(const Graph& graph) {
  const std::vector<MeshAxis> one{{"one", 1}};
  const auto forward = value_of(distribute(graph, one));
  Executed run;
  run.values = *executed_graph(forward);
  const Graph back = backward_graph(forward, {});
  const auto backward = value_of(distribute(back, one));
  const auto values = value_of(executed_graph(backward, run.values));
  const std::set<TensorId> noise = rounding_noise(back, values);
  for (std::size_t t = 0; t < back.tensors.size(); ++t) {
    const TensorId id{static_cast<std::int64_t>(t)};
    const Tensor& tensor = back.tensors[t];
    if (tensor.role != TensorRole::kParameterGradient || !values.contains(id)) continue;
    run.gradients[tensor.gradient_of] = values.at(id);
    if (noise.contains(id)) run.noise.insert(tensor.gradient_of);
  }
  return run;
}

void add(std::vector<double>& sum, const std::vector<double>& summand) {
  if (sum.empty()) sum.resize(summand.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += summand[i];
}

Executed run_units(const Graph& graph, const std::vector<MeshAxis>& mesh,
                   const std::vector<std::size_t>& begins, BackwardPass follows) {
  Executed run;
  const auto whole = value_of(distribute(graph, mesh, Flow::kBothWays, follows));
  const std::vector<GraphUnit> units = cut(whole, begins);
  EXPECT_EQ(units.size(), begins.size() + 1);
  std::vector<ShardedGraph> forward;
  std::vector<Wholes> saved;  // by unit and its tensors
  for (const GraphUnit& unit : units) {
    const auto sharded = value_of(distribute(unit.graph, mesh, Flow::kBothWays, follows));
    forward.push_back(sharded);
    Wholes given;
    for (const TensorId id : unit.graph.inputs) {
      const auto known = run.values.find(unit.whole[id.index()]);
      if (known != run.values.end()) given[id] = known->second;
    }
    saved.push_back(*executed_graph(forward.back(), given));
    for (const auto& [id, values] : saved.back()) run.values[unit.whole[id.index()]] = values;
  }
  if (follows == BackwardPass::kNone) return run;
  const auto gradients = gradients_of(graph, units, forward, {});
  Wholes handed;  // gradients, by tensor of the whole graph
  for (std::size_t u = units.size(); u-- > 0;) {
    const GraphUnit& unit = units[u];
    const Graph& back = gradients[u].backward;
    const auto backward = value_of(distribute(back, mesh));
    Wholes given = saved[u];
    for (const TensorId id : back.inputs) {
      if (gradients[u].seeds.contains(id)) continue;
      const std::string of = back[id].name.substr(2);
      const auto tensor = std::ranges::find(unit.graph.tensors, of, &Tensor::name);
      given[id] =
          handed.at(unit.whole[static_cast<std::size_t>(tensor - unit.graph.tensors.begin())]);
    }
    const auto values = value_of(executed_graph(backward, given));
    for (std::size_t t = 0; t < back.tensors.size(); ++t) {
      const TensorId id{static_cast<std::int64_t>(t)};
      const Tensor& tensor = back.tensors[t];
      if (tensor.role == TensorRole::kParameterGradient && values.contains(id))
        add(run.gradients[unit.whole[tensor.gradient_of.index()]], values.at(id));
    }
    std::size_t next =
        0;  // outputs are the gradients of inputs that `handed` names, in their order
    for (std::size_t t = 0; t < unit.graph.tensors.size(); ++t) {
      const TensorId id{static_cast<std::int64_t>(t)};
      const TensorId in_whole = unit.whole[t];
      if (std::ranges::find(unit.graph.inputs, id) != unit.graph.inputs.end() &&
          gradients[u].handed.contains(in_whole))
        handed[in_whole] = values.at(back.outputs.at(next++));
    }
    EXPECT_EQ(next, back.outputs.size());
  }
  EXPECT_TRUE(gradients.front().handed.empty());
  return run;
}

TEST(Units, ComputeWhatTheWholeGraphDoes) {
  constexpr int kGraphs = 1'500;
  std::mt19937 random(5);
  const auto examples = executable_examples();
  std::int64_t units = 0;
  std::int64_t gradients = 0;
  double worst = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const std::vector<MeshAxis> mesh{{"a", 2},
                                     {"b", std::array<std::int64_t, 3>{1, 2, 3}[random() % 3]}};
    Graph graph = random_graph(examples, random);
    const Executed expected = run_whole(graph);
    annotate(graph, mesh, random);
    std::vector<std::size_t> begins;
    for (std::size_t op = 1; op < graph.operators.size(); ++op)
      if (random() % 2 == 0) begins.push_back(op);
    const Executed alone = run_units(graph, mesh, begins, BackwardPass::kNone);
    ASSERT_EQ(compare(graph, expected.values, alone.values, kLargestDifference).fault, "")
        << "graph " << i << ", forward alone";
    const Executed found = run_units(graph, mesh, begins, BackwardPass::kFollows);
    units += static_cast<std::int64_t>(begins.size()) + 1;
    const auto values = compare(graph, expected.values, found.values, kLargestDifference);
    ASSERT_EQ(values.fault, "") << "graph " << i;
    for (const auto& [parameter, gradient] : expected.gradients) {
      if (expected.noise.contains(parameter)) continue;
      ASSERT_TRUE(found.gradients.contains(parameter)) << "graph " << i;
      const double scale = std::max(magnitude(gradient), 1e-300);
      for (std::size_t e = 0; e < gradient.size(); ++e) {
        if (!std::isfinite(gradient[e])) continue;
        const double difference = std::abs(found.gradients.at(parameter)[e] - gradient[e]) / scale;
        ASSERT_LE(difference, kLargestDifference) << "graph " << i << ", " << graph[parameter].name;
        worst = std::max(worst, difference);
      }
      ++gradients;
    }
  }
  std::cout << fmt::format(
      "{} graphs in {} units: {} gradients, worst relative difference {:.2g}\n", kGraphs, units,
      gradients, worst);
}

}  // namespace foreshard::execute::units_test
