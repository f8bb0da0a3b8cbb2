// The shipped time lines: what they print.
#include <gtest/gtest.h>

#include "tests/golden/golden.h"

#include "sim/elastic/run.h"

namespace foreshard::elastic {
namespace {

TEST(ShippedElastic, Llama2OnSixteenNodes) {
  const yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
  const auto timeline = load_timeline("llama2-70b-h100-128", options);
  ASSERT_TRUE(timeline) << timeline.error().message;
  const auto result = run_elastic(*timeline, {.catalogue = options.catalogue, .progress = {}});
  ASSERT_TRUE(result) << result.error().message;
  expect_golden("elastic/llama2-70b-h100-128.txt", elastic_text(*result));
}

}  // namespace
}  // namespace foreshard::elastic
