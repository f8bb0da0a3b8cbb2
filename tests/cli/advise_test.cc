// `foreshard advise` as a shell runs it: its options make `simulate` give the same figures.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::json;

void expect_as_simulated(const std::string& study, const std::string& input = "") {
  const Outcome advised = foreshard("advise " + study + " --format json" + input);
  ASSERT_EQ(advised.code, 0) << advised.err;
  const Json advice = Json::parse(advised.out);
  std::size_t changes = 0;
  for (const char* list : {"changes", "hardware"})
    for (const Json& change : advice.at(list)) {
      ++changes;
      std::string options = study;
      options.append(" ").append(change.at("options").get<std::string>());
      const Outcome simulated =
          foreshard(fmt::format("simulate {} --format json{}", options, input));
      ASSERT_EQ(simulated.code, 0) << options << simulated.err;
      const Json prediction = Json::parse(simulated.out);
      const Json& after = change.at("after");
      EXPECT_EQ(prediction.at("step").at("time_s"), after.at("step_s")) << options;
      EXPECT_EQ(prediction.at("step").at("low_s"), after.at("low_s")) << options;
      EXPECT_EQ(prediction.at("step").at("high_s"), after.at("high_s")) << options;
      EXPECT_EQ(prediction.at("memory").at("peak_bytes"), after.at("peak_bytes")) << options;
      EXPECT_EQ(prediction.at("cost").at("usd_per_step"), after.at("usd_per_step")) << options;
    }
  EXPECT_GT(changes, 0U);
}

TEST(AdviseCommand, GivesOptionsWithTheSameFigures) {
  expect_as_simulated("gpt-1.7b-a100-8");
  expect_as_simulated("moe-layer-h100-8");
  expect_as_simulated("gpt-1.7b-a100-8 --set strategy.schedule=gpipe --set cluster.rent='2 USD/h'");
}

TEST(AdviseCommand, ReadsStdinMoreThanOnce) {
  expect_as_simulated("-", " < configs/studies/llama3-8b-h100-64-fsdp.yaml");
}

// What an imported file says is noted once, not with every candidate.
TEST(AdviseCommand, NotesAnImportOnce) {
  const std::string words =
      "--cluster two-dgx-h100 --model gpt-1.7b --megatron '--tensor-model-parallel-size 2 "
      "--micro-batch-size 1 --global-batch-size 32 --bf16'";
  const Outcome simulated = foreshard("simulate " + words);
  const Outcome advised = foreshard("advise " + words);
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  ASSERT_EQ(advised.code, 0) << advised.err;
  EXPECT_EQ(advised.err, simulated.err);
}

TEST(AdviseCommand, SaysWhatIsWrong) {
  const auto error = [](const std::string& words, const std::string& message) {
    const Outcome outcome = foreshard("advise " + words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << words;
  };
  error("", "give a study (STUDY.yaml)");
  error("no-such-study", "no-such-study");
  error("gpt-1.7b-a100-8 --top 0", "--top");
  error("gpt-1.7b-a100-8 --threads none", "--threads");
  error("gpt-1.7b-a100-8 --set strategy.micro_batch=3", "do not divide");
  error("gpt-1.7b-a100-8 --set strategy.tensor=3", "did you mean");
}

// Ten times the memory of the device: no single change makes it fit.
TEST(AdviseCommand, SaysThatNothingFits) {
  const Outcome outcome = foreshard(
      "advise --cluster '{name: one, node: h200-1gpu}' --model gpt3-175b --strategy "
      "'{global_batch: 1, framework: megatron-lm}'");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("none of those that were tried fits"));
}

}  // namespace
}  // namespace foreshard::cli
