#include "sim/engine/internal/event_queue.h"

#include "tests/sim/engine/random_workload.h"
#include "tests/test.h"

namespace foreshard::engine::internal {
namespace {

TEST(EventQueue, ReturnsItemsOfOneInstantTogether) {
  EventQueue queue;
  queue.push(3, 2.0);
  queue.push(1, 1.0);
  queue.push(2, 2.0);
  std::vector<std::int32_t> due;
  queue.pop_until(1.0, due);
  EXPECT_EQ(due, std::vector<std::int32_t>({1}));
  queue.pop_until(2.0, due);
  EXPECT_EQ(due, std::vector<std::int32_t>({1, 3, 2}));
  EXPECT_TRUE(queue.empty());
}

// Against a plain list, with few distinct times, so that groups form, split and merge.
TEST(EventQueue, AgreesWithAPlainListUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int distinct = seed % 2 == 0 ? 10 : 100000;
    EventQueue queue;
    std::map<std::int32_t, double> plain;
    double now = 0;
    for (int operation = 0; operation < 500; ++operation) {
      const std::int32_t item = random.below(100);
      const double time = now + random.below(distinct);
      ASSERT_EQ(queue.contains(item), plain.contains(item));
      if (!plain.contains(item))
        queue.push(item, time);
      else if (random.one_in(4))
        queue.remove(item);
      else
        queue.move(item, time);
      if (queue.contains(item))
        plain[item] = time;
      else
        plain.erase(item);
      if (plain.empty() || !random.one_in(4)) continue;
      now = std::ranges::min_element(plain, {}, [](const auto& p) { return p.second; })->second;
      ASSERT_EQ(queue.next_time(), now);
      std::vector<std::int32_t> due;
      queue.pop_until(now, due);
      std::ranges::sort(due);
      std::vector<std::int32_t> expected;
      for (const auto& [i, t] : plain)
        if (t <= now) expected.push_back(i);
      ASSERT_EQ(due, expected);
      std::erase_if(plain, [now](const auto& p) { return p.second <= now; });
    }
  }
}

}  // namespace
}  // namespace foreshard::engine::internal
