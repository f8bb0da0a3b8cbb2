// Modules that predict more tokens: what is computed, moved, held and placed, by hand.
#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/parallelism/parameters.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::prediction_test {

using program::CollectiveKind;
using testing::Pair;

constexpr double kS = 64, kH = 32, kF = 48, kV = 512;
constexpr double kLayer = 4 * kH * kH + 3 * kH * kF + 2 * kH;
constexpr double kModule = kLayer + 2 * kH * kH + 3 * kH;

Model model(std::int64_t modules = 1) {
  return written_model(
      "name: small, layers: 3, hidden: 32, heads: 4, ffn: 48, vocabulary: 512, sequence: 64, norm: "
      "rms-norm, activation: swiglu, positions: rotary, bias: false, tied_embeddings: false, "
      "dropout: false, multi_token_prediction: " +
      std::to_string(modules));
}

Strategy on(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
  Strategy s = degrees(tensor, pipeline, data, 1, pipeline);
  s.sequence_parallel = tensor > 1;
  s.framework.value.overlap_tensor_gradients = false;
  if (pipeline == 2) s.layers_per_stage = {2, 1};
  return s;
}

LoweredModel blocks_of(const Model& model, const Strategy& strategy) {
  EXPECT_THAT(faults_in(strategy, model, strategy.devices()), IsEmpty());
  return value_of(lower_blocks(model, strategy));
}

double products(const Pieces& pass) {
  double operations = 0;
  for (const program::Task& task : only_block(pass).tasks)
    if (const auto* kernel = std::get_if<Kernel>(&task.body))
      if (const auto* gemm = std::get_if<Gemm>(kernel))
        operations += 2.0 * static_cast<double>(gemm->batch) * static_cast<double>(gemm->m) *
                      static_cast<double>(gemm->n) * static_cast<double>(gemm->k);
  return operations;
}

// A layer's products and the projection of both streams; the output projection once more.
TEST(Prediction, ComputesALayerAProjectionAndAnOutput) {
  const LoweredModel plain = blocks_of(model(0), on(1, 1, 1));
  const LoweredModel blocks = blocks_of(model(), on(1, 1, 1));
  ASSERT_EQ(blocks.predictions.size(), 1U);
  const LoweredBlock& module = blocks.predictions.front();
  const double projection = 2 * kS * 2 * kH * kH;
  const LoweredBlock& layer = plain.layers.front();
  EXPECT_EQ(products(module.forward), products(layer.forward) + projection);
  EXPECT_EQ(products(module.backward), products(layer.backward) + 2 * projection);
  EXPECT_EQ(products(blocks.head.forward), 2 * products(plain.head.forward));
  EXPECT_EQ(products(blocks.head.backward), 2 * products(plain.head.backward));
  EXPECT_EQ(products(plain.head.forward), 2 * kS * kH * kV);
}

// What tensor-parallel ranks exchange around the projection, as in Megatron-LM: both streams are
// gathered before it, its columns behind it, of which each rank goes on with its tokens.
TEST(Prediction, GathersItsProjection) {
  const LoweredModel blocks = blocks_of(model(), on(2, 1, 1));
  std::map<std::string, std::pair<CollectiveKind, double>> found;
  for (const program::Task& task : only_block(blocks.predictions.front().forward).tasks)
    if (const auto* one = std::get_if<program::Communication>(&task.body))
      found[task.name] = {one->kind, one->bytes.in_base()};
  const double stream = 2 * kS * kH;
  EXPECT_THAT(found, Contains(Pair("reduce_scatter.embedded",
                                   std::pair(CollectiveKind::kReduceScatter, stream))));
  EXPECT_THAT(found, Contains(Pair("all_gather.joined",
                                   std::pair(CollectiveKind::kAllGather, 2 * stream))));
  EXPECT_THAT(
      found, Contains(Pair("all_gather.projected", std::pair(CollectiveKind::kAllGather, stream))));
}

double held(const Model& model, const Strategy& strategy, std::int64_t stage) {
  double bytes = 0;
  for (const auto& one : resident_memory(strategy, model, blocks_of(model, strategy), stage))
    if (one.kind == program::MemoryKind::kParameters) bytes += one.bytes.in_base();
  return bytes;
}

// The last stage has the module and a copy of the embedding's table.
TEST(Prediction, LiesOnTheLastStage) {
  const Strategy strategy = on(1, 2, 1);
  EXPECT_EQ(held(model(), strategy, 0), 2 * (kV * kH + 2 * kLayer));
  EXPECT_EQ(held(model(), strategy, 1), 2 * (kLayer + kModule + kH + 2 * kV * kH));
  EXPECT_EQ(held(model(2), strategy, 1), 2 * (kLayer + 2 * kModule + kH + 2 * kV * kH));
  Model tied = model();
  tied.tied_embeddings = true;
  EXPECT_EQ(held(tied, strategy, 1), 2 * (kLayer + kModule + kH + kV * kH));
  EXPECT_EQ(held(tied, on(1, 1, 1), 0), 2 * (3 * kLayer + kModule + kH + kV * kH));
  // A V has both ends of the model on one stage, which has the table once.
  Strategy v = strategy;
  v.schedule = "dualpipe-v";
  v.virtual_stages = 2;
  v.layers_per_stage = {1, 1, 1, 0};
  v.global_batch = 4;
  EXPECT_EQ(held(model(), v, 0), 2 * (kLayer + kModule + kH + 2 * kV * kH));
}

// Both copies of the table have the sum of their gradients.
TEST(Prediction, SharesTheTableOfTheEmbedding) {
  const auto program = value_of(lower(model(), on(1, 2, 1), {}));
  std::vector<double> sums;
  for (const program::Block& block : program.blocks)
    for (const program::Task& task : block.tasks)
      if (const auto* one = std::get_if<program::Communication>(&task.body);
          one != nullptr && one->tag == "tied_embedding.reduce")
        sums.push_back(one->bytes.in_base());
  EXPECT_THAT(sums, ElementsAre(4 * kV * kH));
  std::vector<std::string> names;
  for (const PlacedTensor& tensor : parameters_of(model(), on(1, 2, 1)))
    if (tensor.kind == StateKind::kParameter &&
        (!tensor.name.starts_with("layers.") || tensor.name.starts_with("layers.3.")))
      names.push_back(tensor.name);
  EXPECT_THAT(names,
              ElementsAre("embedding.weight", "final_norm.weight", "layers.3.embedding_norm.weight",
                          "layers.3.stream_norm.weight", "layers.3.projection.weight",
                          "layers.3.attention_norm.weight", "layers.3.qkv.weight",
                          "layers.3.attention_out.weight", "layers.3.mlp_norm.weight",
                          "layers.3.mlp_up.weight", "layers.3.mlp_down.weight",
                          "layers.3.prediction_norm.weight", "logits.weight"));
}

// The output projection has no norm before it that waits until ranks have added up the gradient of
// the streams: the module's backward pass does.
TEST(Prediction, WaitsForTheGradientOfTheStreams) {
  Strategy strategy = on(2, 1, 1);
  strategy.framework.value.overlap_tensor_gradients = true;
  const auto program = value_of(lower(model(), strategy, {}));
  const auto& calls = program.roles.front().calls;
  std::vector<std::string> awaited;
  for (const program::Call& call : calls) {
    if (program.blocks[call.block.index()].name != "prediction.backward") continue;
    for (const program::CallDependency& before : call.after) {
      const program::Call& earlier = calls[static_cast<std::size_t>(before.call)];
      if (before.task >= 0)
        awaited.push_back(program.blocks[earlier.block.index()]
                              .tasks[static_cast<std::size_t>(before.task)]
                              .name);
    }
  }
  EXPECT_THAT(awaited, ElementsAre("reduce_scatter.d.head_in"));
}

// Of what is computed again, streams and ids stay; where some layers only are, it is not.
TEST(Prediction, IsComputedAgainAsLayersAre) {
  Strategy strategy = on(1, 1, 1);
  strategy.recompute = Recompute::kFull;
  EXPECT_EQ(blocks_of(model(), strategy).predictions.front().saved.in_base(), 2 * kS * kH + 8 * kS);
  strategy.recompute_layers = 1;
  EXPECT_GT(blocks_of(model(), strategy).predictions.front().saved.in_base(), 10 * kS * kH);
}

}  // namespace foreshard::lower::prediction_test
