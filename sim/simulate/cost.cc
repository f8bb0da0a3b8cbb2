#include "sim/simulate/cost.h"

#include <algorithm>
#include <limits>

namespace foreshard::sim {

SimulatedCost::SimulatedCost(const ClusterView& cluster, const comm::Parameters& communication)
    : cluster_(cluster), communication_(communication) {
  for (const DeviceType& type : cluster.device_types()) kernels_.emplace_back(type);
}

Seconds SimulatedCost::kernel_time(const Kernel& kernel, DeviceTypeId type) const {
  return kernels_[type.index()](kernel);
}

Result<const std::vector<SimulatedCost::Form>*> SimulatedCost::forms(
    program::CollectiveKind kind, const std::vector<DeviceId>& devices) const {
  auto key = std::pair(kind, devices);
  if (const auto it = forms_.find(key); it != forms_.end()) return &it->second;
  const auto flat =
      comm::flat_forms(kind, {.cluster = &cluster_, .devices = devices, .flow = 0}, communication_);
  if (!flat) return flat.error();
  std::vector<Form> list;
  for (const comm::FlatCollective& form : *flat)
    list.push_back({form.latency, form.idle_rate(cluster_), form.fill_chunks, form.chunk});
  return &forms_.emplace(std::move(key), std::move(list)).first->second;
}

Result<Seconds> SimulatedCost::communication_time(program::CollectiveKind kind, Bytes bytes,
                                                  const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2) return Seconds{};
  const auto list = forms(kind, devices);
  if (!list) return list.error();
  Seconds least = Seconds::from_base(std::numeric_limits<double>::infinity());
  for (const Form& form : **list)
    least = std::min(least,
                     form.latency + (bytes + std::min(form.chunk, bytes) * form.fill) / form.rate);
  return least;
}

}  // namespace foreshard::sim
