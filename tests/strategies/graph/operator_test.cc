
#include "tests/test.h"

#include "strategies/graph/operators/build.h"

namespace foreshard::operator_test {

const std::vector<MeshAxis> kTwoAxes{{"tensor", 2}, {"data", 4}};
constexpr Axis kTensor = 0;
constexpr Axis kData = 1;

// The drawing in attribute.h: batch split 4 ways, sequence 2 ways, hidden whole.
TEST(Attribute, SaysWhatARankHolds) {
  const Attribute activation{.dims = {{kData}, {kTensor}, {}}, .partial = {}};
  EXPECT_EQ(local_shape({8, 6, 5}, activation, kTwoAxes), (std::vector<std::int64_t>{2, 3, 5}));
  EXPECT_EQ(describe(activation, kTwoAxes), "[S(data), S(tensor), -]");

  const Attribute both{.dims = {{kData, kTensor}, {}}, .partial = {}};
  EXPECT_EQ(local_shape({16, 3}, both, kTwoAxes), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(describe(both, kTwoAxes), "[S(data, tensor), -]");
  EXPECT_EQ(ways(both.dims[0], kTwoAxes), 8);

  // A summand is as large as the sum.
  const Attribute summand{.dims = {{}, {}}, .partial = sums_over({kTensor})};
  EXPECT_EQ(local_shape({16, 3}, summand, kTwoAxes), (std::vector<std::int64_t>{16, 3}));
  EXPECT_EQ(describe(summand, kTwoAxes), "[-, -] partial(tensor)");
  EXPECT_EQ(describe(replicated(0), kTwoAxes), "[]");
}

TEST(Attribute, TellsWhatAnAxisDoes) {
  const Attribute attribute{.dims = {{}, {kData}}, .partial = sums_over({kTensor})};
  EXPECT_EQ(state_of(attribute, kData), (AxisState{AxisState::Kind::kSplit, 1}));
  EXPECT_EQ(state_of(attribute, kTensor), (AxisState{AxisState::Kind::kPartial, -1}));
  EXPECT_EQ(state_of(replicated(2), kTensor), (AxisState{AxisState::Kind::kReplicated, -1}));
}

using Shapes = std::vector<std::vector<std::int64_t>>;

// The one kernel of an operator of the table on inputs of these shapes.
Kernel kernel(OperatorSpec spec, const Shapes& inputs, bool accumulates = false) {
  Graph graph;
  for (const auto& shape : inputs)
    spec.inputs.push_back(add_input(graph, "in", {DType::kFp16, shape}));
  spec.name = "op";
  const auto outputs = value_of(add_operator(graph, std::move(spec)));
  Operator& op = graph.operators[0];
  op.accumulates = accumulates;
  Shapes shapes = inputs;
  for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
  const auto kernels = kernels_of(graph, op, shapes);
  EXPECT_EQ(kernels.size(), 1U);
  return kernels.front();
}

Kernel einsum(const std::string& equation, const Shapes& inputs, Settings more = {},
              bool accumulates = false) {
  more.set("equation", equation);
  return kernel({.type = "einsum", .settings = std::move(more)}, inputs, accumulates);
}

// 2 sequences of 3 tokens with 4 query and 2 key heads of 8 on this rank: values, a quarter of the
// packed 64 columns, are not normalised. 6 tokens have 36 heads of 8, or 6 rows of 48.
TEST(HeadNorm, IsOfQueriesAndKeysAlone) {
  for (const bool together : {false, true}) {
    Graph graph;
    const std::vector<TensorId> inputs{add_input(graph, "qkv", {DType::kBf16, {2, 3, 128}}),
                                       add_input(graph, "q", {DType::kBf16, {together ? 64 : 8}}),
                                       add_input(graph, "k", {DType::kBf16, {together ? 32 : 8}})};
    ASSERT_TRUE(add_operator(graph, {.type = "head_norm",
                                     .name = "qk_norm",
                                     .inputs = inputs,
                                     .settings = {{"query_heads", std::int64_t{8}},
                                                  {"kv_heads", std::int64_t{4}},
                                                  {"together", together}}}));
    const Pass expected{
        .kind = PassKind::kRmsNormForward, .rows = together ? 6 : 36, .columns = together ? 48 : 8};
    const std::vector<std::int64_t> half{2, 3, 64};
    EXPECT_EQ(kernels_of(graph, graph.operators[0], {half, {8}, {8}, half}),
              std::vector<Kernel>{expected});
  }
}

// y = x w of b s = 6 rows, its data gradient dy w^T and its weight gradient x^T dy.
TEST(Product, GivesTheThreeOfALinearLayer) {
  const Kernel forward = Gemm{.m = 6, .n = 5, .k = 4, .dtype = DType::kFp16};
  EXPECT_EQ(einsum("bsi,io->bso", {{2, 3, 4}, {4, 5}}), forward);
  EXPECT_EQ(kernel({.type = "matmul"}, {{2, 3, 4}, {4, 5}}), forward);
  EXPECT_EQ(kernel({.type = "matmul"}, {{2, 3, 4}, {4, 5}, {5}}), forward);  // a bias is free
  EXPECT_EQ(einsum("bso,io->bsi", {{2, 3, 5}, {4, 5}}),
            Kernel(Gemm{.m = 6, .n = 4, .k = 5, .dtype = DType::kFp16}));
  EXPECT_EQ(einsum("bsi,bso->io", {{2, 3, 4}, {2, 3, 5}}, {}, true),
            Kernel(Gemm{.m = 4, .n = 5, .k = 6, .dtype = DType::kFp16, .accumulate = true}));
}

// 8 query heads share 2 key heads (letter a): every query head needs its product all the same, so
// the batch is 2 x 8 in scores, context, and the gradient of the keys.
TEST(Product, CountsQueryHeadsOfGroupedAttention) {
  const std::vector<std::int64_t> query{2, 3, 8, 4};
  const std::vector<std::int64_t> key{2, 3, 2, 4};
  const std::vector<std::int64_t> scores{2, 8, 3, 3};
  const Settings heads{{"grouped", std::string("a")}};
  Settings keys = heads;
  keys.set("groups", std::int64_t{2});
  EXPECT_EQ(einsum("bsad,btad->bast", {query, key}, heads),
            Kernel(Gemm{.batch = 16, .m = 3, .n = 3, .k = 4, .dtype = DType::kFp16}));
  EXPECT_EQ(einsum("bast,btad->basd", {scores, key}, heads),
            Kernel(Gemm{.batch = 16, .m = 3, .n = 4, .k = 3, .dtype = DType::kFp16}));
  EXPECT_EQ(einsum("bsad,bast->btad", {query, scores}, keys),
            Kernel(Gemm{.batch = 16, .m = 4, .n = 3, .k = 3, .dtype = DType::kFp16}));
}

// Alone, rows of more than 1,024 elements take a kernel of their own; scale and mask are fused.
TEST(Kernel, OfASoftmaxGoesByItsRows) {
  const auto kind = [](std::int64_t columns, Settings settings) {
    const Kernel pass =
        kernel({.type = "softmax", .settings = std::move(settings)}, {{4, columns, columns}});
    return std::get<Pass>(pass).kind;
  };
  EXPECT_EQ(kind(1024, {}), PassKind::kSoftmaxForward);
  EXPECT_EQ(kind(1025, {}), PassKind::kLongSoftmaxForward);
  EXPECT_EQ(kind(2048, {{"axis", std::int64_t{0}}}), PassKind::kSoftmaxForward);
  EXPECT_EQ(kind(2048, {{"scale", 0.5}}), PassKind::kSoftmaxForward);
  EXPECT_EQ(kind(2048, {{"causal", true}}), PassKind::kSoftmaxForward);
}

// 8 + 2 x 2 heads of width 4 packed in 48 columns, of which a rank has half: 4 and 1 heads.
TEST(Kernel, OfAttentionHasTheRanksHeads) {
  Graph graph;
  const TensorId qkv = add_input(graph, "qkv", {DType::kBf16, {2, 12, 48}});
  ASSERT_TRUE(add_operator(
      graph, {.type = "packed_attention",
              .name = "attention",
              .inputs = {qkv},
              .settings = {{"query_heads", std::int64_t{8}}, {"kv_heads", std::int64_t{2}}}}));
  EXPECT_EQ(kernels_of(graph, graph.operators[0], {{2, 12, 24}, {2, 12, 16}, {2, 12, 4}}),
            std::vector<Kernel>{Kernel(Attention{.batch = 2,
                                                 .query_heads = 4,
                                                 .kv_heads = 1,
                                                 .query_length = 12,
                                                 .key_length = 12,
                                                 .head_dim = 4,
                                                 .causal = true,
                                                 .direction = Direction::kForward,
                                                 .dtype = DType::kBf16})});
}

// 12 columns of queries, keys and values, of 2 x 6 tokens: two thirds of them copied once forward,
// all of them twice backward.
TEST(Kernel, OfAttentionIsFollowedByCopies) {
  const auto passes = [](const std::string& type, std::size_t inputs,
                         const std::vector<std::vector<std::int64_t>>& shapes) {
    Graph graph;
    std::vector<TensorId> read;
    for (std::size_t i = 0; i < inputs; ++i)
      read.push_back(add_input(graph, "input" + std::to_string(i),
                               {i == 2 ? DType::kFp32 : DType::kBf16, shapes[i]}));
    EXPECT_TRUE(add_operator(graph, {.type = type,
                                     .name = "attention",
                                     .inputs = read,
                                     .settings = {{"query_heads", std::int64_t{1}},
                                                  {"kv_heads", std::int64_t{1}},
                                                  {"copies", 2.0 / 3},
                                                  {"gradient_copies", 2.0}}}));
    return kernels_of(graph, graph.operators[0], shapes);
  };
  const auto forward = passes("packed_attention", 1, {{2, 6, 12}, {2, 6, 4}, {2, 6, 1}});
  ASSERT_EQ(forward.size(), 2u);
  EXPECT_EQ(forward[1], Kernel(Pass{.kind = PassKind::kTranspose, .rows = 12, .columns = 8}));
  const auto backward = passes("packed_attention_gradient", 4,
                               {{2, 6, 12}, {2, 6, 4}, {2, 6, 1}, {2, 6, 4}, {2, 6, 12}});
  ASSERT_EQ(backward.size(), 2u);
  EXPECT_EQ(backward[1], Kernel(Pass{.kind = PassKind::kTranspose, .rows = 12, .columns = 24}));
}

// 3 x 5 logits: what the loss reads, and for each loss that is logged a cast of 6 bytes an element,
// a read of 4 and a pass of 8.
TEST(Kernel, OfALossIsFollowedByThoseThatAreLogged) {
  Graph graph;
  const TensorId logits = add_input(graph, "logits", {DType::kBf16, {1, 3, 5}});
  const TensorId maximum = add_input(graph, "maximum", {DType::kFp32, {1, 3, 1}});
  const TensorId targets = add_input(graph, "targets", {DType::kInt64, {1, 3}});
  ASSERT_TRUE(add_operator(graph, {.type = "vocabulary_cross_entropy",
                                   .name = "loss",
                                   .inputs = {logits, maximum, targets},
                                   .settings = {{"logged", std::int64_t{2}}}}));
  const auto kernels =
      kernels_of(graph, graph.operators[0], {{1, 3, 5}, {1, 3, 1}, {1, 3}, {1, 3, 2}, {1, 3, 5}});
  ASSERT_EQ(kernels.size(), 7u);
  Bytes logged;
  for (std::size_t i = 1; i < kernels.size(); ++i) logged += bytes_of(kernels[i]);
  EXPECT_EQ(logged, 2.0 * 15 * (6_B + 4_B + 8_B));
}

}  // namespace foreshard::operator_test
