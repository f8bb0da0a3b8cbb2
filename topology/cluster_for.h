/// \file
/// A cluster from the few facts that a table of measurements states about it: the kind of device,
/// how many, how many per node, and the network rate of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/cluster_config.h"

namespace foreshard {

struct ClusterRequest {
  std::string device{};  ///< As in configs/devices/.
  std::int64_t gpus = 1;
  std::int64_t gpus_per_node = 8;
  std::optional<BytesPerSecond> internode_per_gpu{};  ///< Nominal. Default: the machine's own NICs.
  /// A catalogue entry, where the machine is known; else the usual one of the device.
  std::string node{};
  /// Of GPUs without NVLink: 1 where they reach each other's memory over PCIe, as many as GPUs
  /// where all goes through the memory of the host. Default: the machine's.
  std::optional<std::int64_t> pcie_switches{};
  std::string transport{};  ///< A catalogue entry. Default: that of the machine's own NICs.
};

/// Homogeneous, with a non-blocking network: a rail-optimised fat tree of two levels, or one switch
/// where nodes have one NIC. The machine is that of configs/nodes/by-device/ (`DEVICE-Ngpu` before
/// `DEVICE` where that has fewer than N GPUs and there is one), with
///
/// - as many GPUs per node as asked for, and NICs in proportion: the first ones of the machine, or
///   more only where all communicate over PCIe; of a rack whose trays have
///   `gpus_per_node` GPUs, NVLink domains as large as divides the GPUs into equal ones;
/// - NICs that together reach `gpus per node x internode_per_gpu`: faster ones if the machine's are
///   too slow; else fewer of them, at most half as many and none below 100 Gbit/s, because several
///   GPUs share an adapter where there is less than one of the machine's for each.
///
/// Nothing else depends on the request: there is no tuning per machine.
/// \return kInvalidInput for a device without a usual machine, GPUs that do not fill whole nodes,
///     or more per node than a machine with NVLinks, or with one GPU, has.
Result<ClusterConfig> cluster_for(const ClusterRequest& request, yaml::Loader& loader);

}  // namespace foreshard
