#include "validate/replay/host/memory.h"

#include <cstring>

#include "tests/test.h"

namespace foreshard::replay::host {
namespace {

// By hand, in grains of 256 B: a 2, b 1, c 3 end at 6. Without b, 1 fits its gap and 2 go to the
// end; without a, too, 3 fit the gap of both.
TEST(Heap, FillsGapsFirst) {
  constexpr std::size_t kGrain = Heap::kGrain;
  Heap heap;
  EXPECT_EQ(heap.allocate(2 * kGrain), 0U);
  EXPECT_EQ(heap.allocate(1), 2 * kGrain);  // rounded up
  EXPECT_EQ(heap.allocate(3 * kGrain), 3 * kGrain);
  heap.free(2 * kGrain, 1);
  EXPECT_EQ(heap.allocate(2 * kGrain), 6 * kGrain);
  EXPECT_EQ(heap.allocate(kGrain), 2 * kGrain);
  heap.free(0, 2 * kGrain);
  heap.free(2 * kGrain, kGrain);
  EXPECT_EQ(heap.allocate(3 * kGrain), 0U);
  EXPECT_EQ(heap.extent(), 8 * kGrain);
  EXPECT_EQ(heap.peak(), 8 * kGrain);
  EXPECT_EQ(heap.live(), 8 * kGrain);
}

// Blocks never overlap, and what is given back is used again: with everything free the heap is
// empty, whatever the order.
TEST(Heap, NeverGivesTheSameBytesTwice) {
  std::mt19937 random(3);
  Heap heap;
  struct Block {
    std::size_t offset, bytes;
  };
  std::vector<Block> live;
  for (int i = 0; i < 5000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t bytes = random() % 5000;
      const std::size_t offset = heap.allocate(bytes);
      for (const Block& other : live)
        ASSERT_TRUE(offset + bytes <= other.offset || other.offset + other.bytes <= offset ||
                    bytes == 0 || other.bytes == 0);
      ASSERT_LE(offset + bytes, heap.extent());
      live.push_back({offset, bytes});
    } else {
      const std::size_t which = random() % live.size();
      heap.free(live[which].offset, live[which].bytes);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
    ASSERT_LE(heap.live(), heap.peak());
    ASSERT_LE(heap.peak(), heap.extent());
  }
  for (const Block& block : live) heap.free(block.offset, block.bytes);
  EXPECT_EQ(heap.live(), 0U);
  EXPECT_EQ(heap.allocate(heap.extent()), 0U);  // One gap.
}

TEST(Region, GoesRoundAndKeepsPiecesOfOneKernelApart) {
  Region region = value_of(Region::make(std::size_t{2} << 20, Region::Content::kZero));
  const auto first = region.take(100);
  EXPECT_EQ(region.take(1).data(), first.data() + 128);
  region.begin(region.size());
  EXPECT_EQ(region.take(region.size()).data(), first.data());
  region.rewind();
  EXPECT_EQ(region.take(8).data(), first.data());
}

// Of both signs, 0.25 to 0.5 as fp32, and as bf16 in both halves.
TEST(Region, HoldsOrdinaryNumbers) {
  Region region = value_of(Region::make(std::size_t{1} << 20, Region::Content::kOrdinary));
  const auto bytes = region.take(region.size());
  int negative = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    ASSERT_GE(std::fabs(value), 0.25F);
    ASSERT_LT(std::fabs(value), 0.5F);
    negative += value < 0 ? 1 : 0;
  }
  const auto count = static_cast<double>(bytes.size()) / 4;
  EXPECT_NEAR(negative / count, 0.5, 0.01);
}

TEST(Memory, TellsWhatIsLeft) {
  EXPECT_GT(available_memory(), 1_MB);
  EXPECT_LT(available_memory(), 1e6 * 1_GB);
  EXPECT_GT(address_space_left(), 1_MB);
  if (const auto cache = cache_share()) {
    EXPECT_GT(*cache, 1_kB);
  }
}

}  // namespace
}  // namespace foreshard::replay::host
