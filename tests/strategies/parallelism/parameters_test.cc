#include "strategies/parallelism/parameters.h"

#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

namespace foreshard::parameters_test {

// vocabulary 10 is padded to a multiple of 4 x tensor parallelism.
Model model() {
  return written_model(
      "name: m, layers: 4, hidden: 6, heads: 2, ffn: 8, vocabulary: 10, sequence: 5, norm: "
      "rms-norm, activation: swiglu, positions: rotary, bias: false, tied_embeddings: true, "
      "dropout: false");
}

Strategy strategy(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  Strategy strategy;
  strategy.tensor_parallel = tp;
  strategy.pipeline_parallel = pp;
  strategy.data_parallel = dp;
  strategy.global_batch = 8;
  strategy.framework.value.vocabulary_multiple = 4;
  return strategy;
}

std::map<std::string, PlacedTensor> by_name(const Model& model, const Strategy& strategy) {
  std::map<std::string, PlacedTensor> map;
  for (PlacedTensor& tensor : parameters_of(model, strategy)) {
    EXPECT_EQ(fault_in(tensor.layout, tensor.shape), std::nullopt) << tensor.name;
    EXPECT_TRUE(map.emplace(tensor.name, tensor).second) << tensor.name << " twice";
  }
  return map;
}

Box box_on(const PlacedTensor& tensor, std::int32_t rank) {
  for (std::int64_t p = 0; p < tensor.layout.mesh.size(); ++p)
    if (tensor.layout.mesh.ranks[static_cast<std::size_t>(p)] == rank)
      return slice_of(tensor.layout, tensor.shape, p);
  return {};
}

// Muon keeps one moment of weights of layers, two of all others; moments have the types that are
// asked for; without a master copy there is none.
TEST(Parameters, HaveTheStatesOfTheOptimizer) {
  Strategy s = strategy(1, 1, 2);
  s.optimizer.rule = "muon";
  auto tensors = by_name(model(), s);
  EXPECT_TRUE(tensors.contains("layers.0.qkv.weight.master"));
  EXPECT_TRUE(tensors.contains("layers.0.qkv.weight.first_moment"));
  EXPECT_FALSE(tensors.contains("layers.0.qkv.weight.second_moment"));
  EXPECT_TRUE(tensors.contains("embedding.weight.second_moment"));
  EXPECT_TRUE(tensors.contains("final_norm.weight.second_moment"));
  s.optimizer = {.first_moment = DType::kBf16, .second_moment = DType::kFp8};
  tensors = by_name(model(), s);
  EXPECT_EQ(tensors.at("layers.0.qkv.weight.first_moment").dtype, DType::kBf16);
  EXPECT_EQ(tensors.at("layers.0.qkv.weight.second_moment").dtype, DType::kFp8);
  EXPECT_EQ(tensors.at("layers.0.qkv.weight.master").dtype, DType::kFp32);
  s.optimizer = {.rule = "adam-8bit", .master = DType::kBf16};
  tensors = by_name(model(), s);
  EXPECT_FALSE(tensors.contains("layers.0.qkv.weight.master"));
  EXPECT_EQ(tensors.at("layers.0.qkv.weight.second_moment").dtype, DType::kInt8);
}

// By hand, ranks tensor + 2 data + 4 stage: layers 0, 1 on ranks 0-3, layers 2, 3 on 4-7.
// The table: 10 rows padded to 16, 8 on each tensor rank, on both stages.
TEST(Parameters, LieWhereTheStrategyPutsThem) {
  const auto tensors = by_name(model(), strategy(2, 2, 2));
  const PlacedTensor& qkv = tensors.at("layers.2.qkv.weight");
  EXPECT_EQ(qkv.shape, (Shape{6, 18}));
  EXPECT_EQ(qkv.layout.mesh.ranks, (std::vector<std::int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(box_on(qkv, 6), (Box{{0, 0}, {6, 9}}));
  EXPECT_EQ(box_on(qkv, 7), (Box{{0, 9}, {6, 18}}));

  // Each tensor rank has half of the gate and half of the other projection.
  const PlacedTensor& up = tensors.at("layers.0.mlp_up.weight");
  EXPECT_EQ(up.shape, (Shape{6, 2, 8}));
  EXPECT_EQ(box_on(up, 1), (Box{{0, 0, 4}, {6, 2, 8}}));

  const PlacedTensor& table = tensors.at("embedding.weight");
  EXPECT_EQ(table.shape, (Shape{16, 6}));
  EXPECT_EQ(table.unpadded, (Shape{10, 6}));
  EXPECT_EQ(table.layout.mesh.ranks, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(box_on(table, 0), box_on(table, 6));
  EXPECT_FALSE(tensors.contains("logits.weight"));
  EXPECT_EQ(tensors.at("final_norm.weight").layout.mesh.ranks,
            (std::vector<std::int32_t>{4, 5, 6, 7}));

  const PlacedTensor& moment = tensors.at("layers.0.mlp_up.weight.second_moment");
  EXPECT_EQ(moment.dtype, DType::kFp32);
  EXPECT_EQ(moment.layout, up.layout);
  EXPECT_EQ(tensors.size(), 4U * (4U * 6U + 2U));  // 6 in a layer; the table and the last norm
}

TEST(Parameters, UntiedProjectionsAreTensorsOfTheirOwn) {
  Model untied = model();
  untied.tied_embeddings = false;
  const auto tensors = by_name(untied, strategy(2, 2, 1));
  EXPECT_EQ(tensors.at("embedding.weight").layout.mesh.ranks, (std::vector<std::int32_t>{0, 1}));
  const PlacedTensor& logits = tensors.at("logits.weight");
  EXPECT_EQ(logits.layout.mesh.ranks, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(logits.shape, (Shape{6, 16}));
  EXPECT_EQ(logits.unpadded, (Shape{6, 10}));
}

// By hand: 4 data-parallel ranks share 6 rows in parts of ceil(6 / 4) = 2, 2, 2, 0. Of the output
// projection [6, 6] each of 2 tensor ranks has 3 rows: parts of 1, 1, 1, 0.
TEST(Parameters, ZeroCutsTheFirstDimension) {
  Strategy shared = strategy(2, 1, 4);
  shared.zero_stage = 1;
  auto tensors = by_name(model(), shared);
  EXPECT_EQ(box_on(tensors.at("layers.0.qkv.weight"), 4), (Box{{0, 0}, {6, 9}}));
  // Rank 4 has tensor coordinate 0 and data coordinate 2.
  EXPECT_EQ(box_on(tensors.at("layers.0.qkv.weight.master"), 4), (Box{{4, 0}, {6, 9}}));
  EXPECT_EQ(box_on(tensors.at("layers.0.qkv.weight.master"), 7).elements(), 0);
  EXPECT_EQ(box_on(tensors.at("layers.0.attention_out.weight.master"), 5), (Box{{5, 0}, {6, 6}}));
  shared.zero_stage = 3;
  tensors = by_name(model(), shared);
  EXPECT_EQ(box_on(tensors.at("layers.0.qkv.weight"), 4), (Box{{4, 0}, {6, 9}}));
}

TEST(Parameters, InterleavedStagesHaveTheirChunks) {
  Strategy interleaved = strategy(1, 2, 1);
  interleaved.schedule = "interleaved";
  interleaved.virtual_stages = 2;
  const auto tensors = by_name(model(), interleaved);
  for (std::int32_t layer = 0; layer < 4; ++layer)
    EXPECT_EQ(tensors.at("layers." + std::to_string(layer) + ".qkv.weight").layout.mesh.ranks,
              std::vector<std::int32_t>{layer % 2});
}

// Two stages in a V: layers 0 and 3, and both ends of the model, on the first.
TEST(Parameters, OfAVLieThereAndBack) {
  Strategy v = strategy(1, 2, 1);
  v.schedule = "zb-v";
  v.virtual_stages = 2;
  const auto tensors = by_name(model(), v);
  for (const auto& [layer, stage] :
       {std::pair(0, 0), std::pair(1, 1), std::pair(2, 1), std::pair(3, 0)})
    EXPECT_EQ(tensors.at("layers." + std::to_string(layer) + ".qkv.weight").layout.mesh.ranks,
              std::vector<std::int32_t>{stage});
  EXPECT_EQ(tensors.at("embedding.weight").layout.mesh.ranks, std::vector<std::int32_t>{0});
  EXPECT_EQ(tensors.at("final_norm.weight").layout.mesh.ranks, std::vector<std::int32_t>{0});
}

TEST(Parameters, OfAForwardPassAreAlone) {
  Strategy forward = strategy(2, 1, 1);
  forward.mode = Mode::kForward;
  for (const auto& [name, tensor] : by_name(model(), forward))
    EXPECT_EQ(tensor.kind, StateKind::kParameter) << name;
  Strategy full = strategy(2, 1, 1);
  full.precision = DType::kFp32;
  EXPECT_FALSE(by_name(model(), full).contains("layers.0.qkv.weight.master"));
}

}  // namespace foreshard::parameters_test
