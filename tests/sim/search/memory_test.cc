#include "sim/search/internal/memory.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace foreshard::search {
namespace {

std::vector<std::int64_t> kept(const char* schedule, std::int64_t stages, std::int64_t chunks,
                               std::int64_t micro_batches) {
  Strategy strategy;
  strategy.schedule = schedule;
  strategy.pipeline_parallel = stages;
  strategy.virtual_stages = chunks;
  strategy.global_batch = micro_batches;
  const auto passes = kept_passes(strategy);
  std::vector<std::int64_t> all;
  if (!passes) return all;
  for (const auto& stage : *passes)
    all.push_back(std::ranges::max_element(stage, {}, &KeptPasses::all)->all);
  return all;
}

// 1F1B: min(p - s, m).
TEST(KeptPasses, OneForwardOneBackward) {
  EXPECT_EQ(kept("1f1b", 4, 1, 8), (std::vector<std::int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(kept("1f1b", 4, 1, 2), (std::vector<std::int64_t>{2, 2, 2, 1}));
}

TEST(KeptPasses, GpipeKeepsAll) {
  EXPECT_EQ(kept("gpipe", 4, 1, 8), (std::vector<std::int64_t>{8, 8, 8, 8}));
}

// Interleaved: min(2 (p - 1 - s) + (v - 1) p + 1, m v) passes of a chunk each.
TEST(KeptPasses, InterleavedKeepsTheWarmUpAndOne) {
  EXPECT_EQ(kept("interleaved", 4, 2, 8), (std::vector<std::int64_t>{11, 9, 7, 5}));
  EXPECT_EQ(kept("interleaved", 4, 2, 4), (std::vector<std::int64_t>{8, 8, 7, 5}));
}

}  // namespace
}  // namespace foreshard::search
