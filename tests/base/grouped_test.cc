#include "base/grouped.h"

#include "tests/test.h"

namespace foreshard {
namespace {

TEST(Grouped, HasACommaBeforeEachThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(12288), "12,288");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace foreshard
