// Names of devices in tables of measurements, as the catalogue has them.
#include "validate/tables/device_names.h"

#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

TEST(Names, Devices) {
  EXPECT_EQ(device_named("A100-SXM4-40GB", {})->name, "A100-SXM-40GB");
  EXPECT_EQ(device_named("A100", 40)->name, "A100-SXM-40GB");
  EXPECT_EQ(device_named("H100-SXM5-80GB", {})->name, "H100-SXM");
  EXPECT_EQ(device_named("A100-PCIe-80GB", {})->name, "A100-PCIe-80GB");
  EXPECT_EQ(device_named("GB200", {})->name, "GB200");
  EXPECT_EQ(device_named("B200", 180)->name, "B200");
  EXPECT_TRUE(device_named("V100", {})->guessed_memory);
  EXPECT_FALSE(device_named("H100", {})->guessed_memory);
  EXPECT_EQ(device_named("H100", 96)->name, "H100-SXM-96GB");
  EXPECT_TRUE(device_named("H100", 64)->another_variant);
  EXPECT_FALSE(device_named("abacus", {}));
}

}  // namespace
}  // namespace foreshard::accuracy
