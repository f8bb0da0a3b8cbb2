// The shipped sweeps: what they print.

#include "tests/golden/golden.h"
#include "tests/test.h"

#include "sim/sweep/output.h"
#include "sim/sweep/run.h"

namespace foreshard::sweep {
namespace {

class ShippedSweep : public testing::TestWithParam<const char*> {};
TEST_P(ShippedSweep, IsAsItWas) {
  const std::string name = GetParam();
  const yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
  const auto result = value_of(run_sweep({.sweep = value_of(load_sweep(name, options)),
                                          .catalogue = options.catalogue,
                                          .version = "test"},
                                         {.threads = 2}));
  expect_golden("sweeps/" + name + ".txt",
                sweep_text(result.results, ranking_of(result.results), 100));
}
INSTANTIATE_TEST_SUITE_P(Sweeps, ShippedSweep,
                         testing::Values("adapters-70b", "llama3-70b-h100-512", "h100-b200-mi300x",
                                         "deepseek-v3-h800-2048", "slow-gpu-h100-1024",
                                         "mixtral-8x22b-h200-64", "llama3-8b-128k-h100-64",
                                         "llama3-405b-h100-16384", "lora-70b-h100-8",
                                         "largest-model-l40s-8"));

}  // namespace
}  // namespace foreshard::sweep
