// What every schedule must obey, whoever adds it, over all shapes that it accepts.
#include <algorithm>
#include <array>
#include <gmock/gmock.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {
namespace {

struct Case {
  const Schedule* schedule;
  int stages, chunks, micro_batches;
  std::vector<std::vector<Slot>> orders;  // Per stage.
  std::string name() const {
    return std::string(schedule->name) + " p=" + std::to_string(stages) +
           " v=" + std::to_string(chunks) + " m=" + std::to_string(micro_batches);
  }
};

std::vector<Case> accepted_cases() {
  std::vector<Case> cases;
  for (const Schedule& schedule : schedules())
    for (const int p : {1, 2, 3, 4, 8})
      for (const int v : {1, 2, 3, 5})
        for (const int m : {1, 2, 3, 4, 6, 8, 12, 16, 40}) {
          Case c{&schedule, p, v, m, {}};
          for (int s = 0; s < p; ++s) {
            auto slots =
                order(schedule.name, {.stage = s, .stages = p, .chunks = v, .micro_batches = m});
            if (slots) c.orders.push_back(*std::move(slots));
          }
          if (c.orders.empty()) continue;
          EXPECT_EQ(std::ssize(c.orders), p) << c.name() << ": accepted on some stages only";
          cases.push_back(std::move(c));
        }
  return cases;
}

// Runs all stages with blocking dependencies: a forward pass needs that of the piece before, a
// backward pass that of the piece behind (the last piece's needs its own forward pass).
// \return finish times by (piece, direction, micro-batch), or nothing on a deadlock.
using Finish = std::map<std::tuple<int, Direction, int>, int>;
std::optional<Finish> run(const Case& c, int forward_time, int backward_time) {
  Finish finish;
  std::vector<std::size_t> next(c.orders.size(), 0);
  std::vector<int> free_at(c.orders.size(), 0);
  const int pieces = c.stages * c.chunks;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < c.orders.size(); ++s)
      for (; next[s] < c.orders[s].size(); ++next[s], moved = true) {
        const Slot& slot = c.orders[s][next[s]];
        const int piece = slot.chunk * c.stages + static_cast<int>(s);
        const bool forward = slot.direction == Direction::kForward;
        int ready = 0;
        if (!(forward && piece == 0)) {
          const auto needed = forward ? std::tuple(piece - 1, Direction::kForward, slot.micro_batch)
                              : piece == pieces - 1
                                  ? std::tuple(piece, Direction::kForward, slot.micro_batch)
                                  : std::tuple(piece + 1, Direction::kBackward, slot.micro_batch);
          const auto found = finish.find(needed);
          if (found == finish.end()) break;
          ready = found->second;
        }
        free_at[s] = std::max(free_at[s], ready) + (forward ? forward_time : backward_time);
        finish[{piece, slot.direction, slot.micro_batch}] = free_at[s];
      }
  }
  for (std::size_t s = 0; s < c.orders.size(); ++s)
    if (next[s] < c.orders[s].size()) return std::nullopt;
  return finish;
}

int makespan(const Finish& finish) {
  int last = 0;
  for (const auto& [pass, time] : finish) last = std::max(last, time);
  return last;
}

// The most passes that are forward but not yet backward.
int peak_in_flight(const std::vector<Slot>& slots) {
  int live = 0, peak = 0;
  for (const Slot& slot : slots) {
    live += slot.direction == Direction::kForward ? 1 : -1;
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(ScheduleContract, AcceptsSomeShapesOfEverySchedule) {
  std::set<std::string_view> names;
  for (const Case& c : accepted_cases()) names.insert(c.schedule->name);
  EXPECT_EQ(names.size(), schedules().size());
  EXPECT_TRUE(std::is_sorted(schedules().begin(), schedules().end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(ScheduleContract, RunsEachPassOnceAndBackwardAfterForward) {
  for (const Case& c : accepted_cases())
    for (const auto& slots : c.orders) {
      std::set<std::pair<int, int>> forward, backward;
      for (const Slot& slot : slots) {
        const std::pair pass(slot.chunk, slot.micro_batch);
        ASSERT_TRUE(slot.chunk >= 0 && slot.chunk < c.chunks) << c.name();
        ASSERT_TRUE(slot.micro_batch >= 0 && slot.micro_batch < c.micro_batches) << c.name();
        if (slot.direction == Direction::kForward) {
          ASSERT_TRUE(forward.insert(pass).second) << c.name();
        } else {
          ASSERT_TRUE(forward.contains(pass)) << c.name();
          ASSERT_TRUE(backward.insert(pass).second) << c.name();
        }
      }
      ASSERT_EQ(std::ssize(forward), c.chunks * c.micro_batches) << c.name();
      ASSERT_EQ(backward.size(), forward.size()) << c.name();
    }
}

TEST(ScheduleContract, NeverDeadlocks) {
  for (const Case& c : accepted_cases()) EXPECT_TRUE(run(c, 1, 2)) << c.name();
}

// With equal pieces: m v passes each way, and a bubble of p-1 passes each way of one chunk.
TEST(ScheduleContract, HasThePublishedBubble) {
  for (const Case& c : accepted_cases())
    for (const auto& [forward, backward] : {std::array{1, 1}, std::array{1, 2}, std::array{2, 5}}) {
      const auto finish = run(c, forward, backward);
      ASSERT_TRUE(finish) << c.name();
      EXPECT_EQ(makespan(*finish),
                (c.micro_batches * c.chunks + c.stages - 1) * (forward + backward))
          << c.name() << " forward " << forward << " backward " << backward;
    }
}

TEST(ScheduleContract, HoldsThePublishedNumberInFlight) {
  for (const Case& c : accepted_cases())
    for (int s = 0; s < c.stages; ++s) {
      const int p = c.stages, v = c.chunks, m = c.micro_batches;
      int expected = m;
      if (c.schedule->name == "1f1b") expected = std::min(p - s, m);
      if (c.schedule->name == "interleaved")
        expected = std::min(2 * (p - 1 - s) + (v - 1) * p + 1, m * v);
      EXPECT_EQ(peak_in_flight(c.orders[static_cast<std::size_t>(s)]), expected)
          << c.name() << " stage " << s;
    }
}

}  // namespace
}  // namespace foreshard::schedule
