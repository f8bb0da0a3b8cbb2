// What proposals take, on a runtime without a device: ways that sleep.
#include "validate/replay/gpu/proposals.h"

#include <thread>

#include "tests/test.h"
#include "tests/validate/replay/gpu/fake_runtime.h"

namespace foreshard::replay::gpu {
namespace {

// Way 0 takes 2 ms, way 1 takes 1 ms, way 2 does not run. The first events are recorded after 30 ms
// of work; 5 runs of each way are timed, in turns.
TEST(Proposals, AreTimedInTurnsOnADeviceThatIsAtWork) {
  using Clock = std::chrono::steady_clock;
  fake_device() = FakeDevice{};
  const auto began = Clock::now();
  std::vector<std::size_t> timed;
  const auto times = value_of(time_proposals(
      3,
      [&](std::size_t way) {
        if (way == 2) return false;
        if (fake_device().records > 0) {
          if (timed.empty()) {
            EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(30));
          }
          timed.push_back(way);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(way == 0 ? 2 : 1));
        return true;
      },
      nullptr));
  EXPECT_EQ(timed, (std::vector<std::size_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  ASSERT_EQ(times.size(), 3U);
  EXPECT_GE(times[0].value(), 2_ms);
  EXPECT_GE(times[1].value(), 1_ms);
  EXPECT_FALSE(times[2]);
  EXPECT_EQ(fake_device().events, 0U);
}

}  // namespace
}  // namespace foreshard::replay::gpu
