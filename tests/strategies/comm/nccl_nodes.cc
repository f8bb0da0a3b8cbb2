#include "tests/strategies/comm/nccl_nodes.h"

#include "tests/test.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm::nccl {

const Tables& shipped_tables() {
  static const Tables tables = [] {
    return value_of(yaml::Loader(shipped_options()).read_ref<Tables>("nccl-2.28"));
  }();
  return tables;
}

Communicator communicator_on(const ClusterRequest& request, std::vector<DeviceId> devices) {
  yaml::Loader loader(shipped_options());
  const auto config = value_of(cluster_for(request, loader));
  const auto cluster = value_of(build_cluster(config));
  Participants group{.cluster = &cluster, .devices = std::move(devices)};
  if (group.devices.empty())
    for (std::int32_t i = 0; i < request.gpus; ++i) group.devices.emplace_back(i);
  return value_of(communicator_of(group, shipped_tables()));
}

}  // namespace foreshard::comm::nccl
