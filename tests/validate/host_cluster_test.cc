// Two cores of this machine as a cluster: calibrated on microbenchmarks and the data-parallel study
// alone, the simulator predicts the other strategies' measured steps.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"

namespace foreshard {
namespace {

constexpr double kLimitPercent = 15;
constexpr double kShortestStep = 0.2;  // seconds; below, the noise of a host counts too much
constexpr int kRepeats = 10;

TEST(HostCluster, PredictsStrategiesThatItWasNotCalibratedOn) {
#ifndef FORESHARD_HOST_REPLAY
  GTEST_SKIP() << "this build has no host replay: MPI or BLAS was not found";
#endif
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "two ranks need two cores, this machine has "
                 << std::thread::hardware_concurrency();
  const TemporaryFolder folder;
  // FORESHARD_VALIDATION_DIR: where the files are to be kept.
  const char* keep = std::getenv("FORESHARD_VALIDATION_DIR");
  const std::string out = keep != nullptr ? keep : folder.path().string();
  const cli::Outcome outcome = cli::foreshard(
      "validate --host configs/studies/host-dp2.yaml configs/studies/host-tp2.yaml "
      "configs/studies/host-pp2.yaml configs/studies/host-zero3.yaml --repeats " +
      std::to_string(kRepeats) + " --max-error 15% -o '" + out + "'");
  std::printf("%s\n", outcome.out.c_str());
  ASSERT_TRUE(outcome.code == 0 || outcome.code == 4) << outcome.code << "\n" << outcome.err;

  const auto json = nlohmann::json::parse(cli::text_of(out + "/validation.json"));
  ASSERT_EQ(json["studies"].size(), 4u);
  EXPECT_EQ(json["studies"][0]["blind"], false);
  for (std::size_t i = 1; i < 4; ++i) {
    const auto& study = json["studies"][i];
    const std::string name = study["study"];
    const double spread = study["measured"]["spread_pct"];
    const double error = study["after"]["error_pct"];
    EXPECT_EQ(study["blind"], true) << name;
    EXPECT_EQ(study["repeats"], kRepeats) << name;
    EXPECT_GE(study["measured"]["step_s"].get<double>(), kShortestStep) << name;
    EXPECT_LE(std::abs(error), std::max(kLimitPercent, 2 * spread))
        << name << ", spread " << spread << " %\n"
        << cli::text_of(std::filesystem::path(out) / name / "after.txt");
  }
  if (!testing::Test::HasFailure()) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

}  // namespace
}  // namespace foreshard
