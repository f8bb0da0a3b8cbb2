// Frozen parts of a model: what is computed, kept and updated of it, by hand.

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::lower::frozen_test {

using program::MemoryKind;

constexpr double kS = 64, kH = 32, kQkv = 64, kF = 64, kV = 512;
constexpr double kMatrices = kH * (kQkv + kH + 3 * kF);  // of each of three layers
constexpr double kLayer = kMatrices + 2 * kH;
constexpr double kHead = kH * kV + kH;

Model model(Frozen frozen) {
  Model model = small_llama(3);
  model.frozen = frozen;
  return model;
}

Strategy strategy(std::int64_t pipeline = 1) {
  Strategy s = degrees(1, pipeline, 1, 1, 2);
  if (pipeline == 2) s.layers_per_stage = {2, 1};
  return s;
}

LoweredModel blocks_of(const Model& model) {
  EXPECT_THAT(faults_in(strategy(), model, 1), IsEmpty());
  return value_of(lower_blocks(model, strategy()));
}

// Two layers on a frozen embedding run forward alone and keep nothing. The third has all products,
// as its first norm has a scale to train, but hands no gradient on.
TEST(FrozenParts, RunForwardAloneBelowWhatIsTrained) {
  const LoweredModel blocks = blocks_of(model({.embedding = true, .layers = 2}));
  ASSERT_EQ(blocks.layers.size(), 2U);
  EXPECT_THAT(only_block(blocks.embedding.backward).tasks, IsEmpty());
  EXPECT_THAT(only_block(blocks.layers[0].backward).tasks, IsEmpty());
  EXPECT_EQ(blocks.layers[0].saved.in_base(), 0);
  EXPECT_THAT(products_of(blocks.layers[1].backward),
              UnorderedElementsAre("d.mlp_down.data", "d.mlp_down.weight", "d.mlp_up.data",
                                   "d.mlp_up.weight", "d.attention_out.data",
                                   "d.attention_out.weight", "d.qkv.data", "d.qkv.weight"));
}

// Above a trained embedding they hand gradients on, without those of weights.
TEST(FrozenParts, HandGradientsOnAboveWhatIsTrained) {
  const LoweredModel blocks = blocks_of(model({.layers = 2, .head = true}));
  EXPECT_FALSE(only_block(blocks.embedding.backward).tasks.empty());
  EXPECT_THAT(products_of(blocks.layers[0].backward),
              UnorderedElementsAre("d.mlp_down.data", "d.mlp_up.data", "d.attention_out.data",
                                   "d.qkv.data"));
  EXPECT_THAT(products_of(blocks.layers[1].backward), Contains("d.qkv.weight"));
  EXPECT_THAT(products_of(blocks.head.backward), UnorderedElementsAre("d.logits.data"));
}

// bf16 parameters of all; fp32 gradients and Adam's 12 bytes of what is trained.
TEST(FrozenParts, HaveNoGradientsAndNoStates) {
  const Model frozen = model({.embedding = true, .layers = 2});
  std::map<MemoryKind, double> bytes;
  for (const auto& one : resident_memory(strategy(), frozen, blocks_of(frozen), 0))
    bytes[one.kind] += one.bytes.in_base();
  EXPECT_EQ(static_cast<double>(trained_parameter_count(frozen)), kLayer + kHead);
  EXPECT_EQ(bytes[MemoryKind::kParameters], 2 * (3 * kLayer + kHead + kH * kV));
  EXPECT_EQ(bytes[MemoryKind::kGradients], 4 * (kLayer + kHead));
  EXPECT_EQ(bytes[MemoryKind::kOptimizer], 12 * (kLayer + kHead));
}

// Of an element and a token, 6 operations where it is trained, 4 where it hands gradients on, 2
// below; of scores a third below.
TEST(FrozenParts, CountFewerOperations) {
  const double scores = 12 * kS * kS * kH;
  EXPECT_DOUBLE_EQ(model_flops(model({.embedding = true, .layers = 2}), 1).in_base(),
                   kS * ((2 * 2 + 6) * kMatrices + 6 * kH * kV) + (2 / 3.0 + 1) * scores);
  EXPECT_DOUBLE_EQ(model_flops(model({.layers = 2, .head = true}), 1).in_base(),
                   kS * ((2 * 4 + 6) * kMatrices + 4 * kH * kV) + 3 * scores);
  EXPECT_DOUBLE_EQ(forward_flops(model({.layers = 2}), 1).in_base(),
                   forward_flops(small_llama(3), 1).in_base());
}

TEST(FrozenParts, AreRefusedWhereNothingOfAStageIsTrained) {
  EXPECT_THAT(faults_in(strategy(2), model({.embedding = true, .layers = 2}), 2),
              Contains(testing::Field(&StrategyFault::message,
                                      HasSubstr("nothing of the first of 2 stages is trained"))));
  EXPECT_THAT(faults_in(strategy(2), model({.embedding = true, .layers = 1}), 2), IsEmpty());
  EXPECT_THAT(faults_in(strategy(3), model({.layers = 2}), 3), IsEmpty());
}

}  // namespace foreshard::lower::frozen_test
