#include "topology/device_type.h"

#include "tests/sim/compute/toy_device.h"
#include "tests/test.h"

namespace foreshard::device_type_test {

TEST(DeviceType, AMissingDtypeRunsAtTheNextWiderOne) {
  DeviceType device = test::toy_device();
  EXPECT_EQ(peak_of(device, "bf16"), 100_TFLOP_s);
  EXPECT_EQ(peak_of(device, "fp8"), 100_TFLOP_s);
  EXPECT_EQ(peak_of(device, "fp16"), 10_TFLOP_s);  // neither fp16 nor tf32: the vector units
  EXPECT_EQ(peak_of(device, "fp32"), 10_TFLOP_s);
  device.tensor_peak["tf32"].value = 50_TFLOP_s;
  EXPECT_EQ(peak_of(device, "fp16"), 50_TFLOP_s);
  EXPECT_EQ(peak_of(device, "fp32"), 10_TFLOP_s);
}

TEST(DeviceType, MeasurementsOfAnotherDeviceAreTransferred) {
  DeviceType device = test::toy_device();
  const FitRecord fit{.source = "s", .evidence = yaml::Evidence::kFitted};
  EXPECT_EQ(evidence_of(device, fit), yaml::Evidence::kTransferred);
  device.efficiency.value.measured_on = {"other", "toy"};
  EXPECT_EQ(evidence_of(device, fit), yaml::Evidence::kFitted);
  const FitRecord weak{.source = "s", .evidence = yaml::Evidence::kDatasheet};
  device.efficiency.value.measured_on.clear();
  EXPECT_EQ(evidence_of(device, weak), yaml::Evidence::kDatasheet);
}

}  // namespace foreshard::device_type_test
