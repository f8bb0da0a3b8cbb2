// Low-rank adapters beside frozen weights: what is computed, kept, moved and updated, by hand.

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/parallelism/parameters.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::adapters_test {

using program::CollectiveKind;
using program::MemoryKind;
using testing::Pair;

// The shape of Llama 3 8B, small: grouped heads, RMSNorm, rotary positions, SwiGLU, no biases.
constexpr double kS = 64, kH = 32, kA = 4, kQkv = 64, kF = 64, kV = 512, kRank = 8;
constexpr double kLayers = 3;
constexpr double kFrozenOfLayer = kH * (kQkv + kH + 2 * kF + kF) + 2 * kH;
constexpr double kFrozen = kLayers * kFrozenOfLayer + 2 * kH * kV + kH;
// A and B of the four linear layers: rank x (in + out).
constexpr double kAdaptersOfLayer = kRank * ((kH + kQkv) + (kH + kH) + (kH + 2 * kF) + (kF + kH));
constexpr double kAdapters = kLayers * kAdaptersOfLayer;

Model model(std::vector<AdapterTarget> targets = Adapters{}.targets) {
  Model model = small_llama(3);
  model.adapters = Adapters{.rank = 8, .targets = std::move(targets)};
  return model;
}
std::vector<AdapterTarget> attention() {
  return {AdapterTarget::kQkv, AdapterTarget::kAttentionOut};
}

Strategy on(std::int64_t tensor, std::int64_t data, std::int64_t zero = 0) {
  Strategy s = degrees(tensor, 1, data);
  s.sequence_parallel = tensor > 1;
  s.zero_stage = zero;
  s.framework.value.overlap_tensor_gradients = false;
  return s;
}

LoweredModel blocks_of(const Model& model, const Strategy& strategy) {
  EXPECT_THAT(faults_in(strategy, model, strategy.devices()), IsEmpty());
  return value_of(lower_blocks(model, strategy));
}

std::map<MemoryKind, double> resident(const Strategy& strategy) {
  std::map<MemoryKind, double> bytes;
  const Model adapted = model();
  for (const auto& one : resident_memory(strategy, adapted, blocks_of(adapted, strategy), 0))
    bytes[one.kind] += one.bytes.in_base();
  return bytes;
}

TEST(Adapters, AreCountedAmongTheParameters) {
  EXPECT_EQ(static_cast<double>(trained_parameter_count(model())), kAdapters);
  EXPECT_EQ(static_cast<double>(parameter_count(model())), kFrozen + kAdapters);
  Model plain = model();
  plain.adapters.reset();
  EXPECT_EQ(static_cast<double>(parameter_count(plain)), kFrozen);
  EXPECT_EQ(static_cast<double>(trained_parameter_count(plain)), kFrozen);
  // Llama 2 70B of MLPerf Training, rank 16 at attention: 16 x (8192 + 10240 + 8192 + 8192) x 80.
  Model llama{.name = "Llama 2 70B", .layers = 80, .hidden = 8192, .heads = 64, .source = ""};
  llama.kv_heads = 8;
  llama.ffn = 28'672;
  llama.adapters = Adapters{.rank = 16, .targets = attention()};
  EXPECT_EQ(trained_parameter_count(llama), 44'564'480);
}

// bf16 parameters of all; fp32 gradients and Adam's 12 bytes of the adapters alone.
TEST(Adapters, AloneHaveGradientsAndOptimizerStates) {
  auto bytes = resident(on(1, 4));
  EXPECT_EQ(bytes[MemoryKind::kParameters], 2 * (kFrozen + kAdapters));
  EXPECT_EQ(bytes[MemoryKind::kGradients], 4 * kAdapters);
  EXPECT_EQ(bytes[MemoryKind::kOptimizer], 12 * kAdapters);
  bytes = resident(on(1, 4, 1));
  EXPECT_EQ(bytes[MemoryKind::kParameters], 2 * (kFrozen + kAdapters));
  EXPECT_EQ(bytes[MemoryKind::kOptimizer], 12 * kAdapters / 4);
  // ZeRO 3 cuts what is frozen, too.
  bytes = resident(on(1, 4, 3));
  EXPECT_EQ(bytes[MemoryKind::kParameters], 2 * (kFrozen + kAdapters) / 4);
  EXPECT_EQ(bytes[MemoryKind::kGradients], 4 * kAdapters / 4);
  EXPECT_EQ(bytes[MemoryKind::kOptimizer], 12 * kAdapters / 4);
}

// A frozen matrix has one product in the backward pass, that of its input's gradient; A and B have
// both of theirs. Nothing is before the first layer that wants a gradient: of the products that
// lead to its input only those remain which an adapter waits for.
TEST(Adapters, LeaveNoWeightGradientsOfWhatIsFrozen) {
  const LoweredModel blocks = blocks_of(model(attention()), on(1, 1));
  ASSERT_EQ(blocks.layers.size(), 2U);
  EXPECT_THAT(
      products_of(blocks.layers[1].backward),
      UnorderedElementsAre("d.mlp_down.data", "d.mlp_up.data", "d.attention_out.data",
                           "d.attention_out.adapter_out.data", "d.attention_out.adapter_out.weight",
                           "d.attention_out.adapter_in.data", "d.attention_out.adapter_in.weight",
                           "d.qkv.data", "d.qkv.adapter_out.data", "d.qkv.adapter_out.weight",
                           "d.qkv.adapter_in.data", "d.qkv.adapter_in.weight"));
  EXPECT_THAT(products_of(blocks.layers[0].backward),
              UnorderedElementsAre(
                  "d.mlp_down.data", "d.mlp_up.data", "d.attention_out.data",
                  "d.attention_out.adapter_out.data", "d.attention_out.adapter_out.weight",
                  "d.attention_out.adapter_in.data", "d.attention_out.adapter_in.weight",
                  "d.qkv.adapter_out.data", "d.qkv.adapter_out.weight", "d.qkv.adapter_in.weight"));
  EXPECT_THAT(products_of(blocks.head.backward), ElementsAre("d.logits.data"));
  EXPECT_THAT(only_block(blocks.embedding.backward).tasks, IsEmpty());
}

// Of what a layer keeps without adapters (memory_test.cc), two are read by weight gradients alone,
// which are not there: what the norm before the feed-forward layer and SwiGLU make. Each A keeps
// its result for B's gradient. The first layer keeps no input, which its norm's gradient would
// read.
TEST(Adapters, KeepWhatTheirGradientsRead) {
  const LoweredModel blocks = blocks_of(model(attention()), on(1, 1));
  const double statistics = 4 * kS * kA;
  const double kept = 2 * kS * (kH + kH + kQkv + kH + kH + 2 * kF + 2 * kRank) + statistics;
  EXPECT_EQ(blocks.layers[1].saved.in_base(), kept);
  EXPECT_EQ(blocks.layers[0].saved.in_base(), kept - 2 * kS * kH);
  EXPECT_EQ(blocks.embedding.saved.in_base(), 0);
}

int casts(const Pieces& pass, PassKind kind) {
  int count = 0;
  for (const program::Task& task : only_block(pass).tasks)
    if (const auto* kernel = std::get_if<Kernel>(&task.body))
      if (const auto* one = std::get_if<Pass>(kernel)) count += one->kind == kind ? 1 : 0;
  return count;
}

// In fp8, a frozen product reads its input along one dimension forward, and the gradient of its
// result along one backward: no weight gradient reads the other. The first layer's first product
// has no backward pass. What is kept for A is in bf16.
TEST(Adapters, LeaveOneCopyOfWhatFrozenProductsRead) {
  Strategy s = on(1, 1);
  s.quantization = Quantization::kFp8Delayed;
  const LoweredModel blocks = blocks_of(model(attention()), s);
  EXPECT_EQ(casts(blocks.layers[1].forward, PassKind::kQuantize), 4);
  EXPECT_EQ(casts(blocks.layers[1].backward, PassKind::kQuantize), 4);
  EXPECT_EQ(casts(blocks.layers[0].backward, PassKind::kQuantize), 3);
  for (const LoweredBlock& layer : blocks.layers)
    for (const Pieces* pass : {&layer.forward, &layer.backward})
      EXPECT_EQ(casts(*pass, PassKind::kQuantizeTranspose), 0);
  EXPECT_EQ(blocks.layers[1].saved.in_base(),
            blocks_of(model(attention()), on(1, 1)).layers[1].saved.in_base());
}

// In nf4 (0.5 bytes, and (1 + 4 / 256) / 64 of scales) a matrix is brought to bf16 by each product
// that reads it: four forward, and backward as many, of the first layer one fewer. What is kept is
// the same.
TEST(Adapters, DequantizeWeightsInFourBitsForEachProduct) {
  Model narrow = model(attention());
  narrow.adapters->base = AdapterBase::kNf4;
  const LoweredModel blocks = blocks_of(narrow, on(1, 1));
  EXPECT_EQ(casts(blocks.layers[1].forward, PassKind::kDequantizeNf4), 4);
  EXPECT_EQ(casts(blocks.layers[1].backward, PassKind::kDequantizeNf4), 4);
  EXPECT_EQ(casts(blocks.layers[0].backward, PassKind::kDequantizeNf4), 3);
  EXPECT_EQ(casts(blocks.head.forward, PassKind::kDequantizeNf4), 0);
  const LoweredModel plain = blocks_of(model(attention()), on(1, 1));
  EXPECT_EQ(blocks.layers[1].saved, plain.layers[1].saved);
  EXPECT_EQ(blocks.layers[0].saved, plain.layers[0].saved);

  const auto held = [&](const Model& of) {
    double bytes = 0;
    for (const auto& one : resident_memory(on(1, 1), of, blocks_of(of, on(1, 1)), 0))
      if (one.kind == MemoryKind::kParameters) bytes += one.bytes.in_base();
    return bytes;
  };
  const double matrices = kLayers * kH * (kQkv + kH + 3 * kF);
  EXPECT_DOUBLE_EQ(held(model(attention())) - held(narrow),
                   matrices * (2 - (0.5 + (1 + 4 / 256.0) / 64)));
}

std::map<CollectiveKind, Traffic> traffic(const Pieces& pass) {
  std::map<CollectiveKind, Traffic> sums;
  for (const program::Task& task : only_block(pass).tasks) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr) continue;
    ++sums[what->kind].operations;
    sums[what->kind].bytes += what->bytes.in_base();
  }
  return sums;
}

// With sequence parallelism over 2 ranks, of bf16, t tokens: forward, each branch gathers t x h and
// scatters sums of as much, as ever. At qkv the ranks gather x A (t x rank); at the output
// projection they add up x A, and exchange parts of the columns of (x A) B for parts of the tokens:
// each gives away t x h / 2.
TEST(Adapters, MoveNarrowTensorsBetweenTensorRanks) {
  const LoweredModel blocks = blocks_of(model(attention()), on(2, 1));
  const double wide = 2 * kS * kH;
  const double narrow = 2 * kS * kRank;
  EXPECT_THAT(traffic(blocks.layers[1].forward),
              ElementsAre(Pair(CollectiveKind::kAllReduce, Traffic{1, narrow}),
                          Pair(CollectiveKind::kAllGather, Traffic{3, 2 * wide + narrow}),
                          Pair(CollectiveKind::kReduceScatter, Traffic{2, 2 * wide}),
                          Pair(CollectiveKind::kAllToAll, Traffic{1, wide / 2})));
}

// Frozen layers have no gradients to reduce: data-parallel ranks add up those of the adapters, all
// of one layer at once, and gather what the optimizer has updated alone.
TEST(Adapters, AloneAreReducedAndGathered) {
  Strategy s = on(1, 4, 1);
  auto program = value_of(lower(model(), s, {}));
  std::map<CollectiveKind, Traffic> sums;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr || what->purpose != program::Purpose::kData || what->bytes == 4_B) return;
    ++sums[what->kind].operations;
    sums[what->kind].bytes += what->bytes.in_base();
  });
  EXPECT_THAT(sums, ElementsAre(Pair(CollectiveKind::kAllGather, Traffic{1, 2 * kAdapters}),
                                Pair(CollectiveKind::kReduceScatter, Traffic{3, 4 * kAdapters})));
}

// 4 operations for each element of a frozen matrix and token, 6 for one of an adapter, attention
// whole: what NVIDIA's tables of fine-tuned models count.
TEST(Adapters, CountFourOperationsForAFrozenElement) {
  const double matrices = kLayers * kH * (kQkv + kH + 3 * kF) + kH * kV;
  const double scores = kLayers * 12 * kS * kS * kH;
  EXPECT_DOUBLE_EQ(model_flops(model(), 1).in_base(), kS * (4 * matrices + 6 * kAdapters) + scores);
  EXPECT_DOUBLE_EQ(forward_flops(model(), 1).in_base(),
                   kS * (2 * matrices + 2 * kAdapters) + scores / 3);
}

// Checkpoints have masters and moments of the adapters alone. B of the first product of the
// feed-forward layer has two halves, as its weight has.
TEST(Adapters, HaveStatesOfTheirOwn) {
  std::map<std::string, PlacedTensor> tensors;
  for (PlacedTensor& tensor : parameters_of(model(), on(2, 1))) tensors[tensor.name] = tensor;
  EXPECT_THAT(tensors, Contains(testing::Key("layers.0.qkv.adapter_in.weight.master")));
  EXPECT_THAT(tensors, Not(Contains(testing::Key("layers.0.qkv.weight.master"))));
  EXPECT_THAT(tensors, Not(Contains(testing::Key("embedding.weight.first_moment"))));
  EXPECT_EQ(tensors.at("layers.0.mlp_up.adapter_out.weight").shape, (Shape{8, 2, 64}));
  EXPECT_EQ(tensors.at("layers.0.attention_out.adapter_in.weight").shape, (Shape{32, 8}));
  EXPECT_EQ(tensors.at("layers.0.attention_out.adapter_in.weight").layout.attribute.dims[0].size(),
            1U);  // split by rows
}

TEST(Adapters, OfARankThatRanksCannotShareAreRefused) {
  Model odd = model();
  odd.adapters->rank = 6;
  EXPECT_THAT(faults_in(on(4, 1), odd, 4),
              Contains(testing::Field(&StrategyFault::message,
                                      HasSubstr("adapters of rank 6 cannot be split 4 ways"))));
}

}  // namespace foreshard::lower::adapters_test
