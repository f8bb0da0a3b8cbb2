// `foreshard compare` as a shell runs it.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"
#include "tests/test.h"
#include "tests/validate/compare/perfect_replay.h"

#include "sim/study/run.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare::command_test {

using cli::foreshard;
using cli::Outcome;

constexpr const char* kStudy = "configs/studies/host-dp2.yaml";

measure::Measurement measurement() {
  const std::string file = std::string(FORESHARD_SOURCE_DIR "/") + kStudy;
  auto study = value_of(study::load_study({.study = file}, shipped_options()));
  const auto run = value_of(study::run_study(study, {.timeline = true}));
  return replayed(run.program, run.prediction);
}

Outcome compared(const measure::Measurement& measurement, const std::string& options = "") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "measured.json";
  EXPECT_TRUE(write_file(file, measure::to_json(measurement)).ok());
  return foreshard(std::string("compare ") + kStudy + " '" + file.string() + "' " + options);
}

TEST(CompareCommand, HoldsAPredictionAgainstAMeasurement) {
  const Outcome text = compared(measurement(), "--max-error 1%");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("error +0.0 %"));
  const Outcome json = compared(measurement(), "--format json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["schema"], "foreshard.comparison/1");
}

// Measured half as fast again: 1 / 1.5 - 1 = -33.3 %.
TEST(CompareCommand, FailsBeyondItsLimit) {
  measure::Measurement slow = measurement();
  for (measure::RankRecord& rank : slow.ranks)
    for (Seconds& step : rank.steps) step = 1.5 * step;
  const Outcome within = compared(slow, "--max-error 34%");
  EXPECT_EQ(within.code, 0) << within.err;
  const Outcome beyond = compared(slow, "--max-error 33%");
  EXPECT_EQ(beyond.code, 4);
  EXPECT_THAT(beyond.err, HasSubstr("the predicted step is 33.3 % off"));
}

TEST(CompareCommand, RefusesWhatIsNoMeasurementOfTheStudy) {
  measure::Measurement other = measurement();
  other.fingerprint = "0123456789abcdef";
  const Outcome outcome = compared(other);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("is of another Program"));
  const Outcome none = foreshard(std::string("compare ") + kStudy + " /nonexistent.json");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("/nonexistent.json"));
  const Outcome no_json = foreshard(std::string("compare ") + kStudy + " README.md");
  EXPECT_EQ(no_json.code, 2);
  EXPECT_THAT(no_json.err, HasSubstr("README.md: measurement: no JSON"));
  const Outcome limit = compared(measurement(), "--max-error much");
  EXPECT_EQ(limit.code, 2);
  EXPECT_THAT(limit.err, HasSubstr("'much' is not a percentage"));
}

TEST(ExportCommand, WritesArrivals) {
  const Outcome outcome = foreshard(std::string("export ") + kStudy + " --arrivals - --rank 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "foreshard.arrivals/1");
  EXPECT_EQ(json["rank"], 1);
  const Outcome beyond = foreshard(std::string("export ") + kStudy + " --arrivals - --rank 2");
  EXPECT_EQ(beyond.code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("there is no rank 2"));
}

// What a folder holds already is taken: no replay is needed. (Without calibration: one is enough.)
TEST(ValidateCommand, TakesUpWhatWasMeasured) {
  const TemporaryFolder folder;
  const auto at = folder.path() / "host-dp2";
  std::filesystem::create_directories(at);
  ASSERT_TRUE(write_file(at / "measurement.json", measure::to_json(measurement())).ok());
  const Outcome outcome =
      foreshard(std::string("validate ") + kStudy + " --host --no-calibrate --repeats 1 " +
                "--max-error 1% -o '" + folder.path().string() + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("host-dp2: measured"));
  EXPECT_THAT(outcome.out, HasSubstr("+0.0 %"));
  EXPECT_TRUE(std::filesystem::exists(at / "before.trace.json"));
  const auto json = nlohmann::json::parse(cli::text_of(folder.path() / "validation.json"));
  EXPECT_EQ(json["studies"][0]["after"], nullptr);

  // GPUs are another machine than processors: what these measured is not taken for those.
  const Outcome gpus = foreshard(std::string("validate ") + kStudy +
                                 " --launch /nonexistent/launcher --no-calibrate --repeats 1 -o '" +
                                 folder.path().string() + "'");
  EXPECT_EQ(gpus.code, 2) << gpus.out;
  EXPECT_THAT(gpus.err, HasSubstr("host-dp2: replaying"));
}

TEST(ValidateCommand, ReadsItsOptionsBeforeItMeasures) {
  for (const char* until : {"much", "0%", "100%", "-1%"}) {
    const Outcome outcome = foreshard(std::string("validate ") + kStudy +
                                      " --host -o /nonexistent/folder --until " + until);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("is not a percentage like '2%'")) << until;
  }
}

}  // namespace foreshard::compare::command_test
