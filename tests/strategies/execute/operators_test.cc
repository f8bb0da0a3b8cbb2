// Kernels on one rank by hand: how packed projections are ordered, what a part of the vocabulary
// yields.
#include "tests/oracle/operators.h"

#include "tests/test.h"

namespace foreshard::execute {
namespace {

Operand whole(const Shape& shape, std::vector<double> values) {
  return {.whole = shape, .box = whole_of(shape), .values = std::move(values)};
}

// Gate and up alternate: columns 0 and 1 are gate 0 and up 0. silu(1) = 1 / (1 + e^-1).
TEST(Operators, SwigluAlternatesGateAndUp) {
  const std::vector<Operand> in{whole({1, 1, 4}, {1, 3, 0, 5})};
  std::vector<Operand> out{unwritten({1, 1, 2}, whole_of({1, 1, 2}))};
  compute({.name = "op", .type = "swiglu", .settings = {{"weighted", false}}}, in, out, {});
  EXPECT_DOUBLE_EQ(out[0].values[0], 3 / (1 + std::exp(-1)));
  EXPECT_EQ(out[0].values[1], 0);
}

// Two groups of two query heads of width 1: q0 q1 k0 v0 q2 q3 k1 v1. The right half is group 1.
TEST(Operators, PackedProjectionIsOrderedByGroup) {
  const Operator op{.name = "op",
                    .type = "split_heads",
                    .settings = {{"query_heads", std::int64_t{4}}, {"kv_heads", std::int64_t{2}}}};
  const std::vector<Operand> in{
      {.whole = {1, 1, 8}, .box = {{0, 0, 4}, {1, 1, 8}}, .values = {12, 13, 20, 30}}};
  std::vector<Operand> out{unwritten({1, 1, 4, 1}, {{0, 0, 2, 0}, {1, 1, 4, 1}}),
                           unwritten({1, 1, 2, 1}, {{0, 0, 1, 0}, {1, 1, 2, 1}}),
                           unwritten({1, 1, 2, 1}, {{0, 0, 1, 0}, {1, 1, 2, 1}})};
  compute(op, in, out, {});
  EXPECT_EQ(out[0].values, (std::vector<double>{12, 13}));
  EXPECT_EQ(out[1].values, (std::vector<double>{20}));
  EXPECT_EQ(out[2].values, (std::vector<double>{30}));
}

// Logits 0, log 2 on this rank, of four; the maximum of all is log 4, the target is entry 3: sum
// 1/4 + 2/4, target's logit log 2 - log 4.
TEST(Operators, CrossEntropyOfPartOfTheVocabulary) {
  const std::vector<Operand> in{
      {.whole = {1, 1, 4}, .box = {{0, 0, 2}, {1, 1, 4}}, .values = {0, std::log(2)}},
      whole({1, 1, 1}, {std::log(4)}),
      whole({1, 1}, {3})};
  std::vector<Operand> out{unwritten({1, 1, 2}, whole_of({1, 1, 2})),
                           unwritten({1, 1, 4}, {{0, 0, 2}, {1, 1, 4}})};
  compute({.name = "op", .type = "vocabulary_cross_entropy"}, in, out, {});
  EXPECT_NEAR(out[0].values[0], 0.75, 1e-15);
  EXPECT_NEAR(out[0].values[1], -std::log(2), 1e-15);
  EXPECT_NEAR(out[1].values[1], 0.5, 1e-15);
}

// Two ranks drop what one would: an element's fate is that of its place in the logical tensor.
TEST(Operators, DropoutGoesByThePlaceInTheLogicalTensor) {
  const Shape shape{8, 8};
  const Operator op{.name = "op", .type = "dropout", .settings = {{"rate", 0.5}}};
  const KernelContext context{.key = 5};
  const auto kept = [&](const Box& box) {
    const auto count = static_cast<std::size_t>(box.elements());
    const std::vector<Operand> in{{shape, box, std::vector<double>(count, 1.0)}};
    std::vector<Operand> out{unwritten(shape, box), unwritten(shape, box)};
    compute(op, in, out, context);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[0].values[i], 2 * out[1].values[i]);
    return out[1].values;
  };
  const auto all = kept(whole_of(shape));
  const auto below = kept({{4, 0}, {8, 8}});
  EXPECT_EQ(std::vector<double>(all.begin() + 32, all.end()), below);
  EXPECT_NE(std::vector<double>(all.begin(), all.begin() + 32), below);
}

}  // namespace
}  // namespace foreshard::execute
