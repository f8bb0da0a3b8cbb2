// Recomputation of parts and of some layers: what stays in memory and what runs again, by hand.

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::lower::recompute_test {

// The shape of Llama 3 8B, small.
constexpr double kS = 64, kH = 32, kA = 4, kQkv = 64, kF = 64;

Model model() {
  return small_llama(4);
}

Strategy recomputing(std::vector<LayerPart> parts) {
  Strategy s = degrees(1, 1, 1);
  s.recompute = Recompute::kSelective;
  s.recompute_parts = std::move(parts);
  return s;
}

LoweredModel blocks_of(const Strategy& strategy) {
  EXPECT_THAT(faults_in(strategy, model(), strategy.devices()), IsEmpty());
  return value_of(lower_blocks(model(), strategy));
}

// The tasks of the backward pass that are none of it.
std::vector<std::string> again(const LoweredBlock& block) {
  std::vector<std::string> names;
  for (const program::Task& task : only_block(block.backward).tasks)
    if (!task.name.starts_with("d.") && !task.name.starts_with("sum.")) names.push_back(task.name);
  return names;
}

// All that a layer keeps (memory_test.cc): its input, both norms' results, rotated queries, keys
// and values, attention's result and statistics, the stream between, what goes into SwiGLU and what
// comes out.
constexpr double kAll = 2 * kS * (kH + kH + kQkv + kH + kH + kH + 2 * kF + kF) + 4 * kS * kA;

TEST(RecomputedParts, GiveUpWhatTheyMake) {
  const auto saved = [](std::vector<LayerPart> parts) {
    return blocks_of(recomputing(std::move(parts))).layers.front().saved.in_base();
  };
  EXPECT_EQ(saved({LayerPart::kNorm}), kAll - 2 * kS * 2 * kH);
  EXPECT_EQ(saved({LayerPart::kActivation}), kAll - 2 * kS * kF);
  EXPECT_EQ(saved({LayerPart::kNorm, LayerPart::kActivation}), kAll - 2 * kS * (2 * kH + kF));
  // The feed-forward layer (Megatron-LM's "mlp"), from the result of its norm.
  EXPECT_EQ(saved({LayerPart::kMlpUp, LayerPart::kActivation, LayerPart::kMlpDown}),
            kAll - 2 * kS * 3 * kF);
  // From the stream: its norm goes, too.
  EXPECT_EQ(
      saved({LayerPart::kNorm, LayerPart::kMlpUp, LayerPart::kActivation, LayerPart::kMlpDown}),
      kAll - 2 * kS * (3 * kF + 2 * kH));
  // What is rotated is kept as it was before: nothing is won.
  EXPECT_EQ(saved({LayerPart::kRope}), kAll);
}

TEST(RecomputedParts, RunAgainInOrder) {
  const auto tasks = [](std::vector<LayerPart> parts) {
    return again(blocks_of(recomputing(std::move(parts))).layers.front());
  };
  EXPECT_THAT(tasks({LayerPart::kNorm, LayerPart::kActivation}),
              ElementsAre("attention_norm", "mlp_norm", "mlp_activation"));
  EXPECT_THAT(tasks({LayerPart::kMlpDown, LayerPart::kMlpUp, LayerPart::kActivation}),
              ElementsAre("mlp_up", "mlp_activation", "mlp_down"));
  EXPECT_THAT(tasks({LayerPart::kCoreAttention}), ElementsAre("attention"));
}

// While SwiGLU runs backward, memory has what it had without recomputation (memory_test.cc), and
// beside what is kept now: its result comes back, is read by the gradient of the product behind it,
// and goes before the peak.
TEST(RecomputedParts, AreMadeWhenTheyAreRead) {
  const double work = 2 * kS * kH + 4 * kS * kF;
  Strategy s = recomputing({LayerPart::kActivation});
  EXPECT_EQ(blocks_of(s).layers.front().transient_backward.in_base(), work + 2 * kS * kF);
  s = recomputing({LayerPart::kCoreAttention});
  EXPECT_EQ(blocks_of(s).layers.front().transient_backward.in_base(), work);
}

// torchtitan keeps every second product: of the feed-forward layer the gate's, not that of the up
// projection. The last sum is read by no gradient: it is not made again, and nothing is kept for
// it.
TEST(RecomputedParts, OfAGateApart) {
  Strategy s =
      recomputing({LayerPart::kNorm, LayerPart::kRope, LayerPart::kMlpUp, LayerPart::kActivation,
                   LayerPart::kResidual, LayerPart::kAttentionOut});
  s.framework.value.gate_apart = true;
  const LoweredBlock layer = blocks_of(s).layers.front();
  // Its input, queries, keys and values as projected, attention's result and statistics, the gate.
  EXPECT_EQ(layer.saved.in_base(), 2 * kS * (kH + kQkv + kH + kF) + 4 * kS * kA);
  EXPECT_THAT(again(layer),
              ElementsAre("attention_norm", "rope", "attention_out", "attention_residual",
                          "mlp_norm", "mlp_up", "mlp_activation"));
  s.framework.value.gate_apart = false;
  s.recompute_parts = {LayerPart::kMlpGate};
  EXPECT_THAT(faults_in(s, model(), 1), testing::SizeIs(1));
}

// With two tensor-parallel ranks and sequences cut between them, what attention's product adds up
// is kept as the residual sum reads it: reduced and scattered, half the sequence; it is not reduced
// again. Naming the sum gives up what it makes and keeps what it reads: nothing changes.
TEST(RecomputedParts, KeepWhatWasReducedAndScattered) {
  Strategy s = recomputing({LayerPart::kNorm, LayerPart::kRope, LayerPart::kActivation});
  s.tensor_parallel = 2;
  s.sequence_parallel = true;
  const LoweredBlock plain = blocks_of(s).layers.front();
  s.recompute_parts.push_back(LayerPart::kResidual);
  const LoweredBlock layer = blocks_of(s).layers.front();
  // Its input and attention's reduced result, each half a sequence; of half the heads and widths
  // queries, keys and values as projected, attention's result and statistics, what goes into
  // SwiGLU.
  EXPECT_EQ(layer.saved.in_base(),
            2 * kS * (2 * kH / 2 + kQkv / 2 + kH / 2 + 2 * kF / 2) + 4 * kS * kA / 2);
  EXPECT_EQ(layer.saved, plain.saved);
  const auto sums = [](const LoweredBlock& block) {
    std::vector<std::string> names;
    for (const program::Task& task : only_block(block.backward).tasks)
      if (task.name.starts_with("reduce_scatter.")) names.push_back(task.name);
    return names;
  };
  EXPECT_EQ(sums(layer), sums(plain));
}

// Of 4 layers on 2 stages the first of each: blocks of their own, which keep their input alone.
TEST(RecomputedLayers, AreTheFirstOfEachStage) {
  Strategy s = recomputing(usual_recompute_parts());
  s.recompute = Recompute::kFull;
  s.recompute_layers = 1;
  s.pipeline_parallel = 2;
  s.global_batch = 2;
  const LoweredModel blocks = blocks_of(s);
  ASSERT_EQ(blocks.layers.size(), 2U);
  EXPECT_EQ(blocks.layers[0].saved.in_base(), 2 * kS * kH);
  EXPECT_EQ(blocks.layers[1].saved.in_base(), kAll);
  const auto plan = value_of(plan_of(model(), s));
  std::vector<std::string> names;
  for (const plan::Unit& unit : plan.parts.units)
    names.push_back(plan.parts.blocks[static_cast<std::size_t>(unit.block)].name);
  EXPECT_THAT(names, ElementsAre("embedding", "layer.recomputed", "layer", "layer.recomputed",
                                 "layer", "head"));
  // Of an interleaved pipeline the first of each chunk: all of them.
  s.schedule = "interleaved";
  s.virtual_stages = 2;
  EXPECT_EQ(blocks_of(s).layers.size(), 1U);
}

}  // namespace foreshard::lower::recompute_test
