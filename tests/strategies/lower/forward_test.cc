// mode: forward: evaluation and inference of whole sequences, counted and weighed by hand.
#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::forward_test {

using program::CollectiveKind;
using program::Program;

constexpr double kBatch = 2;  // sequences of a micro-batch
constexpr double kSequence = 4;
constexpr double kHidden = 8;
constexpr double kVocabulary = 12;
constexpr double kLayers = 4;

Model gpt() {
  return written_model(
      "name: tiny GPT, layers: 4, hidden: 8, heads: 4, vocabulary: 12, sequence: 4, "
      "tied_embeddings: false");
}

Strategy strategy(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t micro_batches) {
  Strategy s = degrees(tp, pp, dp, 2, micro_batches);
  s.mode = Mode::kForward;
  return s;
}

Program lowered(const Strategy& of) {
  auto program = value_of(lower(gpt(), of, {}));
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return program;
}

std::map<CollectiveKind, Traffic> traffic(const Program& program, std::size_t role) {
  std::map<CollectiveKind, Traffic> sums;
  visit_tasks(program, program.roles[role], [&](const program::Task& task) {
    if (const auto* what = std::get_if<program::Communication>(&task.body)) {
      ++sums[what->kind].operations;
      sums[what->kind].bytes += what->bytes.in_base();
    }
  });
  return sums;
}

// Two per matrix element and token: 12 h^2 of each layer (3 of q k v, 1 out, 4 up, 4 down), and the
// output projection.
TEST(ForwardMode, ComputesTwoFlopsPerParameterAndToken) {
  const double tokens = 3 * kBatch * kSequence;
  const double matrices = kLayers * 12 * kHidden * kHidden + kVocabulary * kHidden;
  const Program program = lowered(strategy(1, 1, 1, 3));
  EXPECT_DOUBLE_EQ(gemm_flops(program, program.roles[0]), 2 * matrices * tokens);
  // The model's own total counts scores and values as well: 4 s^2 h of each layer and sequence.
  EXPECT_DOUBLE_EQ(
      program.totals.model_flops.in_base(),
      2 * matrices * tokens + 3 * kBatch * kLayers * 4 * kSequence * kSequence * kHidden);
  EXPECT_EQ(program.name, "tiny GPT, tensor 1 x pipeline 1 x data 1, forward");
}

TEST(ForwardMode, HasNoBackwardPassNoDropoutAndNoOptimizer) {
  const Program program = lowered(strategy(2, 2, 2, 3));
  for (const program::Block& block : program.blocks) {
    EXPECT_EQ(block.name.find("backward"), std::string::npos) << block.name;
    EXPECT_EQ(block.name.find("reduce"), std::string::npos) << block.name;
    for (const program::Task& task : block.tasks) {
      EXPECT_FALSE(task.optimizer);
      const auto* kernel = std::get_if<Kernel>(&task.body);
      if (kernel == nullptr || !std::holds_alternative<Pass>(*kernel)) continue;
      const auto name = traffic_of(std::get<Pass>(*kernel).kind).name;
      EXPECT_EQ(name.find("bwd"), std::string::npos) << name;
      EXPECT_EQ(name.find("dropout_fwd"), std::string::npos) << name;
    }
  }
}

// Parameters in bf16 and nothing else: no gradients, no optimizer state.
TEST(ForwardMode, KeepsParametersAlone) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  Strategy s = strategy(1, 1, 4, 1);
  using program::MemoryKind;
  using program::StaticMemory;
  EXPECT_THAT(lowered(s).roles[0].memory,
              ElementsAre(StaticMemory{MemoryKind::kParameters, 2_B * p}));
  s.zero_stage = 3;
  EXPECT_THAT(lowered(s).roles[0].memory,
              ElementsAre(StaticMemory{MemoryKind::kParameters, 0.5_B * p}));
}

// Of a layer, most lives while GeLU runs: the residual stream (2 bytes s b h) with the widened
// activations before and after it (8 each). Nothing outlives its last reader, so neither more
// layers nor more micro-batches need more.
TEST(ForwardMode, FreesActivationsAsSoonAsTheyAreUsed) {
  const auto blocks = value_of(lower_blocks(gpt(), strategy(1, 1, 1, 3)));
  EXPECT_EQ(blocks.layers.front().saved, 0_B);
  EXPECT_EQ(blocks.layers.front().transient_forward,
            (2 + 8 + 8) * kSequence * kBatch * kHidden * 1_B);
  EXPECT_TRUE(only_block(blocks.layers.front().backward).tasks.empty());
  const Program program = lowered(strategy(1, 1, 1, 3));
  visit_tasks(program, program.roles[0], [](const program::Task& task) {
    const auto* allocate = std::get_if<program::Allocate>(&task.body);
    if (allocate == nullptr) return;
    EXPECT_EQ(allocate->kind, program::MemoryKind::kBuffers) << allocate->buffer;
  });
}

// Megatron-LM forward: two all-reduces per layer of the residual stream; one of the embedding; the
// loss's three statistics per token. Data-parallel ranks have nothing to tell each other.
TEST(ForwardMode, CommunicatesOnlyWhatTheForwardPassNeeds) {
  const double stream = 2 * kSequence * kBatch * kHidden;
  const double statistics = 4 * 3 * kSequence * kBatch;
  using Sums = std::map<CollectiveKind, Traffic>;
  EXPECT_EQ(
      traffic(lowered(strategy(2, 1, 2, 3)), 0),
      (Sums{{CollectiveKind::kAllReduce,
             {std::int64_t{3} * (2 * 4 + 3), 3 * ((2 * kLayers + 1) * stream + statistics)}}}));
  EXPECT_EQ(traffic(lowered(strategy(1, 1, 4, 3)), 0), Sums{});
  // One boundary each way of a middle stage, and only forward.
  const Program pipeline = lowered(strategy(1, 4, 1, 5));
  EXPECT_EQ(traffic(pipeline, 1), (Sums{{CollectiveKind::kSend, {5, 5 * stream}},
                                        {CollectiveKind::kReceive, {5, 5 * stream}}}));
  EXPECT_EQ(traffic(pipeline, 3), (Sums{{CollectiveKind::kReceive, {5, 5 * stream}}}));
}

// ZeRO-3 gathers the embedding, each layer and the head once per micro-batch.
TEST(ForwardMode, GathersSharedParametersOnce) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  Strategy s = strategy(1, 1, 2, 3);
  s.zero_stage = 3;
  using Sums = std::map<CollectiveKind, Traffic>;
  EXPECT_EQ(traffic(lowered(s), 0),
            (Sums{{CollectiveKind::kAllGather, {std::int64_t{3} * 6, 3 * 2 * p}}}));
}

TEST(ForwardMode, RunsInEverySchedule) {
  for (const char* schedule : {"1f1b", "gpipe", "interleaved"}) {
    Strategy s = strategy(2, 2, 2, 4);
    s.schedule = schedule;
    if (s.schedule == "interleaved") s.virtual_stages = 2;
    const Program program = lowered(s);
    const Program once = lowered(strategy(2, 1, 2, 4));
    EXPECT_DOUBLE_EQ(gemm_flops(program, program.roles[0]) + gemm_flops(program, program.roles[1]),
                     gemm_flops(once, once.roles[0]))
        << schedule;
  }
}

TEST(ForwardMode, SaysWhatItHasNoUseFor) {
  Strategy s = strategy(1, 1, 2, 1);
  s.zero_stage = 2;
  s.recompute = Recompute::kFull;
  const auto faults = faults_in(s, gpt(), 2);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].key, "zero_stage");
  EXPECT_EQ(faults[0].message,
            "ZeRO 2 shares optimizer state and gradients, and mode: forward has none");
  EXPECT_EQ(faults[0].help, "set zero_stage: 0, or 3 to share the parameters");
  EXPECT_EQ(faults[1].key, "recompute");
  EXPECT_THAT(faults[1].message, HasSubstr("mode: forward has none"));
  s.zero_stage = 3;
  s.recompute = Recompute::kNone;
  EXPECT_TRUE(faults_in(s, gpt(), 2).empty());
}

}  // namespace foreshard::lower::forward_test
