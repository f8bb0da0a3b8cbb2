#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

constexpr const char* kSearch = "search --cluster two-dgx-a100 --model gpt-1.7b ";

TEST(SearchCommand, NeedsOfAStrategyTheBatchAlone) {
  const Outcome none = foreshard(kSearch);
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("a search needs of a strategy only --set strategy.global_batch"));
  const Outcome found = foreshard(std::string(kSearch) +
                                  "--set strategy.global_batch=64 --level 1 --simulate 4 "
                                  "--certify 0 --front 0 --format json");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.err, Not(HasSubstr("do not matter")));
  const auto json = nlohmann::json::parse(found.out);
  EXPECT_EQ(json["certified_within"], "the model");
  EXPECT_EQ(json["devices"], 16);
  for (const auto& one : json["best"]) {
    EXPECT_LE(one["low_s"], one["time_s"]);
    EXPECT_GE(one["high_s"], one["time_s"]);
    EXPECT_EQ(one["idle_devices"], 0);
  }
}

TEST(SearchCommand, SaysWhatItsSpaceLosesAndWhy) {
  const TemporaryFolder folder;
  const std::string space =
      folder.write("space.yaml", "zero_stage: [2]\npipeline_parallel: [2]\n").string();
  const Outcome outcome =
      foreshard(std::string(kSearch) + "--set strategy.global_batch=64 --space '" + space + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no framework offers ZeRO 2 or 3 with a pipeline"));
}

TEST(SearchCommand, CountsOneStrategyAsOne) {
  const TemporaryFolder folder;
  const std::string space =
      folder
          .write("space.yaml",
                 "tensor_parallel: [8]\npipeline_parallel: [1]\ndata_parallel: [2]\nmicro_batch: "
                 "[1]\nvirtual_stages: [1]\nzero_stage: [1]\nrecompute: [none]\n")
          .string();
  const Outcome outcome =
      foreshard(std::string(kSearch) + "--set strategy.global_batch=64 --space '" + space + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  1  strategy considered\n"));
}

TEST(SearchCommand, SaysWhyNotAnotherStrategy) {
  const Outcome outcome = foreshard(std::string(kSearch) +
                                    "--set strategy.global_batch=64 --level 1 --simulate 4 "
                                    "--certify 0 --front 0 --format json --why-not 'tp8 mb1 full'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto why = nlohmann::json::parse(outcome.out)["why_not"];
  EXPECT_EQ(why["asked"], "tp8 mb1 full");
  EXPECT_EQ(why["in_space"], true);
  EXPECT_THAT(std::string(why["message"]), HasSubstr(" behind: "));
}

TEST(SearchCommand, SplitsAGraphByItsRulesAndTheUsers) {
  const TemporaryFolder folder;
  const std::string rules =
      folder
          .write("rules.yaml",
                 "rules: [{name: mine, annotations: [{operator: products, splits: {}}]}]\n")
          .string();
  const std::string search = "search moe-layer-h100-8 --level 1 --format csv ";
  const Outcome found = foreshard(search + "--rules '" + rules + "'");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr(",megatron,"));
  const Outcome space = foreshard(search + "--space '" + rules + "'");
  EXPECT_EQ(space.code, 2);
  EXPECT_THAT(space.err, HasSubstr("--space: is for a study with a model, not a graph"));
  const Outcome model =
      foreshard(std::string(kSearch) + "--set strategy.global_batch=64 --rules '" + rules + "'");
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("--rules: only a study with a graph is split by rules"));
}

TEST(SearchCommand, SaysWhichRuleIsWrong) {
  const TemporaryFolder folder;
  const std::string rules =
      folder.write("rules.yaml", "rules: [{name: mine, annotations: [{dims: [data]}]}]\n").string();
  const Outcome wrong = foreshard("search moe-layer-h100-8 --rules '" + rules + "'");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("give 'tensor' and 'dims', or 'operator' and 'splits'"));
}

TEST(SearchCommand, HasASchemaOfItsSpace) {
  const Outcome outcome = foreshard("schema search");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& keys = json["definitions"]["search"]["properties"];
  for (const char* key : {"level", "tensor_parallel", "zero_stage", "idle"})
    EXPECT_TRUE(keys.contains(key)) << key;
}

// 16 devices, one of them dead: the first 8 have the same step as on a cluster that has lost none.
TEST(SimulateCommand, LeavesDevicesIdleAndSaysSo) {
  const auto step = [](const std::string& more) {
    const Outcome outcome = foreshard(
        "simulate --model gpt-1.7b --set strategy.global_batch=64 --set "
        "strategy.data_parallel=8 --format json " +
        more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto whole = step("--cluster two-dgx-a100");
  const auto dead = step("--cluster two-dgx-a100 --set 'cluster.down=[node1/gpu3]'");
  const auto named = step("--cluster two-dgx-a100 --set 'use=[node1]'");
  EXPECT_EQ(whole["step"]["time_s"], dead["step"]["time_s"]);
  EXPECT_EQ(whole["step"]["time_s"], named["step"]["time_s"]);
  EXPECT_EQ(dead["study"]["idle_devices"], 7);
  EXPECT_EQ(dead["study"]["down_devices"], 1);
  EXPECT_EQ(named["study"]["idle_devices"], 8);
}

}  // namespace
}  // namespace foreshard::cli
