#include "base/hash.h"

#include "tests/test.h"

namespace foreshard {
namespace {

// The first draws of SplitMix64 seeded with 0, as java.util.SplittableRandom gives them.
TEST(Hash, IsSplitMix64) {
  EXPECT_EQ(mixed(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mixed(0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(finalised(0), 0u);
}

}  // namespace
}  // namespace foreshard
