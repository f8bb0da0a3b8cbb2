/// \file
/// Communicators of machines from the catalogue, for the tests of NCCL's search and tuner.
#pragma once

#include <vector>

#include "strategies/comm/nccl/search.h"
#include "topology/cluster_for.h"

namespace foreshard::comm::nccl {

/// configs/tuners/nccl-2.28.yaml.
const Tables& shipped_tables();
/// These devices of that cluster (none given: all); fails the test where there are none.
Communicator communicator_on(const ClusterRequest& request, std::vector<DeviceId> devices = {});

}  // namespace foreshard::comm::nccl
