// Schedules of stages that take several micro-batches in a pass: by hand, then plans of them held
// to all invariants.

#include "tests/strategies/plan/tiny_parts.h"
#include "tests/test.h"

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule::granular_test {

using Taken = std::vector<std::int64_t>;

std::string text(const std::vector<Slot>& slots) {
  std::string out;
  for (const Slot& slot : slots)
    out += (out.empty() ? "" : " ") +
           std::string(slot.direction == Direction::kForward ? "F" : "B") +
           std::to_string(slot.micro_batch);
  return out;
}

// The last stage takes them one by one and is one ahead; the first is two more ahead: two passes of
// two are the least that makes three.
TEST(Granular, CoarseStageBeforeAFineOne) {
  const Table table = granular_one_f_one_b({2, 1}, 6);
  EXPECT_EQ(text(table[0]), "F0 F2 B0 F4 B2 B4");
  EXPECT_EQ(text(table[1]), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
}

TEST(Granular, FineStageBeforeACoarseOne) {
  const Table table = granular_one_f_one_b({1, 2}, 6);
  EXPECT_EQ(text(table[0]), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  EXPECT_EQ(text(table[1]), "F0 B0 F2 B2 F4 B4");
}

TEST(Granular, OfSingleMicroBatchesIs1F1B) {
  for (std::int32_t stages = 1; stages <= 5; ++stages)
    for (std::int32_t micro_batches = 1; micro_batches <= 8; ++micro_batches)
      EXPECT_EQ(granular_one_f_one_b(Taken(static_cast<std::size_t>(stages), 1), micro_batches),
                *table_of("1f1b", {.stages = stages, .micro_batches = micro_batches}));
}

// All ways in which up to four stages take 1, 2, 4 or 8 of eight: none waits for ever, every
// message is read, and every micro-batch passes everywhere.
TEST(Granular, PlansKeepTheInvariants) {
  int plans = 0;
  for (std::int64_t stages = 2; stages <= 4; ++stages) {
    for (int code = 0; code < 1 << (2 * stages); ++code) {
      Strategy strategy = plan::tiny_strategy(stages, 8);
      for (std::int64_t s = 0; s < stages; ++s)
        strategy.granularity.push_back(std::int64_t{1} << (code >> (2 * s) & 3));
      const auto made = plan::planned(plan::tiny_parts(strategy, 6), strategy);
      ASSERT_FALSE(testing::Test::HasFailure()) << testing::PrintToString(strategy.granularity);
      for (std::size_t s = 0; s < made.roles.size(); ++s)
        EXPECT_EQ(made.roles[s].together, strategy.granularity[s]);
      ++plans;
    }
  }
  EXPECT_EQ(plans, 16 + 64 + 256);
}

// What the first stage makes of two micro-batches goes in two messages.
TEST(Granular, MessagesAreOfTheStageThatTakesFewer) {
  Strategy strategy = plan::tiny_strategy(2, 2);
  strategy.granularity = {2, 1};
  EXPECT_EQ(plan::to_text(plan::planned(plan::tiny_parts(strategy, 2), strategy)),
            "tiny\n"
            "states over data(1): nothing is cut\n"
            "stage 0: embedding, layer 0, 2 micro-batches a pass\n"
            " F0\n"
            "   0 forward embedding, layer 0 +kept\n"
            "   1 send layer_out -> stage 1 < 0\n"
            "   2 send layer_out -> stage 1 < 0\n"
            " B0\n"
            "   3 receive d.layer_out <- stage 1\n"
            "   4 receive d.layer_out <- stage 1\n"
            "   5 backward layer 0, embedding < 3 4 -kept\n"
            " end\n"
            "   6 optimizer < 5\n"
            "stage 1: layer 1, head\n"
            " F0\n"
            "   0 receive layer_out <- stage 0\n"
            "   1 forward layer 1, head < 0 +kept\n"
            " B0\n"
            "   2 backward head, layer 1 -kept\n"
            "   3 send d.layer_out -> stage 0 < 2\n"
            " F1, B1: as F0, B0\n"
            " end\n"
            "   8 optimizer < 6\n");
}

}  // namespace foreshard::schedule::granular_test
