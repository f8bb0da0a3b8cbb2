// The search of general graphs: what it finds where that is known, what it says, what it refuses.
#include "sim/search/graph/search.h"

#include <nlohmann/json.hpp>

#include "tests/sim/search/graph/graph_studies.h"
#include "tests/test.h"

#include "sim/search/graph/annotations.h"
#include "sim/search/graph/output.h"
#include "sim/study/run.h"
#include "strategies/graph/annotate.h"
#include "strategies/graph/distribute.h"

namespace foreshard::search::search_test {

// A transformer block of one sequence: weights weigh more than activations.
constexpr const char* kBlock = R"(name: block
tensors:
  - {name: x, role: input, dtype: bf16, shape: [1, 1024, 8192]}
  - {name: norm1.scale, role: parameter, dtype: bf16, shape: [8192]}
  - {name: q.weight, role: parameter, dtype: bf16, shape: [8192, 8192]}
  - {name: k.weight, role: parameter, dtype: bf16, shape: [8192, 8192]}
  - {name: v.weight, role: parameter, dtype: bf16, shape: [8192, 8192]}
  - {name: out.weight, role: parameter, dtype: bf16, shape: [8192, 8192]}
  - {name: norm2.scale, role: parameter, dtype: bf16, shape: [8192]}
  - {name: up.weight, role: parameter, dtype: bf16, shape: [8192, 32768]}
  - {name: down.weight, role: parameter, dtype: bf16, shape: [32768, 8192]}
operators:
  - {op: rms_norm, name: norm1, inputs: [x, norm1.scale]}
  - {op: matmul, name: q, inputs: [norm1, q.weight]}
  - {op: matmul, name: k, inputs: [norm1, k.weight]}
  - {op: matmul, name: v, inputs: [norm1, v.weight]}
  - {op: reshape, name: q.apart, inputs: [q], settings: {shape: [1, 1024, 64, 128]}}
  - {op: reshape, name: k.apart, inputs: [k], settings: {shape: [1, 1024, 64, 128]}}
  - {op: reshape, name: v.apart, inputs: [v], settings: {shape: [1, 1024, 64, 128]}}
  - {op: transpose, name: q.heads, inputs: [q.apart], settings: {order: [0, 2, 1, 3]}}
  - {op: transpose, name: k.heads, inputs: [k.apart], settings: {order: [0, 2, 1, 3]}}
  - {op: transpose, name: v.heads, inputs: [v.apart], settings: {order: [0, 2, 1, 3]}}
  - {op: attention, inputs: [q.heads, k.heads, v.heads], outputs: [context, logsumexp]}
  - {op: transpose, name: tokens, inputs: [context], settings: {order: [0, 2, 1, 3]}}
  - {op: reshape, name: joined, inputs: [tokens], settings: {shape: [1, 1024, 8192]}}
  - {op: matmul, name: out, inputs: [joined, out.weight]}
  - {op: binary, name: attended, inputs: [out, x], settings: {operation: add}}
  - {op: rms_norm, name: norm2, inputs: [attended, norm2.scale]}
  - {op: matmul, name: up, inputs: [norm2, up.weight]}
  - {op: unary, name: gelu, inputs: [up], settings: {operation: gelu}}
  - {op: matmul, name: down, inputs: [gelu, down.weight]}
  - {op: binary, name: y, inputs: [down, attended], settings: {operation: add}}
outputs: [y]
)";

GraphSearchResult searched(const study::LoadedStudy& study,
                           const GraphSearchOptions& options = {}) {
  return value_of(search_graph(study, options));
}

const GraphCandidate& first_by_operators(const GraphSearchResult& result) {
  const auto found = std::ranges::find(result.simulated, "operators", &GraphCandidate::by);
  EXPECT_NE(found, result.simulated.end());
  return *found;
}

// The graph as the candidate shards it.
struct Sharded {
  Graph graph{};
  ShardedGraph sharded{};

  Sharded(const study::LoadedStudy& study, const GraphCandidate& one) : graph(study.graph->graph) {
    const auto mesh = one.grouping.mesh();
    value_of(annotate(graph, mesh, {.annotations = one.annotations, .batch = study.graph->batch}));
    sharded = value_of(distribute(graph, mesh, Flow::kBothWays, BackwardPass::kFollows));
  }
  // "[-, S(tensor)]", of an operand of the operator of that name.
  std::string operand(const std::string& name, std::size_t index) const {
    const auto op = std::ranges::find(graph.operators, name, &Operator::name);
    const auto at = static_cast<std::size_t>(op - graph.operators.begin());
    return describe(sharded.operators[at].operands[index], sharded.mesh);
  }
};

// Megatron-LM's pairs: columns of q, k, v and up, rows of out and down; heads in between; summands
// leave `out` and `down` alone.
TEST(SearchGraph, FindsColumnsThenRowsForATransformerBlock) {
  const auto study = graph_study(kBlock, "{global_batch: 1}");
  const auto result = searched(study);
  ASSERT_FALSE(result.simulated.empty());
  const GraphCandidate& best = result.simulated.front();
  EXPECT_EQ(best.grouping.strategy.tensor_parallel, 8) << study_keys_of(best, study.graph->graph);
  const GraphCandidate& own = first_by_operators(result);
  EXPECT_EQ(own.solver, "dynamic programming");
  EXPECT_DOUBLE_EQ(own.gap, 0);
  const Sharded found(study, own);
  for (const char* name : {"q", "k", "v", "up"})
    EXPECT_EQ(found.operand(name, 1), "[-, S(tensor)]") << name;
  for (const char* name : {"out", "down"})
    EXPECT_EQ(found.operand(name, 1), "[S(tensor), -]") << name;
  EXPECT_EQ(found.operand("context", 0), "[-, S(tensor), -, -]");
  std::map<std::string, int> partial;
  for (std::size_t i = 0; i < found.graph.operators.size(); ++i)
    for (const Attribute& operand : found.sharded.operators[i].operands)
      if (!operand.partial.empty()) ++partial[found.graph.operators[i].name];
  EXPECT_EQ(partial, (std::map<std::string, int>{{"down", 1}, {"out", 1}}))
      << study_keys_of(own, study.graph->graph);
}

// Eight devices and a batch of one. Columns of `up` and rows of `down` divide by 8, but of `last`
// only the columns divide, by 4, and its rows, by 2.
constexpr const char* kTwoLevels = R"(name: two-levels
tensors:
  - {name: x, role: input, dtype: bf16, shape: [1, 1026, 8192]}
  - {name: up.weight, role: parameter, dtype: bf16, shape: [8192, 32768]}
  - {name: down.weight, role: parameter, dtype: bf16, shape: [32768, 8193]}
  - {name: last.weight, role: parameter, dtype: bf16, shape: [8193, 16388]}
operators:
  - {op: matmul, name: up, inputs: [x, up.weight]}
  - {op: unary, name: gelu, inputs: [up], settings: {operation: gelu}}
  - {op: matmul, name: down, inputs: [gelu, down.weight]}
  - {op: matmul, name: last, inputs: [down, last.weight]}
outputs: [last]
)";

// Tensor ranks in two levels split the columns of `up` by one and then by the other, and those and
// the rows of `last` by one each: faster than ranks in one level, which cannot share `last`.
TEST(SearchGraph, SplitsADimensionInTwoLevels) {
  const auto study = graph_study(kTwoLevels, "{global_batch: 1}");
  const auto result = searched(study);
  ASSERT_FALSE(result.simulated.empty());
  const GraphCandidate& best = result.simulated.front();
  EXPECT_EQ(best.by, "operators");
  ASSERT_EQ(best.grouping.axes.size(), 1U);
  EXPECT_EQ(best.grouping.axes.front().name, "outer");
  EXPECT_EQ(best.grouping.axes.front().size * best.grouping.strategy.tensor_parallel, 8);
  EXPECT_GT(best.grouping.strategy.tensor_parallel, 1);
  const Sharded found(study, best);
  EXPECT_EQ(found.operand("up", 1), "[-, S(tensor, outer)]");
  EXPECT_EQ(found.operand("down", 1), "[S(tensor, outer), -]");
  EXPECT_THAT(found.operand("last", 2),
              AnyOf("[-, S(tensor), S(outer)]", "[-, S(outer), S(tensor)]"));
  EXPECT_THAT(study_keys_of(best, study.graph->graph), HasSubstr("axes: {outer: "));
  const auto in_one = searched(study, {.level = 2});
  ASSERT_FALSE(in_one.simulated.empty());
  EXPECT_TRUE(in_one.simulated.front().grouping.axes.empty());
  EXPECT_LT(best.step, 0.6 * in_one.simulated.front().step);
}

TEST(SearchGraph, IsNoSlowerThanItsRules) {
  for (const char* graph : {"bert", "conv-block", "two-tower", "wide-mlp"}) {
    const auto study = graph_study(graph, "{global_batch: 8192}");
    const auto result = searched(study);
    ASSERT_FALSE(result.simulated.empty()) << graph;
    const GraphCandidate& best = first_by_operators(result);
    for (const GraphCandidate& one : result.simulated) {
      if (!one.fits || one.by == "operators") continue;
      EXPECT_LE(best.step, 1.1 * one.step) << graph << ", " << one.by;
      const auto own = std::ranges::find_if(result.simulated, [&](const GraphCandidate& other) {
        return other.by == "operators" && other.grouping.mesh() == one.grouping.mesh();
      });
      if (!one.estimate || own == result.simulated.end() || !own->fits) continue;
      EXPECT_LE(*own->estimate / *one.estimate, 1 + 1e-9) << graph << ", " << one.by;
    }
  }
}

TEST(SearchGraph, SaysWhatItFound) {
  const auto study = graph_study("mlp", "{global_batch: 4096}");
  const auto result = searched(study, {.simulate = 4});
  ASSERT_EQ(result.simulated.size(), 4U);
  EXPECT_EQ(result.groupings, 4);
  const std::string text = graph_search_text(study, result, 3);
  EXPECT_THAT(text, HasSubstr("Of the first one, for the study:"));
  EXPECT_THAT(text, HasSubstr("strategy:\n  tensor_parallel: "));
  const auto json = nlohmann::json::parse(graph_search_json(study, result, 2));
  ASSERT_EQ(json["best"].size(), 2U);
  EXPECT_DOUBLE_EQ(json["best"][0]["time_s"], result.simulated[0].step / 1_s);
  EXPECT_THAT(graph_search_csv(result, 1), HasSubstr("\n1,"));
  const auto usd = result.simulated[0].expense.usd();
  EXPECT_EQ(json["best"][0]["usd_per_step"].is_null(), !usd.has_value());
  if (usd) {
    EXPECT_DOUBLE_EQ(json["best"][0]["usd_per_step"], *usd / 1_USD);
  }
}

// What is pasted into the study gives the step that the search simulated.
TEST(SearchGraph, CanBePastedIntoTheStudy) {
  const auto study = graph_study("mlp", "{global_batch: 4096}");
  const auto result = searched(study, {.simulate = 3});
  for (const GraphCandidate& one : result.simulated) {
    const Strategy& strategy = one.grouping.strategy;
    const auto pasted = graph_study(
        "mlp",
        "{global_batch: 4096, tensor_parallel: " + std::to_string(strategy.tensor_parallel) +
            ", data_parallel: " + std::to_string(strategy.data_parallel) +
            ", micro_batch: " + std::to_string(strategy.micro_batch) + "}",
        kBox, one.annotations.empty() ? "" : ", annotations: " + [&] {
          std::string list = "[";
          for (const Annotation& a : one.annotations) {
            std::string line = yaml_of({a}, 0);
            line.erase(0, 2);  // "- "
            line.pop_back();
            list += (list == "[" ? "" : ", ") + line;
          }
          return list + "]";
        }());
    const auto run = value_of(study::run_study(pasted, {}));
    EXPECT_NEAR(run.prediction.step / one.step, 1, 1e-9) << one.by;
  }
}

TEST(SearchGraph, GivesTheSameOnAnyNumberOfThreads) {
  const auto study = graph_study("mlp", "{global_batch: 4096}");
  const std::string one = graph_search_json(study, searched(study, {.threads = 1}), 20);
  EXPECT_EQ(one, graph_search_json(study, searched(study, {.threads = 3}), 20));
}

// 2.1 billion parameters with 18 bytes each are 39 GB where they are whole, more than a device of
// 40 GB has beside its context: they must be split.
TEST(SearchGraph, KeepsToTheMemory) {
  const auto study =
      graph_study("wide-mlp", "{global_batch: 8192}", "{name: box, node: dgx-a100-40gb}");
  const auto result = searched(study);
  ASSERT_FALSE(result.simulated.empty());
  EXPECT_TRUE(result.simulated.front().fits) << graph_search_text(study, result, 5);
}

TEST(SearchGraph, TriesTheRulesOfUsers) {
  const auto study = graph_study("mlp", "{global_batch: 4096}");
  GraphRule rule{.name = "mine"};
  const Rule& product = study.graph->graph.operators.front().rule;
  const auto columns = static_cast<std::size_t>(product.operands[1][1].front());
  rule.annotations = {{.op = "up", .splits = {{product.factors[columns].name, "tensor"}}},
                      {.op = "no such", .splits = {}}};
  const auto result = searched(study, {.rules = {rule}, .level = 1});
  EXPECT_THAT(result.remarks, ElementsAre("rule 'mine': the graph has no operator "
                                          "'no such'; the rest of it is tried"));
  EXPECT_EQ(std::ranges::count(result.simulated, "mine", &GraphCandidate::by), result.groupings);
  EXPECT_EQ(std::ranges::count(result.simulated, "operators", &GraphCandidate::by), 0);
}

std::string fault(const study::LoadedStudy& study) {
  return message_of(search_graph(study, {}), "none");
}

TEST(SearchGraph, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(fault(graph_study("mlp", "{global_batch: 4096, sequence_parallel: true}")),
              HasSubstr("no grouping of the devices suits the graph"));
}

// The same of every mesh is said once, with what would do.
TEST(SearchGraph, SaysOnceWhatForbidsAllGroupings) {
  const std::string text = fault(graph_study("mlp", "{global_batch: 4097}"));
  EXPECT_THAT(text, HasSubstr("4 of them: global_batch: 4,097 samples do not divide into"));
  EXPECT_THAT(text, HasSubstr("; use strategy.global_batch=4096 or 8192"));
}

}  // namespace foreshard::search::search_test
