// The shipped sweeps: what they print.

#include "tests/golden/golden.h"
#include "tests/test.h"

#include "sim/sweep/output.h"
#include "sim/sweep/run.h"

namespace foreshard::sweep {
namespace {

void expect_shipped(const std::string& name) {
  const yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
  auto sweep = value_of(load_sweep(name, options));
  const auto result = value_of(
      run_sweep({.sweep = std::move(sweep), .catalogue = options.catalogue, .version = "test"},
                {.threads = 2}));
  expect_golden("sweeps/" + name + ".txt",
                sweep_text(result.results, ranking_of(result.results), 100));
}

TEST(ShippedSweep, Adapters) {
  expect_shipped("adapters-70b");
}
TEST(ShippedSweep, OversubscribedH100) {
  expect_shipped("llama3-70b-h100-512");
}
TEST(ShippedSweep, MachinesPerUsd) {
  expect_shipped("h100-b200-mi300x");
}

TEST(ShippedSweep, DeepSeekV3) {
  expect_shipped("deepseek-v3-h800-2048");
}
TEST(ShippedSweep, SlowGpu) {
  expect_shipped("slow-gpu-h100-1024");
}
TEST(ShippedSweep, Mixtral) {
  expect_shipped("mixtral-8x22b-h200-64");
}
TEST(ShippedSweep, LongSequences) {
  expect_shipped("llama3-8b-128k-h100-64");
}
TEST(ShippedSweep, Precision) {
  expect_shipped("llama3-405b-h100-16384");
}
TEST(ShippedSweep, Adapters70B) {
  expect_shipped("lora-70b-h100-8");
}
TEST(ShippedSweep, LargestModel) {
  expect_shipped("largest-model-l40s-8");
}

}  // namespace
}  // namespace foreshard::sweep
