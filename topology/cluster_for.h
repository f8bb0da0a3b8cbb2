/// \file
/// A cluster from the few facts that a table of measurements states about it: the kind of device,
/// how many devices, how many per node, and the network rate per device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/cluster_config.h"

namespace foreshard {

struct ClusterRequest {
  std::string device{};  ///< A name in configs/devices/.
  std::int64_t gpus = 1;
  std::int64_t gpus_per_node = 8;
  std::optional<BytesPerSecond> internode_per_gpu{};  ///< Nominal. Default: the machine's own NICs.
  /// A catalogue entry, where the machine is known. Empty: the usual machine of the device.
  std::string node{};
  /// PCIe switches, for GPUs without NVLink: 1 where GPUs reach each other's memory over PCIe, as
  /// many as GPUs where all traffic goes through host memory. Default: the machine's.
  std::optional<std::int64_t> pcie_switches{};
  std::string transport{};  ///< A catalogue entry. Default: the transport of the machine's NICs.
};

/// A homogeneous cluster with a non-blocking network: a rail-optimised fat tree of two levels, or
/// one switch where nodes have one NIC. The usual machine of a device is its entry in
/// configs/nodes/by-device/: `DEVICE`, or `DEVICE-Ngpu` if that exists and `DEVICE` has fewer than
/// N GPUs. The machine (`node`, by default the usual one) is given
///
/// - as many GPUs per node as asked for, and NICs in proportion: the machine's first GPUs, or more
///   GPUs than it has only if all communicate over PCIe. In a rack whose trays have `gpus_per_node`
///   GPUs, a node is the largest NVLink domain that divides the GPUs evenly;
/// - NICs that together reach `gpus per node x internode_per_gpu`. If the machine's NICs are too
///   slow, they become faster. If they are too fast, they become fewer, at most half as many and
///   none below 100 Gbit/s, because several GPUs share an adapter where each has less than the rate
///   of one machine NIC.
///
/// Besides these, only `pcie_switches` and `transport` replace something of the machine: there is
/// no tuning per machine.
/// \return kInvalidInput for a device without a usual machine, GPUs that do not fill whole nodes,
///     or more per node than a machine with NVLinks, or with one GPU, has.
Result<ClusterConfig> cluster_for(const ClusterRequest& request, yaml::Loader& loader);

}  // namespace foreshard
