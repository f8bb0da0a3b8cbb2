#include "validate/measurement/measurement.h"

#include "tests/test.h"

namespace foreshard::measure {
namespace {

// Sorted: clocks 1700, 1900, 1980; watts 500, 700.
TEST(During, HasLowestMedianHighestAndAllReasons) {
  const auto during =
      value_of(during_of({{.clock_mhz = 1980, .watts = 700, .throttle = {"idle"}},
                          {.clock_mhz = 1700, .throttle = {"sw_power_cap"}},
                          {.clock_mhz = 1900, .watts = 500, .throttle = {"idle"}}}));
  EXPECT_EQ(during.samples, 3);
  EXPECT_EQ(during.clock_mhz, (Span{1700, 1900, 1980}));
  EXPECT_EQ(during.watts, (Span{500, 700, 700}));
  EXPECT_FALSE(during.celsius);
  EXPECT_THAT(during.throttle, ElementsAre("idle", "sw_power_cap"));
  EXPECT_FALSE(during_of({{}, {}}));
}

// 5 % below 2000 MHz is 1900 MHz.
TEST(ClockRemarks, NameReasonsAndClocksThatFell) {
  const auto rank = [](std::int32_t number, Span clock, std::vector<std::string> throttle) {
    return RankRecord{
        .rank = number,
        .during = During{.samples = 5, .clock_mhz = clock, .throttle = std::move(throttle)}};
  };
  Measurement measurement;
  measurement.ranks = {
      {.rank = 0}, rank(1, {1901, 1950, 2000}, {"applications_clocks", "idle", "sw_power_cap"})};
  EXPECT_THAT(remarks_on_clocks(measurement), IsEmpty());
  measurement.ranks.push_back(rank(2, {1890, 1950, 2000}, {"sw_thermal"}));
  measurement.ranks.push_back(rank(3, {1800, 1950, 2000}, {"hw_slowdown", "sw_thermal"}));
  EXPECT_THAT(
      remarks_on_clocks(measurement),
      ElementsAre("the device of rank 3 was slowed down by hw_slowdown while its steps were "
                  "measured",
                  "the device of rank 2 and 1 more was slowed down by sw_thermal while its "
                  "steps were measured",
                  "the clock of rank 3 and 1 more varied between 1800 and 2000 MHz while "
                  "steps were measured; --for 90s shows where it settles"));
}

}  // namespace
}  // namespace foreshard::measure
