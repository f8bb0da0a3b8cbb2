#include "strategies/graph/rule.h"

#include "tests/test.h"

namespace foreshard::rule_test {

using Shapes = std::vector<std::vector<std::int64_t>>;

// 6 = s times 2: h is alone in the output, so s is found by division.
TEST(Rule, FindsSizesOfJoinedFactors) {
  const auto rule = value_of(rule_from("b(sh)->hb", {{4, 6}, {2, 4}}, {.whole = "h"}));
  EXPECT_EQ(describe(rule), "b(sh)->hb, whole: h");
  EXPECT_EQ(rule.factors[1].size, 3);
  EXPECT_EQ(rule.factors[2].size, 2);
  EXPECT_EQ(misfit(rule, {{4, 6}, {2, 4}}), "");
}

// Twice as wide a gate: what splits both divides their greatest common divisor.
TEST(Rule, TakesWhatDividesBothOperands) {
  EXPECT_EQ(value_of(rule_from("bf->bf", {{4, 16}, {4, 8}})).factors[1].size, 8);
}

TEST(Rule, OfOutputsAloneIsWhole) {
  EXPECT_TRUE(value_of(rule_from("bs->bsc", {{4, 6}, {4, 6, 3}})).factors[2].whole);
}

TEST(Rule, SaysWhatIsWrongWithItsText) {
  const auto fault = [](const char* text, const Shapes& shapes) {
    return message_of(rule_from(text, shapes));
  };
  EXPECT_THAT(fault("bs", {{1, 2}}), HasSubstr("needs one '->'"));
  EXPECT_THAT(fault("b?->b", {{1}, {1}}), HasSubstr("'?' at 2 is out of place"));
  EXPECT_THAT(fault("b->b", {{1}}), HasSubstr("has 2 operands, not 1"));
  EXPECT_THAT(fault("bs->b", {{1}, {1}}), HasSubstr("operand 0 has 2 dimensions, not 1"));
  EXPECT_THAT(fault("bb->b", {{2, 2}, {2}}), HasSubstr("factor 'b' twice"));
}

}  // namespace foreshard::rule_test
