
#include <rapidcheck.h>

#include "tests/test.h"

#include "validate/compare/timeline.h"

namespace foreshard::compare {
namespace {

// 0    1    2    3    4    5    6
// kernel -------           kernel, cut off at 6
//      transfer -------
//                          transfer that starts with it: hidden
TEST(Booking, CountsEachInstantOnce) {
  const std::vector<Interval> intervals{
      {0_s, 2_s, 0}, {1_s, 3_s, 1}, {5_s, 9_s, 0}, {5_s, 6_s, 1}, {4_s, 4_s, 0}};
  const Booking booking = book(intervals, 6_s);
  EXPECT_EQ(booking.of_interval, (std::vector<Seconds>{2_s, 1_s, 1_s, 0_s, 0_s}));
  EXPECT_EQ(booking.nothing, 2_s);
}

TEST(Booking, OfEqualsTheFirstListedHasIt) {
  const std::vector<Interval> intervals{{1_s, 3_s, 0}, {0_s, 2_s, 0}};
  EXPECT_EQ(book(intervals, 3_s).of_interval, (std::vector<Seconds>{2_s, 1_s}));
}

TEST(Booking, AddsUpToTheWhole) {
  EXPECT_TRUE(rc::check([](const std::vector<std::tuple<std::uint8_t, std::uint8_t, bool>>& some) {
    std::vector<Interval> intervals;
    intervals.reserve(some.size());
    for (const auto& [begin, length, low] : some)
      intervals.push_back({Seconds::from_base(begin), Seconds::from_base(begin + length), low});
    const Booking booking = book(intervals, 200_s);
    Seconds sum = booking.nothing;
    for (const Seconds time : booking.of_interval) sum += time;
    RC_ASSERT(sum == 200_s);  // whole seconds: exact
  }));
}

}  // namespace
}  // namespace foreshard::compare
