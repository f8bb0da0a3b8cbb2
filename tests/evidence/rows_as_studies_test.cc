// A measured row is predicted as `simulate` predicts its study: the same time, memory and interval,
// to the last digit. The measurements are not part of the project: without them the test says so
// and is skipped.

#include "base/csv.h"
#include "base/file.h"
#include "base/hash.h"
#include "evidence/accuracy.h"
#include "evidence/training.h"
#include "tests/evidence/tables.h"
#include "tests/seeds.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::accuracy {
namespace {

const std::filesystem::path kMeasurements = FORESHARD_SOURCE_DIR "/../shared/data";

std::vector<TrainingRow> all_rows(const RowFormat& format) {
  std::vector<TrainingRow> rows;
  for (const char* folder : {"training", "training-2"}) {
    for (const auto& file : std::filesystem::directory_iterator(kMeasurements / folder)) {
      const auto text = read_file(file.path(), 64_MiB);
      const auto table = read_csv(*text, file.path().string());
      if (!table || !table->column("model_name")) continue;
      const auto read = value_of(read_training(*table, format, file.path().string()));
      for (const TrainingRow& row : read)
        if (row.fault.empty() && !part_named(row.metric)) rows.push_back(row);
    }
  }
  std::ranges::sort(rows, {}, [](const TrainingRow& row) {
    return std::pair(std::hash<std::string>{}(row.id), row.metric);
  });
  return rows;
}

// What `simulate` says of the study in a file.
Result<sim::Prediction> simulated(const std::filesystem::path& file,
                                  const std::vector<std::filesystem::path>& catalogue) {
  FORESHARD_ASSIGN(const auto study, study::load_study({.study = file}, {.catalogue = catalogue}));
  FORESHARD_ASSIGN(auto run, study::run_study(study, {}));
  return std::move(run.prediction);
}

TEST(RowsAsStudies, AreWhatSimulateSays) {
  if (!std::filesystem::exists(kMeasurements))
    GTEST_SKIP() << "no measurements at " << kMeasurements;
  const Tables tables;
  const std::vector<std::filesystem::path> catalogue{FORESHARD_SOURCE_DIR "/configs"};
  yaml::Loader loader({.catalogue = catalogue});
  auto communication = loader.read_ref<comm::Parameters>("nccl", "communication");
  auto errors = study::read_parameter_errors(loader);
  ASSERT_TRUE(communication && errors);
  const Context context{.catalogue = catalogue,
                        .communication = *std::move(communication),
                        .errors = *std::move(errors)};
  const auto format = value_of(loader.read_ref<RowFormat>("training-steps"));
  std::vector<TrainingRow> rows = all_rows(format);
  rows.resize(std::min(rows.size(), seeds<std::size_t>(200, 100'000)));
  std::size_t compared = 0;
  for (const TrainingRow& row : rows) {
    const Outcome outcome = evaluate(row, format, context);
    if (outcome.status != RowStatus::kOk) continue;
    const auto text = value_of(study_text(row, format, catalogue), row.id);
    const auto prediction = simulated(tables.write("row.yaml", text), catalogue);
    ASSERT_TRUE(prediction) << row.id << ": " << prediction.error().message << text;
    if (outcome.quantity == Quantity::kTime) {
      EXPECT_EQ(*outcome.predicted, prediction->step.in_base()) << row.id;
      EXPECT_EQ(*outcome.low, prediction->low.in_base()) << row.id;
      EXPECT_EQ(*outcome.high, prediction->high.in_base()) << row.id;
    } else if (row.notes.find("of the logging rank") == std::string::npos) {
      const auto& fullest = prediction->classes[static_cast<std::size_t>(prediction->worst_memory)];
      // What a tool shows of a device holds the reserve, too.
      const bool of_device = row.notes.find(" in use") != std::string::npos;
      const Bytes beside = of_device ? prediction->memory_reserve : 0_B;
      EXPECT_EQ(*outcome.predicted, (fullest.memory.peak + beside).in_base()) << row.id;
    }
    ++compared;
  }
  RecordProperty("compared", std::to_string(compared));
  EXPECT_GE(compared, rows.size() * 8 / 10);
}

}  // namespace
}  // namespace foreshard::accuracy
