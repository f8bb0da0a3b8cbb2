/// \file
/// Random small clusters, and clusters that fit a strategy.
#pragma once

#include <random>

#include "topology/cluster_config.h"

namespace foreshard {

struct ClusterShape {
  Routing routing = Routing::kSpread;
  bool one_slow_node = false;  ///< Whose devices are half as fast; needs two nodes.
  double speed = 1;            ///< Of all devices.
  double bandwidth = 1;        ///< Of all links, likewise.
};

/// `devices` devices in equal nodes under one switch or a fat tree of two levels.
ClusterView random_cluster(std::mt19937& random, std::int64_t devices, const ClusterShape& shape);

}  // namespace foreshard
