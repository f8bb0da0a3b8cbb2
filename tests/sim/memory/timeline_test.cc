#include "sim/memory/timeline.h"

#include <rapidcheck.h>

#include "tests/test.h"

namespace foreshard::memory {
namespace {

constexpr auto kActivations = MemoryKind::kActivations;
constexpr auto kBuffers = MemoryKind::kBuffers;

Bytes of(const BytesByKind& live, MemoryKind kind) {
  return live[static_cast<std::size_t>(kind)];
}

// 100 MB stay. 30 from 1 to 4 ms, 20 from 2 to 3 ms, 25 from 3 to 5 ms:
//   at 2 ms 150, at 3 ms 155 (the 20 are gone when the 25 come), at 4 ms 125.
TEST(LiveBytes, MatchesTheHandWorkedExample) {
  const std::vector<program::StaticMemory> parameters{{MemoryKind::kParameters, 60_MB},
                                                      {MemoryKind::kOptimizer, 40_MB}};
  const LiveBytes live = live_bytes(parameters,
                                    {{1_ms, kActivations, 30_MB},
                                     {3_ms, kActivations, 25_MB},
                                     {2_ms, kBuffers, 20_MB},
                                     {3_ms, kBuffers, -20_MB},
                                     {5_ms, kActivations, -25_MB},
                                     {4_ms, kActivations, -30_MB}},
                                    100);
  EXPECT_EQ(live.peak, 155_MB);
  EXPECT_EQ(live.peak_time, 3_ms);
  EXPECT_EQ(of(live.at_peak, MemoryKind::kParameters), 60_MB);
  EXPECT_EQ(of(live.at_peak, MemoryKind::kOptimizer), 40_MB);
  EXPECT_EQ(of(live.at_peak, kActivations), 55_MB);
  EXPECT_EQ(of(live.at_peak, kBuffers), 0_B);
  ASSERT_EQ(live.curve.size(), 6u);
  EXPECT_EQ(live.curve[0].time, 0_s);
  EXPECT_EQ(of(live.curve[2].live, kBuffers), 20_MB);
  EXPECT_EQ(of(live.curve[5].live, kActivations), 0_B);
}

TEST(LiveBytes, IsTheResidentMemoryWithoutEvents) {
  const std::vector<program::StaticMemory> parameters{{MemoryKind::kParameters, 7_B}};
  const LiveBytes live = live_bytes(parameters, {});
  EXPECT_EQ(live.peak, 7_B);
  EXPECT_EQ(live.peak_time, 0_s);
  EXPECT_TRUE(live.curve.empty());
}

TEST(LiveBytes, TakesTheEarliestOfEqualPeaks) {
  const LiveBytes live = live_bytes({}, {{1_s, kBuffers, 4_B},
                                         {2_s, kBuffers, -4_B},
                                         {3_s, kActivations, 4_B},
                                         {4_s, kActivations, -4_B}});
  EXPECT_EQ(live.peak_time, 1_s);
  EXPECT_EQ(of(live.at_peak, kBuffers), 4_B);
}

struct Buffer {
  int from, to, bytes;
};
std::vector<Buffer> arbitrary_buffers() {
  std::vector<Buffer> buffers;
  for (const auto& [from, length, bytes] :
       *rc::gen::arbitrary<std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint16_t>>>())
    buffers.push_back({from, from + length, bytes});
  return buffers;
}
std::vector<Event> events_of(const std::vector<Buffer>& buffers) {
  std::vector<Event> events;
  for (const auto& b : buffers) {
    const auto kind = b.bytes % 2 == 0 ? kActivations : kBuffers;
    events.push_back({b.from * 1_s, kind, b.bytes * 1_B});
    events.push_back({b.to * 1_s, kind, -(b.bytes * 1_B)});
  }
  return events;
}

// A buffer is live in [from, to): the peak is the largest sum over whole instants.
TEST(LiveBytes, FindsThePeakOfAnyBuffers) {
  EXPECT_TRUE(rc::check("the peak is that of counting at every instant", [] {
    const auto buffers = arbitrary_buffers();
    int peak = 0, when = 0;
    for (int t = 0; t <= 512; ++t) {
      int sum = 0;
      for (const Buffer& b : buffers)
        if (b.from <= t && t < b.to) sum += b.bytes;
      if (sum > peak) {
        peak = sum;
        when = t;
      }
    }
    const LiveBytes live = live_bytes({}, events_of(buffers));
    RC_ASSERT(live.peak == peak * 1_B);
    RC_ASSERT(live.peak_time == when * 1_s);
  }));
}

TEST(LiveBytes, ThinsTheCurveButKeepsThePeak) {
  EXPECT_TRUE(rc::check("few samples, in order, with the peak among them", [](bool reversed) {
    auto events = events_of(arbitrary_buffers());
    if (reversed) std::reverse(events.begin(), events.end());
    const auto most = *rc::gen::inRange<std::size_t>(2, 20);
    const LiveBytes live = live_bytes({}, events, most);
    RC_ASSERT(live.curve.size() <= most);
    RC_ASSERT(!live.curve.empty());
    Bytes highest;
    for (std::size_t i = 0; i < live.curve.size(); ++i) {
      if (i > 0) RC_ASSERT(live.curve[i - 1].time < live.curve[i].time);
      Bytes sum;
      for (const Bytes bytes : live.curve[i].live) sum += bytes;
      highest = std::max(highest, sum);
    }
    RC_ASSERT(highest == live.peak);
  }));
}

}  // namespace
}  // namespace foreshard::memory
