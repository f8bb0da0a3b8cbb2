/// \file
/// Communicators of machines from the catalogue, for the tests of NCCL's search and tuner.
#pragma once

#include "strategies/comm/nccl/search.h"
#include "topology/cluster_for.h"

namespace foreshard::comm::nccl {

/// configs/tuners/nccl-2.28.yaml.
const Tables& shipped_tables();
/// All devices of that cluster; fails the test where there is none.
Communicator communicator_on(const ClusterRequest& request);

}  // namespace foreshard::comm::nccl
