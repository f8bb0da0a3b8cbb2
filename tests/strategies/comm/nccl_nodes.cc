#include "tests/strategies/comm/nccl_nodes.h"

#include "base/yaml/loader.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm::nccl {

const Tables& shipped_tables() {
  static const Tables tables = [] {
    yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
    auto read = loader.read_ref<Tables>("nccl-2.28");
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return read ? *std::move(read) : Tables{};
  }();
  return tables;
}

Communicator communicator_on(const ClusterRequest& request, std::vector<DeviceId> devices) {
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  const auto config = cluster_for(request, loader);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  if (!config) return {};
  const auto cluster = build_cluster(*config);
  EXPECT_TRUE(cluster) << (cluster ? "" : cluster.error().message);
  if (!cluster) return {};
  Participants group{.cluster = &*cluster, .devices = std::move(devices)};
  if (group.devices.empty())
    for (std::int32_t i = 0; i < request.gpus; ++i) group.devices.emplace_back(i);
  const auto communicator = communicator_of(group, shipped_tables());
  EXPECT_TRUE(communicator) << (communicator ? "" : communicator.error().message);
  return communicator ? *communicator : Communicator{};
}

}  // namespace foreshard::comm::nccl
