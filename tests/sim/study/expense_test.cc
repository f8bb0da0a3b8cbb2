// Energy and rent by hand, and the length of a training.
#include "sim/study/expense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/base/temporary_folder.h"

#include "sim/study/run.h"

namespace foreshard::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const yaml::Options kCatalogue{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {}};

StudyRun run(const std::filesystem::path& file, std::vector<yaml::Override> overrides = {}) {
  yaml::Options options = kCatalogue;
  options.overrides = std::move(overrides);
  const auto study = load_study({.study = file}, std::move(options));
  EXPECT_TRUE(study) << study.error().message;
  auto result = run_study(*study, {});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

constexpr double kJoulesPerKwh = 3.6e6;

// The README's study: 1,024 A100 (400 W busy, 64 W idle, 2.4984 USD/h) in 16 stages of 64, each
// with its own share of waiting (bubble and host). With t the step and w_s the waiting of stage s,
//   energy = sum over stages of 64 x (400 W x (t - w_s) + 64 W x w_s)
//   rent   = 1,024 x 2.4984 USD/h x t
// The first stage waits for 9.5 % of the 31 s: 1,024 devices at 368 W make about 11.7 MJ or 3.2
// kWh; 1,024 device-steps of 31 s are 8.8 device-hours or 22 USD. 2T tokens in steps of 1,536
// sequences of 2,048 tokens are 635,783 steps (the last one not full).
TEST(Expense, OfTheStudyInTheReadme) {
  const StudyRun got = run(FORESHARD_SOURCE_DIR "/configs/studies/gpt3-175b-a100-1024.yaml",
                           {{"train", "2T tokens"}});
  const sim::Prediction& p = got.prediction;
  const double step = p.step.in_base();
  double joules = 0;
  for (const sim::DeviceClass& one : p.classes) {
    const double waits = (one.breakdown.bubble + one.breakdown.host).in_base();
    joules += static_cast<double>(one.count) * (400 * (step - waits) + 64 * waits);
  }
  ASSERT_TRUE(p.expense.energy && p.expense.rent);
  EXPECT_NEAR(p.expense.energy->in_base(), joules, 1e-9 * joules);
  EXPECT_NEAR(p.expense.rent->in_base(), 1024 * 2.4984 / 3600 * step, 1e-9 * step);
  EXPECT_EQ(p.expense.unused, 0);
  EXPECT_EQ(p.expense.pue, 1);
  // The same in rough numbers, from the page in the README.
  EXPECT_NEAR(joules / kJoulesPerKwh, 3.2, 0.3);
  EXPECT_NEAR(p.expense.rent->in_base(), 22, 2);
  ASSERT_TRUE(p.training);
  EXPECT_EQ(p.training->steps, 635783);
}

constexpr const char* kOne =
    "cluster: {name: box, node: dgx-a100-80gb}\n"
    "model: {name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}\n"
    "strategy: {data_parallel: 8, global_batch: 8}\n";

// The price of the cluster takes the place of the device's; PUE multiplies the energy alone.
TEST(Expense, FollowsTheClustersPriceAndPue) {
  const TemporaryFolder folder;
  const auto file = folder.write("one.yaml", kOne);
  const sim::Expense before = run(file).prediction.expense;
  const sim::Prediction after =
      run(file, {{"cluster.rent", "{value: 36 USD/h, source: test, evidence: user}"},
                 {"cluster.pue", "{value: 1.5, source: test, evidence: user}"}})
          .prediction;
  EXPECT_NEAR(*after.expense.energy / *before.energy, 1.5, 1e-12);
  EXPECT_NEAR(after.expense.rent->in_base(), 8 * 0.01 * after.step.in_base(), 1e-12);
}

TEST(Expense, IsUnknownWithoutPriceOrPower) {
  const TemporaryFolder folder;
  const sim::Expense expense =
      run(FORESHARD_SOURCE_DIR "/configs/studies/host-dp2.yaml").prediction.expense;
  EXPECT_FALSE(expense.energy);
  EXPECT_FALSE(expense.rent);
  EXPECT_THAT(expense.without_power, ElementsAre("host-core"));
  EXPECT_THAT(expense.without_rent, ElementsAre("host-core"));
}

// One of two devices works for a step of 10 s, of which it waits 2 s for its host and 1 s for
// others: 7 s at 100 W and 3 s at 20 W are 760 J; the other one idles: 200 J. Both are rented.
TEST(Expense, CountsDevicesThatTheStepDoesNotUse) {
  const TemporaryFolder folder;
  const auto file = folder.write("two.yaml", R"(
nodes: 1
node:
  device:
    extends: A100-SXM-80GB
    power: {value: 100 W, source: test, evidence: user}
    idle_power: {value: 20 W, source: test, evidence: user}
    rent: {value: 3.6 USD/h, source: test, evidence: user}
  gpus: 2
  nvlink: {bandwidth: {value: 300 GB/s, source: test, evidence: user}}
)");
  yaml::Loader loader(kCatalogue);
  const auto config = loader.read_file<ClusterConfig>(file);
  ASSERT_TRUE(config) << config.error().message;
  const auto cluster = build_cluster(*config);
  ASSERT_TRUE(cluster) << cluster.error().message;
  sim::Prediction prediction;
  prediction.step = 10_s;
  sim::DeviceClass one;
  one.count = 1;
  one.device = DeviceId{0};
  one.breakdown.compute = 4_s;
  one.breakdown.data = 3_s;
  one.breakdown.host = 2_s;
  one.breakdown.bubble = 1_s;
  prediction.classes = {one};
  const sim::Expense expense = expense_of(prediction, *cluster, *config);
  EXPECT_EQ(expense.unused, 1);
  EXPECT_NEAR(expense.energy->in_base(), 960, 1e-9);
  EXPECT_NEAR(expense.rent->in_base(), 2 * 10 * 0.001, 1e-12);
}

TEST(TrainingLength, IsANumberAndWhatItCounts) {
  const auto amount = [](std::string_view text) {
    const auto length = parse_training_length(text);
    return length ? length->amount : -1;
  };
  EXPECT_EQ(amount("2T tokens"), 2e12);
  EXPECT_EQ(amount("300 B tokens"), 300e9);
  EXPECT_EQ(amount("1.5e6 tokens"), 1.5e6);
  EXPECT_EQ(amount("90k images"), 90e3);
  EXPECT_TRUE(parse_training_length("2 tokens")->tokens);
  EXPECT_FALSE(parse_training_length("1.2M samples")->tokens);
  for (const char* text : {"", "2T", "tokens", "-1 tokens", "2 X tokens", "2T epochs", "inf tokens",
                           "0 tokens", "2T tokens more"})
    EXPECT_EQ(amount(text), -1) << text;
  EXPECT_THAT(parse_training_length("2T").error().message, HasSubstr("for example 2T tokens"));
}

TEST(TrainingLength, MustFitTheStudy) {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& lines) {
    const auto file = folder.write("one.yaml", kOne + lines);
    const auto study = load_study({.study = file}, kCatalogue);
    return study ? "accepted" : study.error().message;
  };
  EXPECT_EQ(fault("train: 2T tokens\n"), "accepted");
  EXPECT_EQ(fault("train: 1M sequences\n"), "accepted");
  EXPECT_THAT(
      fault("train: 90k images\n"),
      testing::AllOf(HasSubstr("one.yaml:4:8: error: a sample here is a sequence, so no images"),
                     HasSubstr("count samples or sequences")));
  EXPECT_THAT(fault("train: 2T\n"), HasSubstr("one.yaml:4:8: error: '2T' is no length"));
  const auto file = folder.write("one.yaml", std::string(kOne) + "train: 1M samples\n");
  const auto forward = load_study({.study = file}, {.catalogue = kCatalogue.catalogue,
                                                    .overrides = {{"strategy.mode", "forward"}}});
  ASSERT_FALSE(forward);
  EXPECT_THAT(forward.error().message, HasSubstr("mode: forward trains nothing"));
}

}  // namespace
}  // namespace foreshard::study
