#include "strategies/program/ir/kernel.h"

#include "tests/sim/compute/attention.h"
#include "tests/test.h"

namespace foreshard {
namespace {

TEST(Kernel, FlopsOfAProduct) {
  EXPECT_EQ(flops_of(Gemm{.batch = 3, .m = 2, .n = 5, .k = 7}), 2.0 * 3 * 2 * 5 * 7 * 1_FLOP);
}

// 2 sequences x 4 heads x 4 * 8 * 8 * 16 for two products, half of it under the mask;
// backward 2.5x.
TEST(Kernel, FlopsOfAttention) {
  Attention attention = attention_of(2, 4, 2, 8, 8, 16);
  EXPECT_EQ(flops_of(attention), 2 * 4 * 4.0 * 8 * 8 * 16 / 2 * 1_FLOP);
  attention.direction = Direction::kBackward;
  EXPECT_EQ(flops_of(attention), 2.5 * 2 * 4 * 4.0 * 8 * 8 * 16 / 2 * 1_FLOP);
  attention.causal = false;
  EXPECT_EQ(flops_of(attention), 2.5 * 2 * 4 * 4.0 * 8 * 8 * 16 * 1_FLOP);
}

// In a window of 3 of 8 tokens: a triangle of 3 x 3 / 2 scores, then five queries with 3 each, 19.5
// in all. Of heads of 16 columns whose values have 4, a score costs 2 (16 + 4) forward and
// 2 (3 x 16 + 2 x 4) backward.
TEST(Kernel, FlopsOfAttentionWithinAWindow) {
  Attention attention = attention_of(1, 4, 4, 8, 8, 16);
  attention.window = 3;
  EXPECT_EQ(scores_per_query(attention), (3 * 3 / 2.0 + 5 * 3) / 8);
  EXPECT_EQ(flops_of(attention), 4 * 19.5 * 2 * 32 * 1_FLOP);
  attention.value_dim = 4;
  EXPECT_EQ(flops_of(attention), 4 * 19.5 * 2 * 20 * 1_FLOP);
  attention.direction = Direction::kBackward;
  EXPECT_EQ(flops_of(attention), 4 * 19.5 * 2 * 56 * 1_FLOP);
  attention.window = 8;  // all
  EXPECT_EQ(flops_of(attention), 4 * 8 * 4.0 * 2 * 56 * 1_FLOP);
  attention.window = 0;
  EXPECT_EQ(flops_of(attention), 4 * 8 * 4.0 * 2 * 56 * 1_FLOP);
}

// Samples of 4 among 12 keys: triangles of 4 x 4 / 2 scores, 2 for a query. In a window of 2 of
// them 2 x 2 / 2 + 2 x 2 = 6 of 4 queries; all 4 without a mask. Samples as long as the keys are
// none.
TEST(Kernel, FlopsOfAttentionWithinPackedSamples) {
  Attention attention = attention_of(1, 4, 4, 12, 12, 16);
  attention.sample = 4;
  EXPECT_EQ(scores_per_query(attention), 2);
  EXPECT_EQ(flops_of(attention), 4 * 12 * 2.0 * 2 * 32 * 1_FLOP);
  attention.window = 2;
  EXPECT_EQ(scores_per_query(attention), 1.5);
  attention.causal = false;
  EXPECT_EQ(scores_per_query(attention), 4);
  attention.causal = true;
  attention.window = 0;
  attention.sample = 12;
  EXPECT_EQ(scores_per_query(attention), 6);
  EXPECT_EQ(describe(attention), "attention_fwd 1x4/4 seq 12x12 dim 16 causal sample 12 bf16");
}

// A 2 x 7 and B 7 x 5 in fp8, D 2 x 5 in two bytes; accumulating reads and writes D in fp32.
TEST(Kernel, BytesOfAProduct) {
  EXPECT_EQ(bytes_of(Gemm{.m = 2, .n = 5, .k = 7}), (14 + 35 + 10) * 2_B);
  EXPECT_EQ(bytes_of(Gemm{.m = 2, .n = 5, .k = 7, .dtype = DType::kFp8}), (14 + 35) * 1_B + 20_B);
  EXPECT_EQ(bytes_of(Gemm{.batch = 2, .m = 2, .n = 5, .k = 7, .accumulate = true}),
            2 * ((14 + 35) * 2_B + 10 * 8_B));
}

// Q and O: 4 heads x 8 x 16; K and V: 2 heads x 8 x 16; 2 B each.
TEST(Kernel, BytesOfAttentionFollowTheHeads) {
  EXPECT_EQ(bytes_of(attention_of(1, 4, 2, 8, 8, 16)), (2 * 512 + 2 * 256) * 2_B);
}

// Values, and results, of 4 columns beside queries and keys of 16; backward all twice.
TEST(Kernel, BytesOfAttentionFollowTheWidths) {
  Attention attention = attention_of(1, 4, 2, 8, 8, 16);
  attention.value_dim = 4;
  EXPECT_EQ(bytes_of(attention), (4 + 2) * 8 * (16 + 4) * 2_B);
  attention.direction = Direction::kBackward;
  EXPECT_EQ(bytes_of(attention), 2 * (4 + 2) * 8 * (16 + 4) * 2_B);
}

// Adam: 16 B of state in, 12 B out, and the working copy.
TEST(Kernel, BytesOfAPass) {
  EXPECT_EQ(bytes_of(Pass{.kind = PassKind::kAdam, .rows = 100}), 100 * 30_B);
  // Moments of two bytes: 4 + 2 + 2 in and out, with the gradient's 4 in and the copy's 2 out.
  EXPECT_EQ(bytes_of(Pass{.kind = PassKind::kAdam, .rows = 100, .state_bytes = 8}), 100 * 22_B);
  EXPECT_EQ(bytes_of(Pass{.kind = PassKind::kAdam, .rows = 100, .state_bytes = 12}), 100 * 30_B);
  EXPECT_EQ(bytes_of(Pass{.kind = PassKind::kSwigluForward, .rows = 3, .columns = 4}), 12 * 6_B);
  EXPECT_EQ(bytes_of(Pass{.kind = PassKind::kDropoutForward, .rows = 3, .columns = 4}), 12 * 5_B);
}

TEST(Kernel, EveryPassIsFoundByItsName) {
  for (auto kind = PassKind::kLayerNormForward; kind <= PassKind::kOptimizer;
       kind = static_cast<PassKind>(static_cast<int>(kind) + 1)) {
    const PassTraffic& line = traffic_of(kind);
    EXPECT_EQ(line.kind, kind);
    EXPECT_EQ(find_pass(line.name), &line) << line.name;
    EXPECT_GT(bytes_of(Pass{.kind = kind, .rows = 1}), 0_B) << line.name;
  }
  EXPECT_EQ(find_pass("no such pass"), nullptr);
}

TEST(Kernel, IsDescribed) {
  EXPECT_EQ(describe(Gemm{.m = 2048, .n = 12288, .k = 12288}), "gemm 2048x12288x12288 bf16");
  EXPECT_EQ(describe(Gemm{.batch = 8, .m = 1, .n = 2, .k = 3, .accumulate = true}),
            "gemm 1x2x3 batch 8 bf16 accumulate");
  EXPECT_EQ(describe(Gemm{.batch = 8, .m = 1, .n = 2, .k = 3, .matrix_units = false}),
            "gemm 1x2x3 batch 8 bf16 vector");
  EXPECT_EQ(describe(Gemm{.m = 1, .n = 2, .k = 3, .dtype = DType::kFp8, .scales = Scales::kBlocks}),
            "gemm 1x2x3 fp8 scaled blocks");
  EXPECT_EQ(describe(Gemm{.batch = 8, .m = 1, .n = 2, .k = 3, .apart = true}),
            "gemm 1x2x3 batch 8 bf16 apart");
  EXPECT_EQ(describe(attention_of(2, 32, 8, 4096, 4096, 128)),
            "attention_fwd 2x32/8 seq 4096x4096 dim 128 causal bf16");
  EXPECT_EQ(describe(Attention{.batch = 1,
                               .query_heads = 2,
                               .kv_heads = 2,
                               .query_length = 3,
                               .key_length = 4,
                               .head_dim = 5,
                               .causal = false,
                               .implementation = AttentionImplementation::kFlash2}),
            "attention_fwd 1x2/2 seq 3x4 dim 5 bf16 flash-2");
  EXPECT_EQ(describe(Attention{.batch = 1,
                               .query_heads = 2,
                               .kv_heads = 2,
                               .query_length = 8,
                               .key_length = 8,
                               .head_dim = 5,
                               .value_dim = 3,
                               .window = 4}),
            "attention_fwd 1x2/2 seq 8x8 dim 5/3 causal window 4 bf16");
  EXPECT_EQ(describe(Pass{.kind = PassKind::kRmsNormForward, .rows = 4, .columns = 5}),
            "rms_norm_fwd 4x5 bf16");
  EXPECT_EQ(describe(Pass{.kind = PassKind::kQuantize, .rows = 4, .columns = 5, .launches = 2}),
            "quantize 4x5 bf16 in 2 launches");
}

TEST(Kernel, AttentionImplementationsHaveNames) {
  for (int i = 0; i <= static_cast<int>(AttentionImplementation::kCudnn); ++i) {
    const auto one = static_cast<AttentionImplementation>(i);
    EXPECT_EQ(find_attention(name_of(one)), one);
  }
  EXPECT_EQ(find_attention("flash-9"), std::nullopt);
}

TEST(Kernel, DtypesHaveNamesAndSizes) {
  EXPECT_EQ(name_of(DType::kTf32), "tf32");
  EXPECT_EQ(size_of(DType::kTf32), 4_B);
  EXPECT_EQ(size_of(DType::kFp8), 1_B);
  EXPECT_EQ(size_of(DType::kFp4), 0.5_B);
  EXPECT_EQ(size_of(DType::kInt64), 8_B);
  for (const std::string& name : dtype_names()) EXPECT_EQ(name_of(find_dtype(name).value()), name);
  EXPECT_EQ(find_dtype("fp5"), std::nullopt);
}

// 16 bytes are 32 numbers of fp4.
TEST(Kernel, RowsOfFourBitsAreAligned) {
  const auto aligned = [](std::int64_t n, std::int64_t k) {
    return has_aligned_rows(Gemm{.m = 3, .n = n, .k = k, .dtype = DType::kFp4});
  };
  EXPECT_TRUE(aligned(32, 64));
  EXPECT_FALSE(aligned(16, 64));
  EXPECT_FALSE(aligned(32, 33));
  // 33 tokens lie across the rows of both operands of a weight's gradient, whose own have 16.
  EXPECT_TRUE(has_aligned_rows(Gemm{.m = 16, .n = 16, .k = 33, .accumulate = true}));
  EXPECT_FALSE(has_aligned_rows(Gemm{.m = 12, .n = 16, .k = 33, .accumulate = true}));
}

}  // namespace
}  // namespace foreshard
