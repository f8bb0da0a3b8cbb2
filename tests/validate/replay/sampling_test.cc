
#include "tests/test.h"

#include "validate/replay/session.h"

namespace foreshard::replay {
namespace {

TEST(Sampler, ReadsUntilItIsStopped) {
  int count = 0;
  Sampler sampler([&] { return measure::Reading{.clock_mhz = ++count * 1.0}; }, 2_ms);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto readings = sampler.stop();
  ASSERT_GT(readings.size(), 1U);
  EXPECT_EQ(readings.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(readings.front().clock_mhz, 1);
}

TEST(Sampler, EndsWithoutBeingAskedForAnything) {
  const Sampler sampler([] { return measure::Reading{}; }, 60_s);
}

}  // namespace
}  // namespace foreshard::replay
