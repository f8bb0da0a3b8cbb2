// A machine that fails while results are stored, at any write, with what was not synced lost or in
// another order.
#include "tests/seeds.h"
#include "tests/sim/sweep/lossy_disk.h"
#include "tests/sim/sweep/stored.h"
#include "tests/test.h"

#include "sim/sweep/store.h"

namespace foreshard::sweep::power_loss_test {

constexpr std::int64_t kStored = 100;
constexpr std::size_t kSize = 150'000;  // SQLite merges its log each 4 MB: some 25 outcomes.

TEST(Store, LosesNothingThatWasMergedWhenPowerIsLost) {
  const TemporaryFolder folder;
  LossyDisk disk;
  std::size_t created = 0;
  std::vector<std::size_t> stored;  // Times when `put` returned.
  {
    std::vector<std::string> remarks;
    auto store = value_of(Store::open(folder.path() / "r.db", question(kStored), "work", remarks));
    created = disk.time();
    for (std::int64_t i = 0; i < kStored; ++i) {
      ASSERT_TRUE(store.put(i, key(i), outcome(i, kSize)).ok());
      stored.push_back(disk.time());
    }
  }
  disk.stop();
  const std::vector<std::size_t> syncs = disk.syncs();
  ASSERT_GT(syncs.size(), 8U);
  std::mt19937 random(1);
  std::int64_t beyond = 0;  // Outcomes that were found though they were not certain.
  for (unsigned i = 0; i < seeds(50U, 200U); ++i) {
    // Every other one between a sync and the next few writes, where the order matters.
    const std::size_t time =
        i % 2 == 0 ? random() % (disk.time() + 1)
                   : std::min(syncs[random() % syncs.size()] + random() % 20, disk.time());
    const TemporaryFolder found;
    for (const auto& [name, bytes] : disk.files_after_loss(time, random)) found.write(name, bytes);
    const auto last = std::ranges::lower_bound(syncs, time);
    const std::size_t certain = last == syncs.begin() ? 0 : *std::prev(last);
    std::vector<std::string> remarks;
    auto opened = Store::open(found.path() / "r.db", question(kStored), "work", remarks);
    if (time <= created) continue;  // Whatever is there, nothing was stored.
    ASSERT_TRUE(opened) << time << ": " << message_of(opened);
    Store store = *std::move(opened);
    EXPECT_THAT(remarks, IsEmpty()) << time;
    for (std::int64_t point = 0; point < kStored; ++point) {
      const std::size_t put = stored[static_cast<std::size_t>(point)];
      const auto outcome_there = value_of(store.find(key(point)));
      if (outcome_there)
        EXPECT_EQ(*outcome_there, outcome(point, kSize)) << time << ", point " << point;
      else
        EXPECT_GT(put, certain) << time << ", point " << point;
      beyond += outcome_there && put > certain ? 1 : 0;
    }
  }
  EXPECT_GT(beyond, 0);
}

}  // namespace foreshard::sweep::power_loss_test
