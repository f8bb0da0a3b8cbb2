#include "sim/compute/evidence.h"

#include "tests/sim/compute/toy_device.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using yaml::Evidence;

// The toy's own numbers are the user's; here they stand in a data sheet.
DeviceType sheet_device() {
  DeviceType device = test::toy_device();
  for (auto& [dtype, peak] : device.tensor_peak) peak.evidence = Evidence::kDatasheet;
  device.vector_peak.evidence = Evidence::kDatasheet;
  device.memory_bandwidth.evidence = Evidence::kDatasheet;
  auto& efficiency = device.efficiency.value;
  efficiency.gemm.fit.evidence = Evidence::kFitted;
  efficiency.attention.fit.evidence = Evidence::kFitted;
  efficiency.passes.streaming.evidence = Evidence::kFitted;
  efficiency.passes.of["gelu_fwd"].evidence = Evidence::kTransferred;
  efficiency.measured_on = {device.name};
  return device;
}

TEST(EvidenceOf, AFitIsOneOnTheDevicesThatItWasMeasuredOn) {
  DeviceType device = sheet_device();
  const Gemm gemm{.m = 8, .n = 8, .k = 8};
  EXPECT_EQ(evidence_of(gemm, device), Evidence::kFitted);
  EXPECT_EQ(evidence_of(Attention{.batch = 1}, device), Evidence::kFitted);
  EXPECT_EQ(evidence_of(Pass{.kind = PassKind::kCast}, device), Evidence::kFitted);
  device.efficiency.value.measured_on = {"another"};
  EXPECT_EQ(evidence_of(gemm, device), Evidence::kTransferred);
  EXPECT_EQ(evidence_of(Pass{.kind = PassKind::kCast}, device), Evidence::kTransferred);
}

TEST(EvidenceOf, AnImplementationOfAttentionHasItsOwn) {
  DeviceType device = sheet_device();
  device.efficiency.value.attention_of["triton-flash-1"].fit.evidence = Evidence::kTransferred;
  Attention attention{.batch = 1};
  attention.implementation = AttentionImplementation::kTritonFlash1;
  EXPECT_EQ(evidence_of(attention, device), Evidence::kTransferred);
  attention.implementation = AttentionImplementation::kFlash2;  // not listed: the usual one's
  EXPECT_EQ(evidence_of(attention, device), Evidence::kFitted);
}

TEST(EvidenceOf, APassHasItsOwn) {
  EXPECT_EQ(evidence_of(Pass{.kind = PassKind::kGeluForward}, sheet_device()),
            Evidence::kTransferred);
}

TEST(EvidenceOf, InventedPeaksAreTheUsersWord) {
  DeviceType device = sheet_device();
  device.tensor_peak["bf16"].evidence = Evidence::kUser;
  EXPECT_EQ(evidence_of(Gemm{.m = 8, .n = 8, .k = 8}, device), Evidence::kUser);
  EXPECT_EQ(evidence_of(Pass{.kind = PassKind::kCast}, device), Evidence::kFitted);
  device.memory_bandwidth.evidence = Evidence::kUser;
  EXPECT_EQ(evidence_of(Pass{.kind = PassKind::kCast}, device), Evidence::kUser);
}

}  // namespace
}  // namespace foreshard
