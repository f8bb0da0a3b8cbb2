// The shipped sweeps: what they print.
#include <gtest/gtest.h>
#include <string>

#include "tests/golden/golden.h"

#include "sim/sweep/output.h"
#include "sim/sweep/run.h"

namespace foreshard::sweep {
namespace {

void expect_shipped(const std::string& name) {
  const yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
  auto sweep = load_sweep(name, options);
  ASSERT_TRUE(sweep) << sweep.error().message;
  const auto result =
      run_sweep({.sweep = *std::move(sweep), .catalogue = options.catalogue, .version = "test"},
                {.threads = 2});
  ASSERT_TRUE(result) << result.error().message;
  expect_golden("sweeps/" + name + ".txt",
                sweep_text(result->results, ranking_of(result->results), 100));
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

}  // namespace
}  // namespace foreshard::sweep
