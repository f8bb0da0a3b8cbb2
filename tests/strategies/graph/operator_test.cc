#include <gtest/gtest.h>

#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace {

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

TEST(Equation, IsReadIntoLettersPerOperand) {
  EXPECT_EQ(operand_letters("bsi,io->bso"), (std::vector<std::string>{"bsi", "io", "bso"}));
  EXPECT_EQ(operand_letters("bsh,h,h->bsh,h"),
            (std::vector<std::string>{"bsh", "h", "h", "bsh", "h"}));
  EXPECT_EQ(operand_letters("bsh->h"), (std::vector<std::string>{"bsh", "h"}));
}

using Shapes = std::vector<std::vector<std::int64_t>>;

Kernel matmul(const std::string& equation, const Shapes& shapes, bool accumulates = false) {
  const Operator op{
      .name = "m", .kind = OperatorKind::kMatmul, .equation = equation, .accumulates = accumulates};
  return *kernel_of(op, shapes, shapes, DType::kFp16);
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
TEST(Equation, GivesTheThreeProductsOfALinearLayer) {
  EXPECT_EQ(matmul("bsi,io->bso", {{2, 3, 4}, {4, 5}, {2, 3, 5}}),
            Kernel(Gemm{.m = 6, .n = 5, .k = 4, .dtype = DType::kFp16}));
  EXPECT_EQ(matmul("bso,io->bsi", {{2, 3, 5}, {4, 5}, {2, 3, 4}}),
            Kernel(Gemm{.m = 6, .n = 4, .k = 5, .dtype = DType::kFp16}));
  EXPECT_EQ(matmul("bsi,bso->io", {{2, 3, 4}, {2, 3, 5}, {4, 5}}, true),
            Kernel(Gemm{.m = 4, .n = 5, .k = 6, .dtype = DType::kFp16, .accumulate = true}));
}

// 8 query heads share 2 key heads (letter a): every query head needs its product all the same, so
// the batch is 2 x 8 in scores, context, and the gradient of the keys.
TEST(Equation, CountsQueryHeadsOfGroupedAttention) {
  const std::vector<std::int64_t> query{2, 3, 8, 4};
  const std::vector<std::int64_t> key{2, 3, 2, 4};
  const std::vector<std::int64_t> scores{2, 8, 3, 3};
  EXPECT_EQ(matmul("bsad,btad->bast", {query, key, scores}),
            Kernel(Gemm{.batch = 16, .m = 3, .n = 3, .k = 4, .dtype = DType::kFp16}));
  EXPECT_EQ(matmul("bast,btad->basd", {scores, key, {2, 8, 3, 4}}),
            Kernel(Gemm{.batch = 16, .m = 3, .n = 4, .k = 3, .dtype = DType::kFp16}));
  EXPECT_EQ(matmul("bsad,bast->btad", {query, scores, key}),
            Kernel(Gemm{.batch = 16, .m = 4, .n = 3, .k = 3, .dtype = DType::kFp16}));
}

TEST(Kernel, OfAPassRunsOverTheOperandItNames) {
  const Operator positions{.name = "add_positions",
                           .equation = "bsh,sh->bsh",
                           .inputs = {TensorId{0}, TensorId{1}},
                           .outputs = {TensorId{2}},
                           .pass = PassKind::kBiasAdd,
                           .extent = 2};
  const Shapes shapes{{2, 3, 8}, {3, 8}, {2, 3, 8}};
  EXPECT_EQ(*kernel_of(positions, shapes, shapes, DType::kBf16),
            Kernel(Pass{PassKind::kBiasAdd, 6, 8, DType::kBf16}));
  const Operator view{.name = "view", .kind = OperatorKind::kView, .equation = "bsa->bsad"};
  EXPECT_FALSE(kernel_of(view, {{2, 3, 8}, {2, 3, 2, 4}}, shapes, DType::kBf16));
}

// 8 + 2 x 2 heads of width 4 packed in 48 columns, of which a rank has half: 4 and 1 heads. Its
// queries are split along the sequence too (context parallelism), keys are not.
TEST(Kernel, OfAttentionHasTheRanksHeads) {
  const Operator attention{.name = "attention",
                           .kind = OperatorKind::kAttention,
                           .equation = "bsa->bsa,bsa",
                           .heads = {.query_heads = 8, .kv_heads = 2, .head_dim = 4},
                           .direction = Direction::kBackward};
  EXPECT_EQ(*kernel_of(attention, {{2, 6, 24}}, {{2, 12, 48}}, DType::kBf16),
            Kernel(Attention{.batch = 2,
                             .query_heads = 4,
                             .kv_heads = 1,
                             .query_length = 6,
                             .key_length = 12,
                             .head_dim = 4,
                             .causal = true,
                             .direction = Direction::kBackward,
                             .dtype = DType::kBf16}));
}

}  // namespace
}  // namespace foreshard
