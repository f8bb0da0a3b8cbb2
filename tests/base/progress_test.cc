#include "base/progress.h"

#include <thread>
#include <utility>
#include <vector>

#include "base/caller.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using namespace std::chrono_literals;

// By hand: 12 of 96 in 3 s leave 84 ticks at 4 per second: 21 s.
TEST(Progress, SaysHowFarAndHowLong) {
  EXPECT_EQ(progress_line("simulating", 12, 96, 3s), "simulating 12/96 (12 %), 21 s left");
  EXPECT_EQ(progress_line("simulating", 96, 96, 3s), "simulating 96/96 (100 %)");
  EXPECT_EQ(progress_line("reading", 7, 0, 3s), "reading 7");
}

TEST(Progress, CountsRoundByRound) {
  std::vector<std::pair<std::int64_t, std::int64_t>> heard;
  Caller caller;
  caller.progress = [&](std::string_view, std::int64_t done, std::int64_t total) {
    heard.emplace_back(done, total);
  };
  const CalledBy called(&caller);
  Progress progress("simulating", 0);
  progress.at(4, 4);
  progress.at(1, 2);
  EXPECT_THAT(heard, testing::ElementsAre(testing::Pair(4, 4), testing::Pair(1, 2)));
}

TEST(Progress, IsSilentForShortWorkAndWithoutTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress quick("quick", 1000, {.interactive = true, .escapes = true});
    Progress piped("piped", 1000, {.interactive = false, .escapes = false});
    for (int i = 0; i < 1000; ++i) {
      quick.tick();
      piped.tick();
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, DrawsAfterASecondFromAnyThreadAndCleansUp) {
  testing::internal::CaptureStderr();
  {
    Progress slow("slow", 80, {.interactive = true, .escapes = false});
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 12; ++i) {
          slow.tick();
          std::this_thread::sleep_for(100ms);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  const std::string drawn = testing::internal::GetCapturedStderr();
  EXPECT_NE(drawn.find("\rslow "), std::string::npos) << drawn;
  EXPECT_EQ(drawn.find('\n'), std::string::npos);
  EXPECT_EQ(drawn.back(), '\r');
}

}  // namespace
}  // namespace foreshard
