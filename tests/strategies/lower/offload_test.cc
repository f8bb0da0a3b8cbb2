// Offloading to the host: what the plan does, what is copied and what stays, by hand.

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::offload_test {

using program::CollectiveKind;
using program::MemoryKind;

Model model() {
  return small_llama(4);
}

Strategy on(std::int64_t data_parallel, std::int64_t zero_stage = 0) {
  Strategy s = degrees(1, 1, data_parallel);
  s.zero_stage = zero_stage;
  return s;
}

program::Program lowered(const Strategy& strategy) {
  EXPECT_THAT(faults_in(strategy, model(), strategy.devices()), IsEmpty());
  EXPECT_EQ(message_of(plan::verify(value_of(plan_of(model(), strategy)))), "accepted");
  auto program = value_of(lower(model(), strategy, {}));
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return program;
}

// Bytes of each kind of operation with the host that a rank makes in a step.
std::map<CollectiveKind, double> with_host(const program::Program& program, std::size_t role = 0) {
  std::map<CollectiveKind, double> bytes;
  visit_tasks(program, program.roles[role], [&](const program::Task& task) {
    if (const auto* what = std::get_if<program::Communication>(&task.body);
        what != nullptr && program::is_with_host(what->kind))
      bytes[what->kind] += what->bytes.in_base();
  });
  return bytes;
}

// Of 4 layers 2 are offloaded, so 2 have room: layer 2 waits until layer 0 has gone, layer 3 for
// layer 1. On the way back layer 1 comes when layer 3 is done, layer 0 when layer 2 is.
TEST(OffloadedActivations, GoBehindTheirPassAndComeBackAheadOfIt) {
  Strategy s = on(1);
  s.offload_activation_layers = 2;
  const auto plan = value_of(plan_of(model(), s));
  EXPECT_THAT(plan::to_text(plan), HasSubstr(" F0\n"
                                             "   0 forward embedding +kept\n"
                                             "   1 forward layer 0 +kept\n"
                                             "   2 offload layer 0 < 1 -kept\n"
                                             "   3 forward layer 1 +kept\n"
                                             "   4 offload layer 1 < 3 -kept\n"
                                             "   5 forward layer 2 < 2 +kept\n"
                                             "   6 forward layer 3 < 4 +kept\n"
                                             "   7 forward head +kept\n"
                                             " B0\n"
                                             "   8 backward head -kept\n"
                                             "   9 backward layer 3 -kept\n"
                                             "  10 fetch layer 1 < 4 9 +kept\n"
                                             "  11 backward layer 2 -kept\n"
                                             "  12 fetch layer 0 < 2 11 +kept\n"
                                             "  13 backward layer 1 < 10 -kept\n"
                                             "  14 backward layer 0 < 12 -kept\n"
                                             "  15 backward embedding -kept\n"));
}

// All of them: one has room. The last one comes back as soon as it is there.
TEST(OffloadedActivations, OfAllLayersLeaveRoomForOne) {
  Strategy s = on(1);
  s.offload_activation_layers = 4;
  const auto plan = value_of(plan_of(model(), s));
  EXPECT_THAT(plan::to_text(plan), HasSubstr("   7 forward layer 3 < 6 +kept\n"
                                             "   8 offload layer 3 < 7 -kept\n"
                                             "   9 forward head +kept\n"
                                             " B0\n"
                                             "  10 fetch layer 3 < 8 9 +kept\n"
                                             "  11 backward head -kept\n"
                                             "  12 backward layer 3 < 10 -kept\n"
                                             "  13 fetch layer 2 < 6 12 +kept\n"));
}

TEST(OffloadedActivations, AreThoseOfTheFirstLayersOfEachStage) {
  Strategy s = on(1);
  s.pipeline_parallel = 2;
  s.global_batch = 3;
  s.offload_activation_layers = 1;
  const auto blocks = value_of(lower_blocks(model(), s));
  const double saved = blocks.layers.front().saved.in_base();
  const program::Program program = lowered(s);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const auto bytes = with_host(program, stage);
    EXPECT_EQ(bytes.at(CollectiveKind::kToHost), 3 * saved);
    EXPECT_EQ(bytes.at(CollectiveKind::kFromHost), 3 * saved);
  }
}

// 4 ranks of ZeRO 2 have a quarter of everything: gradients go down in fp32 as they are reduced,
// 34 bytes an element are read and written on the host, and 16-bit parameters come up.
TEST(OptimizerOnTheCpu, TakesGradientsAndGivesParameters) {
  Strategy s = on(4, 2);
  s.offload_optimizer = OptimizerOffload::kCpu;
  const program::Program program = lowered(s);
  const program::Program without = lowered(on(4, 2));
  const double shard = held(without, MemoryKind::kOptimizer) / 12;
  const auto bytes = with_host(program);
  EXPECT_EQ(bytes.at(CollectiveKind::kToHost), 4 * shard);
  EXPECT_EQ(bytes.at(CollectiveKind::kOnHost), 34 * shard);
  EXPECT_EQ(bytes.at(CollectiveKind::kFromHost), 2 * shard);
  EXPECT_EQ(held(program, MemoryKind::kOptimizer), 0);
  EXPECT_EQ(held(program, MemoryKind::kGradients), 0);
  EXPECT_EQ(held(program, MemoryKind::kParameters), held(without, MemoryKind::kParameters));
}

// Without other ranks nothing is reduced: all gradients go in the end, and stay until then.
TEST(OptimizerOnTheCpu, TakesWhatNobodyReduces) {
  Strategy s = on(1);
  s.offload_optimizer = OptimizerOffload::kCpu;
  const program::Program program = lowered(s);
  const program::Program without = lowered(on(1));
  const double all = held(without, MemoryKind::kOptimizer) / 12;
  const auto bytes = with_host(program);
  EXPECT_EQ(bytes.at(CollectiveKind::kToHost), 4 * all);
  EXPECT_EQ(bytes.at(CollectiveKind::kOnHost), 34 * all);
  EXPECT_EQ(held(program, MemoryKind::kGradients), held(without, MemoryKind::kGradients));
}

TEST(OptimizerStates, AreFetchedForTheStep) {
  Strategy s = on(4, 1);
  s.offload_optimizer = OptimizerOffload::kFetch;
  const program::Program program = lowered(s);
  const double states = held(lowered(on(4, 1)), MemoryKind::kOptimizer);
  const auto bytes = with_host(program);
  EXPECT_EQ(bytes.at(CollectiveKind::kToHost), states);
  EXPECT_EQ(bytes.at(CollectiveKind::kFromHost), states);
  EXPECT_EQ(held(program, MemoryKind::kOptimizer), 0);
  const auto step = std::ranges::find_if(program.blocks, [](const program::Block& block) {
    return block.name.starts_with("optimizer");
  });
  ASSERT_NE(step, program.blocks.end());
  double taken = 0;
  for (const program::Task& task : step->tasks)
    if (const auto* buffer = std::get_if<program::Allocate>(&task.body))
      taken += buffer->bytes / 1_B;
  EXPECT_EQ(taken, states);
}

// A rank's part of the head's parameters, which are copied up once for both of its passes.
double shard_of_head(const Strategy& strategy) {
  const auto blocks = value_of(lower_blocks(model(), strategy));
  return static_cast<double>(blocks.head.elements()) / static_cast<double>(strategy.data_parallel);
}

// Each pass of each layer has its shard copied up; nothing else comes back.
TEST(OffloadedParameters, ComeBeforeEachGather) {
  Strategy s = on(4, 3);
  s.offload_optimizer = OptimizerOffload::kCpu;
  s.offload_parameters = true;
  const program::Program program = lowered(s);
  const program::Program without = lowered(on(4, 3));
  const double shard = held(without, MemoryKind::kOptimizer) / 12;
  EXPECT_EQ(with_host(program).at(CollectiveKind::kFromHost), 2 * (2 * shard - shard_of_head(s)));
  EXPECT_EQ(held(program, MemoryKind::kParameters), 0);
  EXPECT_EQ(held(program, MemoryKind::kOptimizer), 0);
  for (const program::Block& block : program.blocks) {
    if (block.name != "layer.gather") continue;
    EXPECT_EQ(block.tasks.front().name, "from_host.parameters");
    const auto gather = std::ranges::find_if(block.tasks, [](const program::Task& task) {
      const auto* what = std::get_if<program::Communication>(&task.body);
      return what != nullptr && what->kind == CollectiveKind::kAllGather;
    });
    ASSERT_NE(gather, block.tasks.end());
    EXPECT_THAT(gather->after, ElementsAre(0));
  }
}

// FSDP's shards are the master copies: they go up in fp32, and the step makes no other copy.
TEST(OffloadedParameters, OfShardsInFp32) {
  Strategy s = on(4, 3);
  s.framework.value.shards.fp32 = true;
  s.offload_optimizer = OptimizerOffload::kCpu;
  EXPECT_THAT(faults_in(s, model(), 4), testing::SizeIs(1));
  s.offload_parameters = true;
  const program::Program program = lowered(s);
  const double shard = held(lowered(on(4, 3)), MemoryKind::kOptimizer) / 12;
  const auto bytes = with_host(program);
  EXPECT_EQ(bytes.at(CollectiveKind::kFromHost), 4 * (2 * shard - shard_of_head(s)));
  EXPECT_EQ(bytes.at(CollectiveKind::kOnHost), 28 * shard);
}

TEST(Offload, ChangesNothingElse) {
  const program::Program plain = lowered(on(2, 1));
  EXPECT_THAT(with_host(plain), IsEmpty());
  EXPECT_EQ(plain.streams.size(), kStreamsWithoutV);
}

}  // namespace foreshard::lower::offload_test
