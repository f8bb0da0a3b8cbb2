// Looks up the evidence of the parameters behind a kernel's time (evidence.h), for the
// sensitivities of a step, the draws of a search's robustness and the tables of measured kernels.
#include "sim/compute/evidence.h"

#include <algorithm>
#include <array>

#include "sim/compute/internal/attention_time.h"

namespace foreshard {
namespace {

yaml::Evidence user_or(const yaml::Sourced<FlopsPerSecond>& peak, yaml::Evidence otherwise) {
  return peak.evidence == yaml::Evidence::kUser ? yaml::Evidence::kUser : otherwise;
}

yaml::Evidence arithmetic(const DeviceType& device, DType dtype, const FitRecord& fit) {
  const yaml::Evidence evidence = evidence_of(device, fit);
  const auto peak = device.tensor_peak.find(std::string(name_of(dtype)));
  return user_or(peak == device.tensor_peak.end() ? device.vector_peak : peak->second, evidence);
}

}  // namespace

std::string_view name_of(ParameterGroup group) {
  constexpr std::array<std::string_view, kParameterGroups> kNames{
      "matrix products", "attention", "memory-bound kernels", "communication"};
  return kNames[static_cast<std::size_t>(group)];
}

ParameterGroup group_of(const Kernel& kernel) {
  if (std::holds_alternative<Gemm>(kernel)) return ParameterGroup::kProducts;
  return std::holds_alternative<Attention>(kernel) ? ParameterGroup::kAttention
                                                   : ParameterGroup::kPasses;
}

yaml::Evidence evidence_of(const Kernel& kernel, const DeviceType& device) {
  const DeviceEfficiency& efficiency = *device.efficiency;
  if (const auto* gemm = std::get_if<Gemm>(&kernel))
    return arithmetic(device, gemm->dtype, efficiency.gemm.fit);
  if (const auto* attention = std::get_if<Attention>(&kernel))
    return arithmetic(device, attention->dtype, compute::efficiency_of(*attention, efficiency).fit);
  if (device.memory_bandwidth.evidence == yaml::Evidence::kUser) return yaml::Evidence::kUser;
  const auto own =
      efficiency.passes.of.find(std::string(traffic_of(std::get<Pass>(kernel).kind).name));
  const auto& share = own == efficiency.passes.of.end() ? efficiency.passes.streaming : own->second;
  FitRecord fit;
  fit.evidence = share.evidence;
  return evidence_of(device, fit);
}

}  // namespace foreshard
