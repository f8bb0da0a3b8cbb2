// The fit of the communication library's numbers: known numbers come back from rows that the model
// itself made, bad tables are clear errors, halves follow their rule.
#include "validate/calibrate/collective_fit.h"

#include <fmt/format.h>

#include "tests/test.h"

#include "validate/tables/collective_rows.h"

namespace foreshard::calibrate {
namespace {

const std::vector<std::filesystem::path> kCatalogue{FORESHARD_SOURCE_DIR "/configs"};

const std::string kHeader =
    "id,source,machine,gpu,num_gpus,nodes,gpus_per_node,intra_link,inter_net,nccl_version,op,dtype,"
    "bytes,time_us\n";

std::string row(const std::string& machine, const std::string& gpu, int gpus, double bytes,
                double time_us) {
  return fmt::format("{}-{},test,{},{},{},1,{},NVSwitch,,,all_reduce,half,{:.0f},{:.9g}\n", machine,
                     gpus, machine, gpu, gpus, gpus, bytes, time_us);
}

std::filesystem::path written(const std::string& text) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const auto path =
      std::filesystem::path(testing::TempDir()) / (std::string(test->name()) + ".csv");
  std::ofstream(path) << text;
  return path;
}

// All_reduces of 2, 4 and 8 GPUs, each size with a time of 1 us.
std::string rows_of(const std::string& machine, const std::string& gpu) {
  std::string text;
  for (const int gpus : {2, 4, 8})
    for (double bytes = 1024; bytes < 2e9; bytes *= 4) text += row(machine, gpu, gpus, bytes, 1);
  return text;
}

comm::Parameters start() {
  yaml::Loader loader({.catalogue = kCatalogue});
  return value_of(loader.read_ref<comm::Parameters>("nccl-start", "start"));
}

TEST(CollectiveFit, RecoversTheNumbersThatMadeTheRows) {
  auto input = value_of(
      read_input({written(kHeader + rows_of("A", "A100-SXM4-80GB"))}, kCatalogue, start()));
  comm::Parameters truth = start();
  for (auto& form : truth.forms) {
    form.base = 1.4 * form.base;
    form.hop.nvlink = 1.2 * form.hop.nvlink;
    form.efficiency.nvlink *= 0.9;
  }
  const auto made = value_of(predictions(input, truth));
  std::size_t next = 0;
  for (const auto& group : input.groups)
    for (auto& one : group->rows) one.measured = made[next++].predicted.value();

  const auto fitted = value_of(fit(input, start()));
  EXPECT_LT(fitted.cost_after, fitted.cost_before / 10);
  const auto again = value_of(predictions(input, fitted.parameters));
  std::vector<double> errors;
  for (const auto& one : again) errors.push_back(std::abs(*one.predicted / *one.measured - 1));
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.03);
  EXPECT_LT(errors.back(), 0.15);

  EXPECT_EQ(to_yaml(fitted.parameters, ""), to_yaml(value_of(fit(input, start())).parameters, ""));
}

TEST(CollectiveFit, WhatItWritesIsWhatTheSimulatorReads) {
  value_of(read_input({written(kHeader + rows_of("A", "A100-SXM4-80GB"))}, kCatalogue, start()));
  const std::string text = to_yaml(start(), "# header\n");
  const auto path = std::filesystem::path(testing::TempDir()) / "calibrated.yaml";
  std::ofstream(path) << text;
  yaml::Loader loader({.catalogue = kCatalogue});
  const auto read = value_of(loader.read_ref<comm::Parameters>(path.string(), "communication"));
  EXPECT_EQ(to_yaml(read, "# header\n"), text);
}

// All-reduces tell nothing of what an all-to-all's channel copies: an A100 (1.41 GHz) keeps its
// clock's part of the common rate, which holds at 2 GHz. A flag beside the data makes LL wait, not
// copy.
TEST(CollectiveFit, AChannelsRateGoesWithTheClock) {
  auto input = value_of(
      read_input({written(kHeader + rows_of("A", "A100-SXM4-80GB"))}, kCatalogue, start()));
  const auto fitted = value_of(fit(input, start()));
  const auto of_common = [&](const std::string& name) {
    double own = 0;
    double common = 0;
    for (const auto& number : fitted.numbers)
      if (number.name == name) (number.generation.empty() ? common : own) = number.value;
    return own / common;
  };
  EXPECT_NEAR(of_common("pairwise Simple rate of a channel"), 19.5e12 / (2 * 64 * 108) / 2e9, 1e-3);
  EXPECT_NEAR(of_common("pairwise LL rate of a channel"), 1, 1e-3);
}

TEST(CollectiveFit, EveryGenerationOfTwoMachinesIsInBothHalves) {
  const auto input = value_of(read_input(
      {written(kHeader + rows_of("A", "A100-SXM4-80GB") + rows_of("B", "A100-SXM4-80GB") +
               rows_of("C", "H100-SXM5-80GB") + rows_of("D", "H100-SXM5-80GB"))},
      kCatalogue, start()));
  const auto halves = halves_of(input);
  EXPECT_NE(halves.at("A"), halves.at("B"));
  EXPECT_NE(halves.at("C"), halves.at("D"));
}

TEST(Exclusions, AreFewAndEachHasItsReason) {
  const auto list =
      value_of(yaml::Loader({.catalogue = kCatalogue})
                   .read_ref<accuracy::Exclusions>("excluded-collectives", "exclusions"));
  for (const auto& one : list.rows) EXPECT_GT(one.reason.size(), 20u) << one.source;

  const std::filesystem::path folder = FORESHARD_SOURCE_DIR "/../shared/data/collectives";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no measurements in " << folder;
  std::vector<std::filesystem::path> tables;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    tables.push_back(entry.path());
  const auto input = value_of(read_input(tables, kCatalogue, start()));
  EXPECT_LE(static_cast<double>(input.excluded),
            0.05 * static_cast<double>(input.excluded + input.rows));
}

TEST(CollectiveFit, BadTablesAreClearErrors) {
  EXPECT_THAT(message_of(read_input({written("a,b\n1,2\n")}, kCatalogue, start())),
              HasSubstr("not a table of collectives"));
  EXPECT_THAT(message_of(read_input({written(kHeader)}, kCatalogue, start())),
              HasSubstr("no row to fit to"));
}

}  // namespace
}  // namespace foreshard::calibrate
