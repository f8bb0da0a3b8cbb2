// What a rank holds while blocks run, byte by byte.

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::lower::memory_test {

// The shape of Llama 3 8B, small: grouped heads, RMSNorm, rotary positions, SwiGLU, no biases.
constexpr double kS = 64, kH = 32, kA = 4, kQkv = 64, kF = 64, kV = 512, kLayers = 2;
constexpr double kLayerElements = kH * (kQkv + kH + 2 * kF + kF) + 2 * kH;
constexpr double kHeadElements = kH * kV + kH;
constexpr double kElements = kLayers * kLayerElements + kHeadElements + kH * kV;

Model llama() {
  return small_llama(2);
}

Strategy on(std::int64_t data_parallel, std::int64_t pipeline = 1, std::int64_t micro_batches = 1) {
  return degrees(1, pipeline, data_parallel, 1, micro_batches);
}

LoweredModel blocks_of(const Strategy& strategy) {
  return value_of(lower_blocks(llama(), strategy));
}

// Between its two parts, a backward pass holds the inputs of the four products (two norms' results,
// the attention's, what comes out of SwiGLU) and the gradients of their results (queries, keys and
// values; the projection's; what goes into SwiGLU; the layer's own).
TEST(SplitBackward, HoldsInputsOfProductsAndGradientsOfTheirResults) {
  Strategy s = on(1, 2, 2);
  s.schedule = "zb-h1";
  const LoweredModel model = blocks_of(s);
  const LoweredBlock& layer = model.layers.front();
  ASSERT_TRUE(layer.split);
  EXPECT_EQ(layer.split->kept_for_weight / 1_B, 2 * kS * (kH + kH + kH + kF));
  EXPECT_EQ(layer.split->held / 1_B, 2 * kS * (kQkv + kH + 2 * kF + kH));
  EXPECT_LE(layer.split->kept_for_weight, layer.saved);
  // Nothing flows back through the embedding.
  EXPECT_FALSE(model.embedding.split);
  EXPECT_TRUE(model.head.split);
  s.schedule = "1f1b";
  EXPECT_FALSE(blocks_of(s).layers.front().split);
}

// Both parts together run the kernels of the whole pass, whatever is computed again.
TEST(SplitBackward, RunsTheKernelsOfTheWholePass) {
  const auto kernels = [](const std::vector<const Pieces*>& passes) {
    std::multiset<std::string> names;
    for (const Pieces* pass : passes)
      for (const program::Task& task : only_block(*pass).tasks)
        if (std::holds_alternative<Kernel>(task.body)) names.insert(task.name);
    return names;
  };
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    Strategy s = on(1, 2, 2);
    s.tensor_parallel = 2;
    s.recompute = recompute;
    s.schedule = "zb-h1";
    const LoweredModel model = blocks_of(s);
    for (const LoweredBlock* block : {&model.layers.front(), &model.head}) {
      ASSERT_TRUE(block->split);
      EXPECT_EQ(kernels({&block->split->input, &block->split->weight}),
                kernels({&block->backward}));
    }
  }
}

// A layer keeps, in bf16: its input, two norms' results, rotated queries, keys and values, the
// attention's result, the residual stream between, what goes into SwiGLU and what comes out; and in
// fp32 one number per row and head of the attention's softmax.
constexpr double kSavedOfLayer = 2 * kS * (kH + kH + kQkv + kH + kH + kH + 2 * kF + kF);
constexpr double kStatistics = 4 * kS * kA;

TEST(SelectiveRecomputation, KeepsTheResultOfFusedAttention) {
  Strategy s = on(1);
  EXPECT_EQ(blocks_of(s).layers.front().saved.in_base(), kSavedOfLayer + kStatistics);
  // The statistics are made again. The result is not given up: the gradient of the next product's
  // weight reads it.
  s.recompute = Recompute::kSelective;
  EXPECT_EQ(blocks_of(s).layers.front().saved.in_base(), kSavedOfLayer);
}

// Most is there while SwiGLU runs backward: the gradient that came in (it is still needed for the
// residual stream), that of SwiGLU's result (2 s f) and those of its two inputs (4 s f), less its
// result (2 s f), which the weight gradient of the product behind was the last to read.
TEST(BackwardPass, HoldsTheIncomingGradientAndGivesBackWhatIsRead) {
  const double work = 2 * kS * kH + 4 * kS * kF;
  Strategy s = on(1);
  EXPECT_EQ(blocks_of(s).layers.front().transient_backward.in_base(), work);
  s.recompute = Recompute::kSelective;  // makes statistics and another result, but later
  EXPECT_EQ(blocks_of(s).layers.front().transient_backward.in_base(), work);
  // Beside the input alone, which is what full recomputation keeps: all that a layer would save,
  // its result, and the work.
  s.recompute = Recompute::kFull;
  EXPECT_EQ(blocks_of(s).layers.front().transient_backward.in_base(),
            kSavedOfLayer + kStatistics - 2 * kS * kH + 2 * kS * kH + work);
}

// The head keeps its input, the norm's result, exponentials in fp32, two statistics (fp32) and the
// target (int64) of each token. Most is there while it makes the logits' gradients.
TEST(Head, KeepsExponentialsInFullPrecision) {
  const LoweredBlock head = blocks_of(on(1)).head;
  EXPECT_EQ(head.saved.in_base(), 4 * kS * kH + 4 * kS * kV + 16 * kS);
  EXPECT_EQ(head.transient_backward.in_base(), 2 * kS * kV);
}

// Fused, the loss leaves gradients where the logits were. Then most is there when the weight's
// gradient is made: the gradient of the norm's result, and the tensor of the weight's shape that
// autograd is given in its place; statistics and targets have been read.
TEST(Head, FusedLossWritesOverTheLogits) {
  Strategy s = on(1);
  s.framework.value.fused_cross_entropy = true;
  LoweredBlock head = blocks_of(s).head;
  EXPECT_EQ(head.saved.in_base(), 4 * kS * kH + 2 * kS * kV + 16 * kS);
  EXPECT_EQ(head.transient_backward.in_base(), 2 * kS * kH - 16 * kS + 2 * kH * kV);
  s.framework.value.keeps_gradient_placeholders = true;
  head = blocks_of(s).head;
  EXPECT_EQ(head.transient_backward.in_base(), 2 * kS * kH - 16 * kS);
}

// A loss that keeps logits in 16 bits has both these and their gradients in its backward pass.
TEST(Head, RecomputedLossKeepsLogits) {
  Strategy s = on(1);
  s.framework.value.pointwise.cross_entropy = LossKernels::kRecomputed;
  const LoweredBlock head = blocks_of(s).head;
  EXPECT_EQ(head.saved.in_base(), 4 * kS * kH + 2 * kS * kV + 16 * kS);
  EXPECT_EQ(head.transient_backward.in_base(), 2 * kS * kV);
}

// Forward, beside exponentials in fp32: logits, these in fp32, and the largest of each token.
// Backward: two gradients in fp32. What has 16 bits comes later.
TEST(Head, LossByLogSoftmaxHasThreeCopiesInFullPrecision) {
  Strategy s = on(1);
  s.framework.value.pointwise.cross_entropy = LossKernels::kLogSoftmax;
  const LoweredBlock head = blocks_of(s).head;
  EXPECT_EQ(head.saved.in_base(), 4 * kS * kH + 4 * kS * kV + 16 * kS);
  EXPECT_EQ(head.transient_forward.in_base(), (2 + 4) * kS * kV + 4 * kS);
  EXPECT_EQ(head.transient_backward.in_base(), 2 * 4 * kS * kV);
}

// With an eighth of the words at a time the head keeps its input alone, and an eighth of the logits
// is in memory. As many words as the vocabulary has change nothing but that they are made again.
TEST(Head, LossOfSomeWordsHasTheirLogitsInMemory) {
  Strategy s = on(1);
  s.framework.value.pointwise.cross_entropy = LossKernels::kLogSoftmax;
  const double whole = blocks_of(s).head.transient_backward.in_base();
  s.framework.value.loss_words = static_cast<std::int64_t>(4 * kV);
  EXPECT_EQ(blocks_of(s).head.saved.in_base(), 2 * kS * kH);
  EXPECT_GE(blocks_of(s).head.transient_backward.in_base(), whole);
  s.framework.value.loss_words = static_cast<std::int64_t>(kV / 8);
  const LoweredBlock head = blocks_of(s).head;
  EXPECT_EQ(head.saved.in_base(), 2 * kS * kH);
  EXPECT_LT(head.transient_forward.in_base(), 10 * kS * kV / 8 + 6 * kS * kH + 16 * kS);
  EXPECT_LT(head.transient_backward.in_base(), whole / 2);
}

// Of each norm a copy of its input in fp32 (4 bytes), of SwiGLU silu(gate) (2 bytes).
TEST(EagerOperators, KeepWhatAutogradSavesBetweenTheirKernels) {
  Strategy s = on(1);
  s.framework.value.pointwise = {.norm = NormKernels::kEager,
                                 .rope = OtherKernels::kEager,
                                 .activation = OtherKernels::kEager};
  const double eager = 2 * 4 * kS * kH + 2 * kS * kF;
  EXPECT_EQ(blocks_of(s).layers.front().saved.in_base(), kSavedOfLayer + kStatistics + eager);
  // What is computed again is kept no longer.
  s.recompute = Recompute::kFull;
  EXPECT_EQ(blocks_of(s).layers.front().saved.in_base(), 2 * kS * kH);
}

// Under autocast the residual stream is in fp32: two bytes more for each norm's input.
TEST(EagerOperators, NormsUnderAutocastKeepTheStreamInFullPrecision) {
  Strategy s = on(1);
  s.framework.value.pointwise.norm = NormKernels::kAutocast;
  EXPECT_EQ(blocks_of(s).layers.front().saved.in_base(),
            kSavedOfLayer + kStatistics + 2 * 2 * kS * kH);
}

// Matrices that are gathered in fp32 leave a copy in bf16 for the backward pass.
TEST(Zero, GathersInFullPrecisionKeepCopiesOfAutocast) {
  Strategy s = on(4);
  s.zero_stage = 3;
  s.framework.value.shards.fp32 = true;
  const double plain = blocks_of(s).layers.front().saved.in_base();
  s.framework.value.shards.gathered_fp32 = true;
  EXPECT_EQ(blocks_of(s).layers.front().saved.in_base(), plain + 2 * (kLayerElements - 2 * kH));
}

double buffers_of(const Strategy& strategy, std::int64_t stage) {
  for (const auto& one : resident_memory(strategy, llama(), blocks_of(strategy), stage))
    if (one.kind == program::MemoryKind::kBuffers) return one.bytes.in_base();
  return 0;
}

// One placeholder in bf16 for each shape of weight: the layer's four (on both stages), the head's.
// The last stage holds the gradient of the residual stream that it sent last, too.
TEST(ResidentMemory, HasWorkspacesPlaceholdersAndTheGradientSentLast) {
  Strategy s = on(1, 2, 3);
  EXPECT_EQ(buffers_of(s, 0), 0);
  EXPECT_EQ(buffers_of(s, 1), 2 * kS * kH);
  s.framework.value.workspace = 1_MiB;
  s.framework.value.keeps_gradient_placeholders = true;
  const double layer = 2 * kH * (kQkv + kH + 2 * kF + kF);
  EXPECT_EQ(buffers_of(s, 0), 1048576 + layer);
  EXPECT_EQ(buffers_of(s, 1), 1048576 + layer + 2 * kH * kV + 2 * kS * kH);
  s.mode = Mode::kForward;
  EXPECT_EQ(buffers_of(s, 1), 1048576);
}

// Peak of the first role, calls one after another.
double peak_of(const Strategy& strategy) {
  const auto program = value_of(lower(llama(), strategy, {}));
  Bytes live;
  for (const auto& part : program.roles[0].memory) live += part.bytes;
  Bytes peak = live;
  std::map<std::tuple<std::string, std::int32_t>, Bytes> buffers;
  for (const program::Call& call : program.roles[0].calls) {
    for (std::int32_t i = 0; i < call.repeat; ++i) {
      for (const program::Task& task : program.blocks[call.block.index()].tasks) {
        if (const auto* made = std::get_if<program::Allocate>(&task.body)) {
          buffers[{made->buffer, call.layer(i)}] = made->bytes;
          peak = std::max(peak, live += made->bytes);
        } else if (const auto* gone = std::get_if<program::Free>(&task.body)) {
          live -= buffers.at({gone->buffer, call.layer(i)});
        }
      }
    }
  }
  return peak.in_base();
}

// All is fullest in the head's backward pass: what both layers keep, the token ids (int64) of the
// embedding, what the head keeps and its work. From ZeRO 2 on also the head's whole gradient in
// fp32, of which the rank's share of all gradients has no part; at ZeRO 3 its whole parameters,
// and those of the last layer, which are gathered beside it.
TEST(Zero, HoldsTheWholeGradientOfTheUnitThatIsReduced) {
  const double activations = kLayers * (kSavedOfLayer + kStatistics) + 8 * kS + 4 * kS * kH +
                             4 * kS * kV + 16 * kS + 2 * kS * kV;
  Strategy s = on(4);
  s.zero_stage = 1;
  // Without either the loss itself is fullest: it has the logits and the largest of each token.
  EXPECT_EQ(peak_of(s), (2 + 4 + 12 / 4.0) * kElements + activations + 4 * kS);
  s.zero_stage = 2;
  EXPECT_EQ(peak_of(s), (2 + (4 + 12) / 4.0) * kElements + activations + 4 * kHeadElements);
  s.zero_stage = 3;
  EXPECT_EQ(peak_of(s), (2 + 4 + 12) / 4.0 * kElements + activations + (4 + 2) * kHeadElements +
                            2 * kLayerElements);
}

// Gradients that come with the backward pass take the place of activations, of which there are more
// here; with two micro-batches the second finds all of them.
TEST(ResidentMemory, GradientsTakeThePlaceOfActivations) {
  const auto gradients_of = [](const Strategy& strategy) {
    for (const auto& one : resident_memory(strategy, llama(), blocks_of(strategy), 0))
      if (one.kind == program::MemoryKind::kGradients) return one.bytes.in_base();
    return 0.0;
  };
  Strategy s = on(1);
  EXPECT_EQ(gradients_of(s), 4 * kElements);
  s.framework.value.gradients_in_backward = true;
  const LoweredModel blocks = blocks_of(s);
  const double room = kLayers * blocks.layers.front().saved.in_base() +
                      blocks.embedding.saved.in_base() + blocks.head.saved.in_base() +
                      blocks.head.transient_backward.in_base() -
                      blocks.layers.front().transient_backward.in_base();
  EXPECT_EQ(gradients_of(s), std::max(0.0, 4 * kElements - room));
  s.global_batch *= 2;
  EXPECT_EQ(gradients_of(s), 4 * kElements);
}

// The first layer's backward pass waits until the head's gradient is reduced: it comes third.
TEST(Zero, HoldsTwoWholeGradientsAtMost) {
  Strategy s = on(4);
  s.zero_stage = 2;
  const auto program = value_of(lower(llama(), s, {}));
  const auto& calls = program.roles[0].calls;
  std::vector<std::size_t> passes;
  std::vector<std::int32_t> reductions;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const std::string& name = program.blocks[calls[c].block.index()].name;
    if (name.ends_with(".backward")) passes.push_back(c);
    if (name.ends_with(".reduce")) reductions.push_back(static_cast<std::int32_t>(c));
  }
  ASSERT_EQ(passes.size(), 4U);  // head, two layers, embedding
  ASSERT_EQ(reductions.size(), 4U);
  const auto waits = [&](std::size_t pass, std::size_t reduction) {
    return std::ranges::any_of(calls[passes[pass]].after,
                               [&](const auto& on) { return on.call == reductions[reduction]; });
  };
  EXPECT_FALSE(waits(1, 0));
  EXPECT_TRUE(waits(2, 0));
  EXPECT_FALSE(waits(2, 1));
  EXPECT_TRUE(waits(3, 1));
}

}  // namespace foreshard::lower::memory_test
