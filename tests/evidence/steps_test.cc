// A user's own measured steps: how a table is read, and that its file narrows the intervals of
// steps like them.
#include "evidence/steps.h"

#include <fmt/format.h>

#include "evidence/accuracy.h"
#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::accuracy {
namespace {

constexpr const char* kStudy =
    "cluster: {name: one, node: dgx-h100}\n"
    "model: {name: small, layers: 4, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 2048}\n"
    "strategy: {data_parallel: 8, micro_batch: 1, global_batch: 8, framework: generic}\n";

sim::Prediction prediction_of(const std::filesystem::path& file) {
  const auto study = value_of(study::load_study({.study = file}, shipped_options()));
  return value_of(study::run_study(study, {})).prediction;
}

Report score_of(const std::filesystem::path& table) {
  return value_of(score({table}, {.catalogue = shipped_options().catalogue}));
}

TEST(Steps, NarrowTheIntervalsOfStepsLikeThem) {
  const TemporaryFolder folder;
  const auto study = folder.write("study.yaml", kStudy);
  const sim::Prediction before = prediction_of(study);
  std::string text = "study,seconds\n";
  for (const double factor : {1.18, 1.2, 1.19, 1.21, 1.2, 1.22, 1.2, 1.2, 1.19, 1.21})
    text += fmt::format("study.yaml,{}\n", factor * before.step.in_base());
  const Report report = score_of(folder.write("steps.csv", text));
  ASSERT_EQ(report.overall.ok, 10);
  EXPECT_EQ(report.rows[0].predicted, before.step.in_base());
  const auto mine = folder.write("mine.yaml", to_yaml(steps_of(report)));

  const auto with = folder.write("with.yaml", std::string(kStudy) + "measured_steps: mine.yaml\n");
  const sim::Prediction after = prediction_of(with);
  EXPECT_EQ(after.step, before.step);
  EXPECT_LT(after.high / after.low, before.high / before.low);
  EXPECT_GT(after.high, 1.2 * after.step);
  EXPECT_EQ(after.interval_source.measurements, before.interval_source.measurements + 10);
}

TEST(Steps, WrittenAreReadBack) {
  study::MeasuredStepCollector steps;
  const study::StepKind kind{.framework = "a \"quoted\": name",
                             .family = "",
                             .device = "#x",
                             .generation = "",
                             .precision = "fp8",
                             .model = "dense",
                             .trained = "adapters",
                             .devices = "up to 8"};
  steps.add("t.csv", kind, 1.25);
  steps.add("t.csv", kind, 0.5);
  const TemporaryFolder folder;
  const auto file = folder.write("mine.yaml", to_yaml(steps.collected()));
  yaml::Loader loader(shipped_options());
  const auto read = value_of(loader.read_ref<study::MeasuredSteps>(file.string()));
  ASSERT_EQ(read.groups.size(), 1U);
  EXPECT_EQ(read.groups[0].kind, kind);
  EXPECT_EQ(read.groups[0].steps, 2);
  EXPECT_THAT(read.groups[0].ratios, ElementsAre(0.5, 1.25));
}

TEST(Steps, ThatCannotBeReadCostOnlyTheirRow) {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const Report report = score_of(folder.write("steps.csv",
                                              "study,seconds\n"
                                              "study.yaml,0\n"
                                              "absent.yaml,1\n"
                                              "study.yaml,1\n"));
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].status, RowStatus::kUnsupported);
  EXPECT_THAT(report.rows[0].reason, HasSubstr("column 'seconds'"));
  EXPECT_EQ(report.rows[1].status, RowStatus::kUnsupported);
  EXPECT_THAT(report.rows[1].reason, HasSubstr("absent.yaml"));
  EXPECT_EQ(report.rows[2].status, RowStatus::kOk);
  EXPECT_EQ(steps_of(report).groups.size(), 1U);
}

}  // namespace
}  // namespace foreshard::accuracy
