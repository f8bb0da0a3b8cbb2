// Two sweeps side by side: who is beside whom, and what comes first.
#include "sim/sweep/comparison.h"

#include <nlohmann/json.hpp>

#include "tests/sim/sweep/sweeps.h"
#include "tests/test.h"

#include "sim/sweep/output.h"
#include "sim/sweep/run.h"
#include "sim/sweep/store.h"

namespace foreshard::sweep::comparison_test {

// A training of one step; its bubble is what is beyond 1 s of compute.
Outcome lasting(double seconds, const std::string& strategy) {
  Outcome outcome;
  outcome.status = PointStatus::kOk;
  outcome.model = "m";
  outcome.cluster = "c";
  outcome.strategy = strategy;
  outcome.figures.emplace();
  outcome.figures->step = seconds * 1_s;
  outcome.figures->training_steps = 1;
  outcome.figures->terms = {{"compute", 1_s}, {"pipeline_bubble", (seconds - 1) * 1_s}};
  return outcome;
}

Outcome refused() {
  Outcome outcome;
  outcome.status = PointStatus::kInfeasible;
  outcome.why = "too large";
  return outcome;
}

Results grid_of(const std::string& name, std::vector<AxisNames> axes,
                std::vector<Outcome> outcomes) {
  Results results;
  results.question.name = name;
  results.question.axes = std::move(axes);
  results.question.train = "1B tokens";
  results.question.said = {{"study", name}, {"train", "1B tokens"}};
  for (Outcome& outcome : outcomes) results.outcomes.emplace_back(std::move(outcome));
  return results;
}

const AxisNames kNodes{.name = "nodes", .values = {"1", "2", "3", "4"}};

// The values may stand in another order; 3 runs on one side alone, 4 is of A alone.
TEST(Comparison, PutsPointsOfEqualValuesBesideEachOtherByEffect) {
  const Results a =
      grid_of("one", {kNodes}, {lasting(2, "x"), lasting(4, "x"), refused(), lasting(1, "x")});
  const Results b = grid_of("two", {{.name = "nodes", .values = {"2", "3", "1"}}},
                            {lasting(2, "y"), lasting(9, "x"), lasting(2.2, "x")});
  const auto found = compare(a, b);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->axes, ElementsAre("nodes"));
  EXPECT_THAT(found->inputs, ElementsAre(Difference{"study", "one", "two"}));
  EXPECT_THAT(found->left_out, ElementsAre("nodes 4 (of A)"));
  ASSERT_EQ(found->pairs.size(), 3U);
  EXPECT_THAT(found->pairs[0].values, ElementsAre("3"));
  EXPECT_FALSE(found->pairs[0].effect);
  EXPECT_THAT(found->pairs[1].values, ElementsAre("2"));
  EXPECT_NEAR(*found->pairs[1].effect, -0.5, 1e-12);
  EXPECT_THAT(found->pairs[1].inputs, ElementsAre(Difference{"strategy", "x", "y"}));
  EXPECT_NEAR(*found->pairs[2].effect, 0.1, 1e-12);
  const std::string text = comparison_text(a, b, *found, 20);
  EXPECT_THAT(text, AllOf(HasSubstr("study: one -> two"), HasSubstr("A: too large"),
                          HasSubstr("pipeline bubble of a step: 3.00 s -> 1.00 s"),
                          HasSubstr("strategy: x -> y"), HasSubstr("-50.0 %")));
  const auto json = nlohmann::json::parse(comparison_json(a, b, *found));
  EXPECT_EQ(json["pairs"][1]["terms"][0]["part"], "pipeline_bubble");
  EXPECT_EQ(json["pairs"][0]["a"]["why"], "too large");
}

// Of an axis that only one side has, its best value is taken; without common axes, the best of all.
TEST(Comparison, TakesTheBestOfWhatOneSideAloneHas) {
  const Results a = grid_of(
      "one", {{.name = "nodes", .values = {"1", "2"}}, {.name = "kind", .values = {"p", "q"}}},
      {lasting(4, "x"), lasting(3, "x"), lasting(2, "x"), refused()});
  const Results b =
      grid_of("two", {{.name = "nodes", .values = {"1", "2"}}}, {lasting(6, "x"), lasting(6, "x")});
  const auto found = compare(a, b);
  ASSERT_EQ(found->pairs.size(), 2U);
  EXPECT_EQ(found->pairs[0].a, 2U);
  EXPECT_NEAR(*found->pairs[0].effect, 2, 1e-12);
  EXPECT_EQ(found->pairs[1].a, 1U);
  EXPECT_THAT(found->pairs[1].inputs, Contains(Difference{"axis kind", "q", ""}));
  const Results c = grid_of("three", {{.name = "other", .values = {"z"}}}, {lasting(1, "x")});
  const auto free = compare(a, c);
  ASSERT_EQ(free->pairs.size(), 1U);
  EXPECT_EQ(free->pairs[0].a, 2U);
  EXPECT_THAT(comparison_text(a, c, *free, 20), HasSubstr("the best of all"));
}

// 2e-6 USD a token are 2 USD a million, which is easier to read.
TEST(Comparison, WritesMoneyOfAMillionTokens) {
  Outcome outcome = lasting(1, "x");
  outcome.figures->tokens = 1000;
  outcome.figures->usd = 0.002 * 1_USD;
  Results a = grid_of("one", {{.name = "nodes", .values = {"1"}}}, {outcome});
  a.question.train.reset();
  a.question.rank = Measure::kUsd;
  const auto found = value_of(compare(a, a));
  EXPECT_THAT(comparison_text(a, a, found, 20),
              AllOf(HasSubstr("on usd of a million tokens"), HasSubstr("2.00 USD  2.00 USD")));
}

TEST(Comparison, NeedsSomethingInCommon) {
  const Results a = grid_of("one", {{.name = "nodes", .values = {"1"}}}, {lasting(4, "x")});
  const Results b = grid_of("two", {{.name = "nodes", .values = {"2"}}}, {lasting(4, "x")});
  EXPECT_THAT(message_of(compare(a, b)), HasSubstr("no value of it in common"));
}

// A run as JSON and as a results file: both read back as what they were, and nothing differs.
TEST(Comparison, ReadsWhatAStudyWrote) {
  const TemporaryFolder folder;
  const sweep::Setup setup =
      setup_of(folder,
               "axes:\n"
               "  - {key: strategy.micro_batch, values: [1, 2, 3]}\n"
               "set: {cluster.rent: 3 USD/h}\n"
               "goal: {train: 1B tokens, within: 1 d, minimise: usd}\nsensitivities: true\n");
  std::vector<std::string> remarks;
  const auto file = folder.path() / "r.db";
  std::string json;
  {
    Store store = value_of(Store::open(file, question_of(setup.sweep), "", remarks));
    const auto run = value_of(run_sweep(setup, {.store = &store}));
    json = sweep_json(run.results, ranking_of(run.results));
  }
  const auto of_json = results_in(json);
  ASSERT_TRUE(of_json) << of_json.error().message;
  const auto of_file = read_results(file, remarks);
  ASSERT_TRUE(of_file) << of_file.error().message;
  for (const auto* results : {&of_json, &of_file})
    EXPECT_EQ(sweep_json(**results, ranking_of(**results)), json);
  EXPECT_EQ(of_file->question.said.at("set.cluster.rent"), "3 USD/h");
  const auto found = value_of(compare(*of_json, *of_file));
  EXPECT_TRUE(found.inputs.empty());
  for (const Pair& pair : found.pairs) EXPECT_TRUE(pair.inputs.empty());
  EXPECT_EQ(found.pairs[0].effect, 0);
  EXPECT_THAT(comparison_text(*of_json, *of_file, found, 20), HasSubstr("  Nothing.\n"));
  for (const char* text :
       {"", "[]", "{\"schema\": \"foreshard.search/1\"}", "{\"schema\": \"foreshard.sweep/1\"}"})
    EXPECT_THAT(results_in(text).error().message, HasSubstr("no results of a study: ")) << text;
}

}  // namespace foreshard::sweep::comparison_test
