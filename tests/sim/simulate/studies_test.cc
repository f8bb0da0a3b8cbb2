// fluid and SimGrid on the shipped studies, message by message.
#include <cstdio>

#include "tests/seeds.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study {
namespace {

constexpr std::int64_t kLargest = 128;  ///< Devices.
/// Devices x micro-batches (2,048: 2 million messages). Above, one micro-batch per stage must do:
/// every kind of task is there then.
const std::int64_t kMostPasses = seeds<std::int64_t>(512, 2048);

std::vector<std::string> shipped_studies() {
  std::vector<std::string> names;
  for (const auto& file :
       std::filesystem::directory_iterator(FORESHARD_SOURCE_DIR "/configs/studies"))
    names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedStudy : public testing::TestWithParam<std::string> {};

TEST_P(ShippedStudy, RunsAlikeOnBothEngines) {
  const std::string file = FORESHARD_SOURCE_DIR "/configs/studies/" + GetParam() + ".yaml";
  yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"},
                        .overrides = {{"cluster.routing", "ecmp-hash"}}};
  auto study = value_of(load_study({.study = file}, options));
  if (study.cluster.device_count() > kLargest)
    GTEST_SKIP() << study.cluster.device_count() << " devices are too many to run unfolded";
  if (study.disturbances)
    GTEST_SKIP() << "SimGrid knows neither reroutes nor links that recover (workload.h)";

  LoadedStudy reduced = std::move(study);
  Strategy& strategy = reduced.strategy;
  if (strategy.devices() * strategy.micro_batches() > kMostPasses) {
    strategy.global_batch =
        strategy.data_parallel * strategy.micro_batch * strategy.pipeline_parallel;
  }

  sim::SimulateOptions stepwise{.granularity = sim::Granularity::kStepwise, .timeline = true};
  const auto ours = value_of(run_study(reduced, stepwise));
  stepwise.engine = sim::EngineKind::kSimgrid;
  const auto theirs = value_of(run_study(reduced, stepwise));

  const auto& a = ours.prediction.timeline;
  const auto& b = theirs.prediction.timeline;
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double expected = b[i].finish.in_base();
    if (expected > 0)
      worst = std::max(worst, std::abs(a[i].finish.in_base() - expected) / expected);
  }
  EXPECT_LT(worst, 1e-6);
  std::printf("%zu tasks, %lld events, worst difference %.1e\n", a.size(),
              static_cast<long long>(ours.prediction.events), worst);
}

INSTANTIATE_TEST_SUITE_P(Shipped, ShippedStudy, testing::ValuesIn(shipped_studies()),
                         [](const auto& study) {
                           std::string name = study.param;
                           for (char& c : name) {
                             if (c == '-' || c == '.') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace foreshard::study
