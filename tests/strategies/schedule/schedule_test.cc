// Orders worked by hand, and the messages.
#include "strategies/schedule/schedule.h"

#include "tests/test.h"

#include "strategies/schedule/actions.h"
#include "strategies/schedule/walk.h"

namespace foreshard::schedule::schedule_test {

// "F0 F1 B0" of one stage, as schedule_actions have it.
std::string text(std::string_view name, const PipelineShape& shape, std::size_t stage = 0) {
  const auto table = table_of(name, shape);
  if (!table) return table.error().message;
  std::string out;
  for (const Slot& slot : (*table)[stage])
    out += (out.empty() ? "" : " ") +
           to_text(slot, shape, find_schedule(name)->placement, static_cast<std::int32_t>(stage));
  return out;
}

TEST(Gpipe, RunsBackwardInReverse) {
  EXPECT_EQ(text("gpipe", {.stages = 2, .micro_batches = 3}), "F0 F1 F2 B2 B1 B0");
}

// Figure 4 (top) of the Megatron-LM paper has 4 stages and 8 micro-batches; here 4 of them.
TEST(OneFOneB, WarmsUpByTheStagesBehind) {
  const PipelineShape shape{.stages = 4, .micro_batches = 4};
  EXPECT_EQ(text("1f1b", shape, 0), "F0 F1 F2 F3 B0 B1 B2 B3");
  EXPECT_EQ(text("1f1b", shape, 2), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text("1f1b", shape, 3), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(text("1f1b", {.stages = 4, .micro_batches = 2}), "F0 F1 B0 B1");
}

// Two stages with two chunks, two micro-batches: pieces 0 and 2 on stage 0, 1 and 3 on stage 1.
// Stage 1 warms up with 0 + 2 passes, stage 0 with 2 + 2, which are all. Backward starts in the
// last piece.
TEST(InterleavedOneFOneB, TurnsThroughTheChunks) {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 2};
  EXPECT_EQ(text("interleaved", shape, 1), "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1");
  EXPECT_EQ(text("interleaved", shape, 0), "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
}

TEST(BreadthFirst, RunsAllMicroBatchesThroughAChunk) {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 2};
  EXPECT_EQ(text("breadth-first", shape, 1), "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1");
}

// Figure 2 of the zero-bubble paper has 4 stages and 8 micro-batches; here 5 of them. On the last
// stage weight gradients are 3 micro-batches behind.
TEST(ZeroBubble, PutsWeightGradientsBehindByTheStagesBefore) {
  const PipelineShape shape{.stages = 4, .micro_batches = 5};
  EXPECT_EQ(text("zb-h1", shape, 0), "F0 F1 F2 F3 I0 W0 F4 I1 W1 I2 W2 I3 W3 I4 W4");
  EXPECT_EQ(text("zb-h1", shape, 3), "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 W2 W3 W4");
  EXPECT_EQ(text("zb-h2", {.stages = 2, .micro_batches = 4}, 0),
            "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  EXPECT_EQ(text("zb-h2", {.stages = 2, .micro_batches = 4}, 1),
            "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
}

// Two stages: pieces 0 and 3 on stage 0, 1 and 2 on stage 1, where the V turns.
TEST(ZeroBubbleV, ComesBackThroughTheSameStages) {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 3};
  EXPECT_EQ(text("zb-v", shape, 0),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(text("zb-v", shape, 1),
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2");
}

// --- a user's own ------------------------------------------------------------------------------

std::string fault_of_actions(const std::vector<std::string>& stages, const PipelineShape& shape) {
  const auto fault = read_actions(stages, shape).fault;
  return fault
             ? "stage " + std::to_string(fault->stage) + " " + fault->message + " | " + fault->help
             : "";
}

// B is a whole backward pass, or the gradients of inputs where those of weights are listed.
TEST(Actions, AreReadAsTheyAreWritten) {
  const PipelineShape shape{.stages = 2, .micro_batches = 2};
  const Actions read =
      read_actions(std::vector<std::string>{"F0 F1 B0 W0 B1", "F0,B0,,F1,I1,W1"}, shape);
  ASSERT_FALSE(read.fault) << read.fault->message;
  using enum Direction;
  EXPECT_EQ(read.table[0], (std::vector<Slot>{{kForward, 0, 0},
                                              {kForward, 0, 1},
                                              {kBackward, 0, 0, PassPart::kInput},
                                              {kBackward, 0, 0, PassPart::kWeight},
                                              {kBackward, 0, 1}}));
  EXPECT_EQ(read.table[1].back(), (Slot{kBackward, 0, 1, PassPart::kWeight}));
}

// What torch.distributed.pipelining writes of two ranks with two stages each, in a V and in turn;
// the first has an action of two passes that overlap there.
TEST(Actions, AreThoseOfTorchPipelining) {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 1};
  const Actions v = read_actions(
      std::vector<std::string>{"0F0,,,3F0,3I0,,,0I0,0W0,3W0", ",1F0,2F0,,,2B0,1B0"}, shape);
  ASSERT_FALSE(v.fault) << v.fault->message;
  EXPECT_EQ(v.placement, StagePlacement::kV);
  const Actions wrapped =
      read_actions(std::vector<std::string>{"0F0,,2F0,,,2B0,,0B0", ",1F0,,3F0,3B0,,1B0"}, shape);
  ASSERT_FALSE(wrapped.fault) << wrapped.fault->message;
  EXPECT_EQ(wrapped.placement, StagePlacement::kWrap);
  const Actions overlapped =
      read_actions(std::vector<std::string>{"0F0,(0F1;0B0)OVERLAP_F_B,0B1", "1F0,1B0,1F1,1B1"},
                   {.stages = 2, .micro_batches = 2});
  EXPECT_FALSE(overlapped.fault) << overlapped.fault->message;
  EXPECT_FALSE(overlapped.table[0][2].beside);
}

// Side by side only where that is asked for, and only what does not wait for the other.
TEST(Actions, RunSideBySide) {
  const PipelineShape shape{.stages = 2, .micro_batches = 2, .pairs = true};
  const Actions read = read_actions(
      std::vector<std::string>{"0F0,(0F1;0B0)OVERLAP_F_B,0B1", "1F0,1B0,1F1,1B1"}, shape);
  ASSERT_FALSE(read.fault) << read.fault->message;
  EXPECT_TRUE(read.table[0][2].beside);
  EXPECT_EQ(fault_of_actions({"F0 F1 (B1;B0)OVERLAP_F_B", "F0 B0 F1 B1"}, shape),
            "stage 0 B0 cannot run beside B1 | let a forward pass, and behind it the backward pass "
            "of another micro-batch, overlap");
  EXPECT_THAT(fault_of_actions({"F0 (F1;B1)OVERLAP_F_B B0", "F0 F1 B0 B1"}, shape),
              HasSubstr("B1 cannot run beside F1"));
  EXPECT_THAT(fault_of_actions({"OVERLAP_F_B F0 F1 B0 B1", "F0 B0 F1 B1"}, shape),
              HasSubstr("has no passes before it"));
  // F1 is handed on behind B0, which stage 1 makes behind F1.
  EXPECT_THAT(fault_of_actions({"F0 (F1;B0)OVERLAP_F_B B1", "F0 F1 B0 B1"}, shape),
              HasSubstr("waits for ever at B0"));
}

TEST(Actions, NameStagePassAndRemedy) {
  const PipelineShape shape{.stages = 2, .micro_batches = 2};
  EXPECT_EQ(fault_of_actions({"F0 F1 W0 I0 I1 W1", "F0 B0 F1 B1"}, shape),
            "stage 0 W0 runs before I0, whose gradients it reads | move W0 behind I0");
  EXPECT_EQ(fault_of_actions({"F0 B0 F1 B1", "F1 B1 F0 B0"}, shape),
            "stage 0 waits for ever at B0: stage 1 comes to B0 behind F1, where it waits too | let "
            "stage 1 run B0 before F1");
  EXPECT_EQ(fault_of_actions({"F0 B0 F1", "F0 B0 F1 B1"}, shape),
            "stage 0 never runs B1 | add it: each micro-batch, 0 to 1, goes forward and backward "
            "once");
  EXPECT_THAT(fault_of_actions({"F0 I0 F1 B1", "F0 B0 F1 B1"}, shape), HasSubstr("never runs W0"));
  EXPECT_THAT(fault_of_actions({"F0 F0 B0 F1 B1", "F0 B0 F1 B1"}, shape), HasSubstr("runs twice"));
  EXPECT_THAT(fault_of_actions({"B0 F0 F1 B1", "F0 B0 F1 B1"}, shape),
              HasSubstr("B0 runs before F0, whose activations it reads"));
  EXPECT_THAT(fault_of_actions({"F0 B0 F5 B5", "F0 B0 F1 B1"}, shape),
              AllOf(HasSubstr("F5 is of no micro-batch of the 2"), HasSubstr("global_batch")));
  EXPECT_THAT(fault_of_actions({"F0 X0", ""}, shape), HasSubstr("'X0' is no pass"));
  EXPECT_THAT(fault_of_actions({"F0 0SEND_F0", ""}, shape), HasSubstr("'0SEND_F0' is no pass"));
  EXPECT_THAT(fault_of_actions({"0F0 1B0", ""}, shape),
              HasSubstr("'1B0' is of no piece of the stage"));
  EXPECT_THAT(fault_of_actions({"F0 B0 F1 B1"}, shape),
              AllOf(HasSubstr("has 1 stages, not 2"), HasSubstr("pipeline_parallel: 1")));
}

TEST(Schedule, NamesTheFaultAndTheRemedy) {
  EXPECT_THAT(text("zigzag", {}),
              AllOf(HasSubstr("no schedule is called 'zigzag'"), HasSubstr("gpipe, interleaved")));
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

}  // namespace foreshard::schedule::schedule_test
