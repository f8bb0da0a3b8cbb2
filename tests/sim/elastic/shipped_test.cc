// The shipped time lines: what they print.

#include "tests/golden/golden.h"
#include "tests/test.h"

#include "sim/elastic/run.h"

namespace foreshard::elastic {
namespace {

TEST(ShippedElastic, Llama2OnSixteenNodes) {
  const yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
  const auto timeline = value_of(load_timeline("llama2-70b-h100-128", options));
  const auto result =
      value_of(run_elastic(timeline, {.catalogue = options.catalogue, .progress = {}}));
  expect_golden("elastic/llama2-70b-h100-128.txt", elastic_text(result));
}

}  // namespace
}  // namespace foreshard::elastic
