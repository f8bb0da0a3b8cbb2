#include "topology/device_type.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/yaml/loader.h"
#include "tests/sim/compute/toy_device.h"

namespace foreshard {
namespace device_type_test {

using testing::HasSubstr;

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

std::string fault(const std::string& text) {
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {}});
  const auto device = loader.read_text<DeviceType>(text, "device.yaml");
  return device ? "accepted" : device.error().message;
}

TEST(DeviceType, FaultsAreNamed) {
  const std::string extends = "extends: H100-SXM\n";
  EXPECT_EQ(fault(extends), "accepted");
  EXPECT_THAT(fault(extends + "memory: 80\n"), HasSubstr("device.yaml:2"));
  // What was taken over was right: the key that is written here is at fault.
  EXPECT_THAT(fault(extends + "power: 50 W\n"),
              testing::AllOf(HasSubstr("device.yaml:2:1: error: 'idle_power' is 70.0 W, more than "
                                       "power: 50.0 W"),
                             testing::Not(HasSubstr("H100-SXM.yaml"))));
  EXPECT_THAT(fault(extends + "power: 50 W\nidle_power: 60 W\n"),
              HasSubstr("device.yaml:3:13: error: 'idle_power' is 60.0 W, more than"));
  EXPECT_THAT(fault(extends + "efficiency: Hoper\n"), HasSubstr("Hopper"));
  EXPECT_THAT(fault(extends + "multiprocessors: 0\n"), HasSubstr("at least 1"));
  EXPECT_THAT(fault("name: mine\n"), HasSubstr("efficiency"));
  EXPECT_THAT(fault(extends + "efficiency: {extends: Hopper, gemm: {splits: [2, 1]}}\n"),
              HasSubstr("must ascend from 1"));
  EXPECT_THAT(fault(extends + "efficiency: {extends: Hopper, gemm: {rate: 1.1}}\n"),
              HasSubstr("at most 1"));
  EXPECT_THAT(
      fault(extends + "tensor_peak: {fp9: {value: 9 TFLOP/s, source: x, evidence: user}}\n"),
      HasSubstr("has no type 'fp9'; legal: tf32, fp16, bf16, fp8, fp4, int8"));
  for (const char* key : {"rate_of", "sustained_of"})
    EXPECT_THAT(fault(fmt::format("{}efficiency: {{extends: Hopper, gemm: {{{}: {{fp9: 0.5}}}}}}\n",
                                  extends, key)),
                HasSubstr("has no type 'fp9'; legal: fp32, tf32"))
        << key;
}

}  // namespace device_type_test
}  // namespace foreshard
