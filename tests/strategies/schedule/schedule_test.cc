// Orders worked by hand, and the messages.
#include "strategies/schedule/schedule.h"

#include <gmock/gmock.h>
#include <string>

namespace foreshard::schedule {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// "F0 F1 B0": with more than one chunk "F0.1" is micro-batch 0 of chunk 1.
std::string text(std::string_view name, const Shape& shape) {
  const auto slots = order(name, shape);
  if (!slots) return slots.error().message;
  std::string out;
  for (const Slot& slot : *slots) {
    if (!out.empty()) out += ' ';
    out += (slot.direction == Direction::kForward ? 'F' : 'B') + std::to_string(slot.micro_batch);
    if (shape.chunks > 1) out += '.' + std::to_string(slot.chunk);
  }
  return out;
}

TEST(Gpipe, RunsBackwardInReverse) {
  EXPECT_EQ(text("gpipe", {.stage = 0, .stages = 2, .micro_batches = 3}), "F0 F1 F2 B2 B1 B0");
}

// Figure 4 (top) of the Megatron-LM paper has 4 stages and 8 micro-batches; here 4 of them.
TEST(OneFOneB, WarmsUpByTheStagesBehind) {
  EXPECT_EQ(text("1f1b", {.stage = 0, .stages = 4, .micro_batches = 4}), "F0 F1 F2 F3 B0 B1 B2 B3");
  EXPECT_EQ(text("1f1b", {.stage = 2, .stages = 4, .micro_batches = 4}), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text("1f1b", {.stage = 3, .stages = 4, .micro_batches = 4}), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(text("1f1b", {.stage = 0, .stages = 4, .micro_batches = 2}), "F0 F1 B0 B1");
}

// Two stages with two chunks, two micro-batches. Stage 1 warms up with 0 + 2 passes, stage 0 with
// 2 + 2, which are all. Backward starts in the last chunk.
TEST(InterleavedOneFOneB, TurnsThroughTheChunks) {
  const Shape last{.stage = 1, .stages = 2, .chunks = 2, .micro_batches = 2};
  EXPECT_EQ(text("interleaved", last), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
  const Shape first{.stage = 0, .stages = 2, .chunks = 2, .micro_batches = 2};
  EXPECT_EQ(text("interleaved", first), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
}

TEST(Schedule, NamesTheFaultAndTheRemedy) {
  EXPECT_THAT(text("zigzag", {}), AllOf(HasSubstr("no schedule is called 'zigzag'"),
                                        HasSubstr("1f1b, gpipe, interleaved")));
  EXPECT_THAT(text("1f1b", {.stage = 4, .stages = 4}), HasSubstr("stage 4 is not one of the 4"));
  EXPECT_THAT(text("1f1b", {.stages = 0}), HasSubstr("at least 1 stage, got 0"));
  EXPECT_THAT(text("1f1b", {.micro_batches = 0}), HasSubstr("at least 1 micro-batch"));
  EXPECT_THAT(text("1f1b", {.chunks = 0}), HasSubstr("at least 1 chunk"));
  EXPECT_THAT(text("1f1b", {.stages = 2, .chunks = 2}), HasSubstr("use interleaved"));
  EXPECT_THAT(text("gpipe", {.stages = 2, .chunks = 2}), HasSubstr("use interleaved"));
  EXPECT_THAT(text("interleaved", {.stages = 2, .micro_batches = 2}), HasSubstr("use 1f1b"));
  EXPECT_THAT(text("interleaved", {.stages = 1, .chunks = 2}), HasSubstr("use 1f1b"));
  EXPECT_THAT(text("interleaved", {.stages = 4, .chunks = 2, .micro_batches = 6}),
              AllOf(HasSubstr("micro-batches (6) must be a multiple of the stages (4)"),
                    HasSubstr("change the global or the micro-batch size")));
  EXPECT_THAT(text("1f1b", {.stages = 2, .micro_batches = 2147483647}), HasSubstr("too many"));
}

}  // namespace
}  // namespace foreshard::schedule
