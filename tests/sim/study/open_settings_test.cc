// What is taken for settings that a study leaves open, against every choice run by itself.
#include "sim/study/open_settings.h"

#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study {
namespace {

// 16 sequences on four replicas: micro-batches of 1, 2 and 4, of which the last needs recomputation
// to fit.
constexpr const char* kStudy = R"(
cluster: {nodes: 1, node: dgx-a100-80gb, fabric: {kind: single-switch}}
model: {extends: gpt-1.7b, layers: 8}
strategy: {tensor_parallel: 2, data_parallel: 4, micro_batch: 1, global_batch: 16, framework: megatron-lm}
)";

Result<LoadedStudy> loaded(const std::string& more, std::vector<yaml::Override> overrides = {},
                           bool sizes_matter = true) {
  return load_study(
      {.text = yaml::Input{"study", kStudy + more}, .sizes_matter = sizes_matter},
      {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = std::move(overrides)});
}

Result<sim::Prediction> run(const LoadedStudy& study) {
  FORESHARD_ASSIGN(auto run, run_study(study, {}));
  return std::move(run.prediction);
}

TEST(OpenSettings, AreTheFastestChoiceThatFits) {
  const auto open = value_of(loaded("open: [micro_batch, recompute]\n"));
  const auto taken = value_of(run(open));
  std::vector<Seconds> steps;
  for (const char* micro_batch : {"1", "2", "4"}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      const auto stated = value_of(
          loaded("", {{"strategy.micro_batch", micro_batch}, {"strategy.recompute", recompute}}));
      const auto prediction = value_of(run(stated));
      if (prediction.fits) steps.push_back(prediction.step);
    }
  }
  ASSERT_TRUE(open.settled);
  EXPECT_EQ(open.settled->fits, std::ssize(steps));
  const auto [fastest, slowest] = std::ranges::minmax_element(steps);
  EXPECT_EQ(taken.step, *fastest);
  EXPECT_GE(taken.high / *slowest, 1 - 1e-12) << "the interval reaches to the slowest choice";
  EXPECT_LT(taken.low, taken.step);
}

TEST(OpenSettings, AreToldWithTheResult) {
  const auto study = value_of(loaded("open: [recompute]\nassumed: [network]\n"));
  const auto prediction = value_of(run(study));
  std::string told;
  for (const auto& warning : prediction.warnings) told += warning.code + ": " + warning.message;
  EXPECT_THAT(
      told,
      HasSubstr(
          "open: left open, and so the fastest of 3 choices that fit in memory: recompute none"));
  EXPECT_THAT(told, HasSubstr("assumed: not said by the study's source, and assumed: network"));
}

// Of choices none of which fits, the one that exceeds the memory least: a micro-batch of 1, in full
// recomputed.
TEST(OpenSettings, AreTheSmallestChoiceWhereNoneFits) {
  const auto study = value_of(
      loaded("open: [micro_batch, recompute]\n", {{"cluster.node",
                                                   "{extends: dgx-a100-80gb, device: {extends: "
                                                   "A100-SXM-80GB, memory: 2 GiB}}"}}));
  EXPECT_EQ(study.strategy.micro_batch, 1);
  EXPECT_EQ(study.strategy.recompute, Recompute::kFull);
  EXPECT_EQ(study.settled->fits, 0);
  EXPECT_THAT(study.settled->message, HasSubstr("none of which fits in memory"));
}

// One choice that does not fit is told as that, and not as the fastest.
TEST(OpenSettings, OneChoiceThatDoesNotFitIsToldSo) {
  const auto study =
      value_of(loaded("open: [micro_batch]\n", {{"strategy.global_batch", "4"},
                                                {"cluster.node",
                                                 "{extends: dgx-a100-80gb, device: {extends: "
                                                 "A100-SXM-80GB, memory: 2 GiB}}"}}));
  EXPECT_EQ(study.settled->fits, 0);
  EXPECT_THAT(study.settled->message, HasSubstr("none of which fits in memory"));
}

TEST(OpenSettings, AreClosedByTheCommandLine) {
  const auto study =
      value_of(loaded("open: [micro_batch, recompute]\n", {{"strategy.micro_batch", "1"}}));
  EXPECT_EQ(study.strategy.micro_batch, 1);
  EXPECT_THAT(study.open, ElementsAre(OpenSetting::kRecompute));
}

TEST(OpenSettings, AreLeftToSearches) {
  EXPECT_FALSE(value_of(loaded("open: [micro_batch]\n", {}, false)).settled);
}

TEST(OpenSettings, NameWhatIsWrong) {
  EXPECT_THAT(message_of(loaded("open: [colour]\n")), HasSubstr("micro_batch"));
}

}  // namespace
}  // namespace foreshard::study
