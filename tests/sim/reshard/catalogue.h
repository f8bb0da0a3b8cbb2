/// \file
/// Clusters and communication parameters that the project ships.
#pragma once

#include "tests/test.h"

#include "sim/study/study.h"
#include "topology/cluster_config.h"

namespace foreshard::reshard {

struct Shipped {
  std::optional<ClusterView> cluster{};
  comm::Parameters communication{};
};

/// With changes to the cluster's file.
inline Shipped shipped(const std::string& cluster, std::vector<yaml::Override> changes = {}) {
  yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"},
                        .overrides = std::move(changes)};
  yaml::Loader loader(options);
  Shipped result;
  const auto config = value_of(loader.read_ref<ClusterConfig>(cluster));
  yaml::Loader plain({.catalogue = options.catalogue, .overrides = {}});
  const auto communication =
      value_of(plain.read_ref<comm::Parameters>(study::kDefaultCommunication, "communication"));
  result.cluster.emplace(value_of(build_cluster(config, loader)));
  result.communication = communication;
  return result;
}

}  // namespace foreshard::reshard
