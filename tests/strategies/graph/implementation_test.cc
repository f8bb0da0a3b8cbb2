#include "strategies/graph/implementation.h"

#include "tests/test.h"

#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace {

// Bytes an element of `kind` on 16-bit activations.
double bytes_an_element(PassKind kind, Implementation how) {
  Bytes sum;
  for (const Kernel& kernel : kernels_of(Pass{.kind = kind, .rows = 100, .columns = 10}, how))
    sum += bytes_of(kernel);
  return sum / 1000_B;
}

// With 2-byte activations, 4-byte ones in between, 6 for a cast from one to the other:
// forward  cast 6, square 8, mean 4, scale 8, cast 6, weight 4;
// backward weight 4, its gradient 6 + 2, cast 6, scale 8, gradient of the scale 12 + 4, of the mean
//          4, of the square 8 + 12, sum of both ways to x 12, cast 6.
TEST(Eager, RootMeanSquareNormGoesOverMemoryByTheOperator) {
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormForward, Implementation::kFused), 4);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormForward, Implementation::kEager), 36);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormBackward, Implementation::kFused), 6);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormBackward, Implementation::kEager), 84);
}

// silu 4, product 6; three gradients of 6 and 8 to put two halves side by side. Logits: cast 6, two
// reductions of 4, three passes of 8; one of 8 and a cast back.
TEST(Eager, SwigluAndTheLossLikewise) {
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kSwigluForward, Implementation::kEager), 10);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kSwigluBackward, Implementation::kEager), 26);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kCrossEntropyForward, Implementation::kEager), 38);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kCrossEntropyBackward, Implementation::kEager), 14);
}

// 30 and 9 kernels, of which 14 and 3 are of one row.
TEST(Eager, ChoiceOfExpertsIsManyKernels) {
  const auto rows = [](PassKind kind) {
    std::pair<int, int> count;
    for (const Kernel& kernel :
         kernels_of(Pass{.kind = kind, .rows = 100, .columns = 10}, Implementation::kEager))
      ++(std::get<Pass>(kernel).rows == 1 ? count.second : count.first);
    return count;
  };
  EXPECT_EQ(rows(PassKind::kTopK), std::pair(16, 14));
  EXPECT_EQ(rows(PassKind::kZero), std::pair(6, 3));
}

// Logits are read for the maximum and for the sum; backward they are read and their gradient is
// written.
TEST(Recomputed, LossReadsItsLogitsThreeTimes) {
  const auto how = Implementation::kRecomputed;
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kCrossEntropyForward, how), 4);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kCrossEntropyBackward, how), 4);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormForward, how), 4);
}

// Cast 6, norm in fp32 8; backward both again, the gradient in fp32 12, cast 6.
TEST(RecomputedFp32, NormIsDoneTwiceInFp32) {
  const auto how = Implementation::kRecomputedFp32;
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormForward, how), 14);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kRmsNormBackward, how), 32);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kLayerNormForward, how), 14);
  EXPECT_DOUBLE_EQ(bytes_an_element(PassKind::kLayerNormBackward, how), 32);
}

// A LayerNorm and a GELU are one kernel in PyTorch too.
TEST(Eager, LeavesAloneWhatIsOneKernelAnyway) {
  for (const PassKind kind : {PassKind::kLayerNormForward, PassKind::kGeluForward,
                              PassKind::kResidualAdd, PassKind::kEmbeddingForward}) {
    const Pass pass{.kind = kind, .rows = 3, .columns = 5};
    EXPECT_EQ(kernels_of(pass, Implementation::kEager), std::vector<Kernel>{pass});
  }
}

TEST(Eager, CastsNothingInFp32) {
  for (const Kernel& kernel : kernels_of(
           Pass{.kind = PassKind::kRopeForward, .rows = 2, .columns = 2, .dtype = DType::kFp32},
           Implementation::kEager))
    EXPECT_EQ(std::get<Pass>(kernel).kind, PassKind::kUnary);
}

// 4 query heads and 2 key-value heads of 10: of 80 columns, 60 turn.
TEST(Eager, RopeLeavesValuesAlone) {
  Graph graph;
  const TensorId in = add_input(graph, "qkv", {DType::kBf16, {2, 3, 80}});
  Settings settings{{"query_heads", std::int64_t{4}}, {"kv_heads", std::int64_t{2}}};
  const auto kernels = [&](bool eager) {
    settings.set("eager", eager);
    EXPECT_TRUE(add_operator(
        graph, {.type = "rope", .name = "rope", .inputs = {in}, .settings = settings}));
    return kernels_of(graph, graph.operators.back(), {{2, 3, 80}, {2, 3, 80}});
  };
  EXPECT_EQ(kernels(true).size(), 3u);
  for (const Kernel& kernel : kernels(true)) EXPECT_EQ(std::get<Pass>(kernel).columns, 60);
  EXPECT_EQ(std::get<Pass>(kernels(false).front()).columns, 80);
}

}  // namespace
}  // namespace foreshard
