// Where two things are the same, on functions whose answer is known.
#include "sim/study/break_even.h"

#include "tests/test.h"

namespace foreshard::study {
namespace {

TEST(BreakEven, IsWhereTheDifferenceIsZero) {
  const auto range = value_of(parse_range("1..100 USD/h"));
  EXPECT_EQ(range.unit, "USD/h");
  EXPECT_EQ(range.text_of(2.5), "2.5 USD/h");
  int asked = 0;
  const auto found = break_even(
      [&](double x) -> Result<double> {
        ++asked;
        return 3 * x - 21;
      },
      range);
  ASSERT_TRUE(found && found->value);
  EXPECT_NEAR(*found->value, 7, 7e-4);
  EXPECT_LT(asked, 30);
}

// Falling functions, ranges across zero, and zero at an end.
TEST(BreakEven, DoesNotMindTheDirection) {
  const auto at = [](const char* range, double zero) {
    return *break_even([=](double x) -> Result<double> { return zero - x; }, *parse_range(range));
  };
  EXPECT_NEAR(*at("-4..8", 2).value, 2, 1e-3);
  EXPECT_EQ(at("2..8", 2).value, 2);
  EXPECT_EQ(at("2..8", 8).value, 8);
}

TEST(BreakEven, SaysThatOneIsBetterEverywhere) {
  const auto found =
      value_of(break_even([](double x) -> Result<double> { return x; }, *parse_range("1..2")));
  EXPECT_FALSE(found.value);
  EXPECT_GT(found.at_low, 0);
}

// About zero no precision relative to the value is ever reached.
TEST(BreakEven, EndsAtZero) {
  int asked = 0;
  const auto at = [&](const char* range, double zero) {
    return *break_even(
        [&, zero](double x) -> Result<double> {
          ++asked;
          return x - zero;
        },
        *parse_range(range));
  };
  EXPECT_NEAR(*at("-5..5", 0).value, 0, 1e-5);
  EXPECT_NEAR(*at("-5..4", 0).value, 0, 1e-5);
  EXPECT_NEAR(*at("0..10", 1e-9).value, 0, 1e-5);
  EXPECT_LT(asked, 100);
}

TEST(BreakEven, OfAJumpSaysBetweenWhichValues) {
  for (const char* text : {"0..10", "-5..5", "1..10"}) {
    const double jump = text[0] == '1' ? 7 : 0;
    const auto found = break_even([=](double x) -> Result<double> { return x <= jump ? -1 : 1; },
                                  *parse_range(text));
    ASSERT_TRUE(found && found->between) << text;
    EXPECT_FALSE(found->value);
    EXPECT_LE(found->between->first, jump);
    EXPECT_GE(found->between->second, jump);
    EXPECT_LT(found->between->second - found->between->first, 1e-3);
  }
}

TEST(BreakEven, TriesWholeNumbersAlone) {
  auto range = *parse_range("8..64");
  range.whole = true;
  const auto at = [&](double zero) {
    return *break_even(
        [=](double x) -> Result<double> {
          EXPECT_EQ(x, std::round(x));
          return x - zero;
        },
        range);
  };
  EXPECT_EQ(at(21).value, 21);
  EXPECT_FALSE(at(21.5).value);
  EXPECT_EQ(at(21.5).between, std::pair(21.0, 22.0));
  EXPECT_EQ(at(8.1).between, std::pair(8.0, 9.0));
  EXPECT_EQ(at(63.9).between, std::pair(63.0, 64.0));
}

TEST(BreakEven, HandsOnFaults) {
  EXPECT_EQ(message_of(break_even(
                [](double) -> Result<double> {
                  return Error{Error::Code::kInvalidInput, "no such key"};
                },
                *parse_range("1..2"))),
            "no such key");
}

TEST(ValueRange, IsTwoNumbersWithOneUnit) {
  EXPECT_TRUE(parse_range("100 Gbit/s..800 Gbit/s"));
  EXPECT_EQ(parse_range("0.5 .. 2")->unit, "");
  for (const char* text : {"", "5", "5..", "..5", "8..2", "2..2", "1 GB/s..2 Gbit/s", "a..b"}) {
    const auto range = parse_range(text);
    ASSERT_FALSE(range) << text;
    EXPECT_THAT(range.error().message, HasSubstr("write LOW..HIGH")) << text;
  }
}

}  // namespace
}  // namespace foreshard::study
