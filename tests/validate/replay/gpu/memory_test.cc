// Where the Program's buffers lie, and what is said when they do not fit.
#include "validate/replay/gpu/memory.h"

#include "tests/test.h"
#include "tests/validate/replay/gpu/fake_runtime.h"

namespace foreshard::replay::gpu {
namespace {

// 512-byte granules: a at 0 (1 granule), b at 512 (2), c at 1536 (1). Without b there is a gap of
// 2: a buffer of 1 takes it, one of 2 then goes to the end.
TEST(Arena, TakesTheSmallestGapThatHolds) {
  Arena arena;
  EXPECT_EQ(arena.allocate(100), 0U);
  const std::size_t b = arena.allocate(1024);
  EXPECT_EQ(b, 512U);
  EXPECT_EQ(arena.allocate(1), 1536U);
  EXPECT_EQ(arena.peak(), 2048U);
  arena.free(b);
  EXPECT_EQ(arena.allocate(512), 512U);
  EXPECT_EQ(arena.allocate(1024), 2048U);
  EXPECT_EQ(arena.peak(), 3072U);
  EXPECT_EQ(arena.allocate(512), 1024U);  // the rest of the gap
  EXPECT_EQ(arena.peak(), 3072U);
}

TEST(Arena, PrefersTheTighterOfTwoGaps) {
  Arena arena;
  const std::size_t wide = arena.allocate(2048);
  arena.allocate(512);
  const std::size_t tight = arena.allocate(1024);
  arena.allocate(512);
  arena.free(wide);
  arena.free(tight);
  EXPECT_EQ(arena.allocate(1000), tight);
}

TEST(DeviceMemory, SaysWhatForHowMuchAndWhatIsFree) {
  fake_device().memory = std::size_t{1} << 20U;
  DeviceMemory held;
  ASSERT_TRUE(held.allocate(std::size_t{512} << 10U, "the first").ok());
  DeviceMemory memory;
  const auto error = memory.allocate(std::size_t{1} << 20U, "layer3.scores");
  fake_device().memory = std::size_t{1} << 30U;
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().code, Error::Code::kInfeasible);
  EXPECT_THAT(error.error().message,
              HasSubstr("out of memory for layer3.scores: 1.00 MiB asked for, 512"));
}

TEST(Ring, GivesPiecesOneAfterAnotherAndBeginsAgain) {
  DeviceMemory memory;
  ASSERT_TRUE(memory.allocate(1024, "a ring").ok());
  Ring ring;
  ring.over(memory);
  auto* base = static_cast<unsigned char*>(memory.data());
  EXPECT_EQ(ring.take(1), base);
  EXPECT_EQ(ring.take(300), base + 256);
  EXPECT_EQ(ring.take(512), base);  // 256 are left at the end: too few
  EXPECT_EQ(ring.take(1024), base);
}

}  // namespace
}  // namespace foreshard::replay::gpu
