// What operators and conversions between them cost on a mesh; the least of it against all choices;
// and that annotations make distribute() choose the same.
#include "sim/search/graph/tables.h"

#include "tests/sim/search/graph/graph_studies.h"
#include "tests/strategies/graph/random_graph.h"
#include "tests/test.h"

#include "sim/search/graph/annotations.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/graph/distribute.h"

namespace foreshard::search::tables_test {

constexpr const char* kStrategy = "{data_parallel: 2, micro_batch: 2048, global_batch: 4096}";

// A cluster with its cost model, and a strategy.
struct DeviceSubset {
  study::LoadedStudy study = graph_study("mlp", kStrategy);
  ClusterView cluster = *cluster_of(study, study.pool.devices);
  sim::SimulatedCost cost{cluster, study.communication};

  Tables tables(const Graph& graph, const std::vector<MeshAxis>& mesh) const {
    return tables_of(graph, study.strategy,
                     {.axes = mesh, .cost = &cost, .placement = {.cluster = &cluster}});
  }
};

double options_in(const Tables& tables) {
  double count = 1;
  for (const std::size_t variable : tables.variable_of)
    count *= static_cast<double>(tables.problem.variables[variable].cost.size());
  return count;
}

// Of operators without bodies.
std::vector<Example> plain_examples() {
  auto examples = operator_examples();
  std::erase_if(examples, [](const Example& one) { return !one.bodies.empty(); });
  return examples;
}

// The least cost over all choices of operators. Given those, what lies between them is chosen one
// by one: activations and parameters have no pairs but with operators.
double least_of_all(const Tables& tables) {
  const Problem& problem = tables.problem;
  std::vector<std::vector<const Pair*>> pairs_of(problem.variables.size());
  std::vector<bool> is_operator(problem.variables.size());
  for (const std::size_t variable : tables.variable_of) is_operator[variable] = true;
  for (const Pair& pair : problem.pairs) {
    EXPECT_NE(is_operator[pair.a], is_operator[pair.b]);
    pairs_of[is_operator[pair.a] ? pair.b : pair.a].push_back(&pair);
  }
  std::vector<std::size_t> choice(problem.variables.size());
  double least = std::numeric_limits<double>::infinity();
  while (true) {
    double cost = 0;
    for (std::size_t v = 0; v < choice.size() && cost < least; ++v) {
      const Variable& variable = problem.variables[v];
      if (is_operator[v]) {
        cost += variable.cost[choice[v]];
        continue;
      }
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t s = 0; s < variable.cost.size(); ++s) {
        double sum = variable.cost[s];
        for (const Pair* pair : pairs_of[v]) {
          const std::size_t columns = problem.variables[pair->b].cost.size();
          sum += pair->a == v ? pair->cost[s * columns + choice[pair->b]]
                              : pair->cost[choice[pair->a] * columns + s];
        }
        best = std::min(best, sum);
      }
      cost += best;
    }
    least = std::min(least, cost);
    std::size_t i = 0;
    for (; i < tables.variable_of.size(); ++i) {
      const std::size_t v = tables.variable_of[i];
      if (++choice[v] < problem.variables[v].cost.size()) break;
      choice[v] = 0;
    }
    if (i == tables.variable_of.size()) return least;
  }
}

// On one axis of two ranks, where all choices can be gone through.
TEST(Tables, LeastIsThatOfAllChoicesOnRandomGraphs) {
  const DeviceSubset place;
  const std::vector<MeshAxis> mesh{{"tensor", 2}, {"data", 1}};
  std::mt19937 random(5);
  const auto examples = plain_examples();
  constexpr double kMostChoices = 30'000;
  int checked = 0;
  int split = 0;
  for (int n = 0; checked < 200; ++n) {
    ASSERT_LT(n, 2000);
    const Graph graph = random_graph(examples, random);
    const Tables tables = place.tables(graph, mesh);
    if (options_in(tables) > kMostChoices) continue;
    const double least = least_of_all(tables);
    const auto answer = solve(tables.problem);
    ASSERT_EQ(answer.has_value(), std::isfinite(least)) << n;
    if (!answer) continue;
    ASSERT_NEAR(answer->cost, least, 1e-9 * least) << n;
    ++checked;
    if (std::ranges::any_of(tables.variable_of,
                            [&](std::size_t variable) { return answer->choice[variable] > 0; }))
      ++split;
  }
  EXPECT_GT(split, 50);
}

// Two axes: annotated so, distribute() makes the same choice, at the same cost.
TEST(Annotations, MakeDistributeChooseTheSame) {
  const DeviceSubset place;
  const std::vector<MeshAxis> mesh{{"tensor", 2}, {"data", 2}};
  std::mt19937 random(9);
  const auto examples = plain_examples();
  for (int n = 0; n < 60; ++n) {
    const Graph graph = random_graph(examples, random);
    const Tables tables = place.tables(graph, mesh);
    const auto answer = solve(tables.problem);
    if (!answer) continue;
    auto annotations = annotations_of(graph, tables, answer->choice, mesh);
    const auto cost_with = [&](const std::vector<Annotation>& given) {
      Graph annotated = graph;
      const auto remarks = annotate(annotated, mesh, {.annotations = given});
      EXPECT_TRUE(remarks) << n << ": " << remarks.error().message;
      const auto sharded = distribute(annotated, mesh, Flow::kBothWays, BackwardPass::kFollows);
      EXPECT_TRUE(sharded) << n << ": " << sharded.error().message;
      const auto choice = choice_of(graph, tables, *sharded);
      EXPECT_TRUE(choice) << n;
      return choice ? tables.problem.cost_of(*choice) : 0.0;
    };
    ASSERT_NEAR(cost_with(annotations), answer->cost, 1e-9 * answer->cost)
        << n << yaml_of(annotations, 2);
    const auto needed = without_redundant(graph, mesh, 1, annotations);
    EXPECT_LE(needed.size(), annotations.size());
    ASSERT_NEAR(cost_with(needed), answer->cost, 1e-9 * answer->cost) << n << yaml_of(needed, 2);
  }
}

// y = x w, its gradients dx = dy w^T and dw = x^T dy. Not split, the operator is three products,
// and nothing is reduced; split along m, dw is reduced; split along k, y is.
TEST(Tables, PriceAProduct) {
  const DeviceSubset place;
  const std::vector<MeshAxis> mesh{{"tensor", 2}, {"data", 1}};
  Graph graph{.name = "product"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {4096, 4096}});
  const TensorId w = add_parameter(graph, "w", {DType::kBf16, {4096, 4096}});
  graph.outputs = {*add_single(graph, {.type = "matmul", .name = "y", .inputs = {x, w}})};
  const Tables tables = place.tables(graph, mesh);
  const auto& options = tables.splits[0];
  const Rule& rule = graph.operators[0].rule;
  // The option that splits the factor of this dimension of this operand.
  const auto cost_of = [&](std::size_t operand, std::size_t dim) {
    const auto factor = static_cast<std::size_t>(rule.operands[operand][dim].front());
    for (std::size_t i = 0; i < options.size(); ++i)
      if (!options[i][factor].empty())
        return tables.problem.variables[tables.variable_of[0]].cost[i];
    return -1.0;
  };
  const double m = cost_of(0, 0);
  const double k = cost_of(0, 1);
  const double n = cost_of(1, 1);
  ASSERT_EQ(options.size(), 4U);  // none, m, k, n
  const double whole = tables.problem.variables[tables.variable_of[0]].cost[0];
  EXPECT_GT(whole, 0);
  EXPECT_LT(n, 0.75 * whole);
  EXPECT_NEAR(k, n, 0.1 * whole);  // what reduces y is between operators
  const double reduction = *place.cost.communication_time(program::CollectiveKind::kAllReduce,
                                                          Bytes::from_base(4.0 * 4096 * 4096),
                                                          {DeviceId{0}, DeviceId{1}}) /
                           1_s;
  EXPECT_GT(m, n + reduction);  // by the optimizer's update of the other half of w
  EXPECT_LT(m, n + reduction + 0.25 * whole);
}

// A wide weight for few rows: each part of its columns is updated where it is, and nothing is
// reduced. So they are split by one axis and then, each part, by the other.
TEST(Tables, LeastSplitsADimensionInTwoLevels) {
  const DeviceSubset place;
  const std::vector<MeshAxis> mesh{{"tensor", 4}, {"data", 1}, {"outer", 2}};
  Graph graph{.name = "wide"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {8, 4096}});
  const TensorId w = add_parameter(graph, "w", {DType::kBf16, {4096, 65536}});
  const TensorId up = *add_single(graph, {.type = "matmul", .name = "up", .inputs = {x, w}});
  graph.outputs = {*add_single(graph, {.type = "unary",
                                       .name = "gelu",
                                       .inputs = {up},
                                       .settings = {{"operation", std::string("gelu")}}})};
  const Tables tables = place.tables(graph, mesh);
  const auto answer = value_of(solve(tables.problem));
  const double least = least_of_all(tables);
  EXPECT_NEAR(answer.cost, least, 1e-9 * least);
  const Rule& rule = graph.operators[0].rule;
  const auto columns = static_cast<std::size_t>(rule.operands[1][1].front());
  const auto splits_of = [&](std::size_t op) {
    return tables.splits[op][answer.choice[tables.variable_of[op]]];
  };
  EXPECT_EQ(splits_of(0)[columns], (std::vector<Axis>{0, 2}));
  const Attribute lies = signature_of(rule, splits_of(0), mesh).inputs[1];
  EXPECT_EQ(describe(lies, mesh), "[-, S(tensor, outer)]");
  EXPECT_EQ(largest_local_shape({4096, 65536}, lies, mesh),
            (std::vector<std::int64_t>{4096, 8192}));
}

}  // namespace foreshard::search::tables_test
