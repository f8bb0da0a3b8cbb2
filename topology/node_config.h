/// \file
/// One host in YAML: its devices and what joins them. A minimal example:
///
///     device: A100-SXM-80GB
///     gpus: 8
///     nvlink: {bandwidth: 300 GB/s}
///     nics: {count: 8, bandwidth: 200 Gbit/s}
///
/// Every rate is nominal; times its `efficiency` it is the payload rate that long transfers reach,
/// which is what `Link::bandwidth` holds. What is not given has a default with a source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "topology/cpu_config.h"
#include "topology/device_type.h"
#include "topology/transport.h"
#include "topology/wiring_config.h"

namespace foreshard {

enum class NvlinkLayout : std::uint8_t {
  kSwitch,  ///< Every GPU is joined to one switch by all its links.
  kMesh,    ///< Links go from GPU to GPU.
};

struct NvlinkPair {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t links = 1;
};

struct NvlinkConfig {
  NvlinkLayout layout = NvlinkLayout::kSwitch;
  yaml::Sourced<BytesPerSecond> bandwidth{};
  yaml::Sourced<double> efficiency{
      0.816,
      "nccl-tests sendrecv of 8 H100, 16 GiB: 367.2 of 450 GB/s (xxrjun/nccl-tests-cluster); what "
      "a ring loses besides is its turnaround (communication/nccl.yaml)",
      yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> latency{0.3_us,
                                 "half of the 0.6 us that NCCL 2.28 (src/graph/tuning.cc) counts "
                                 "for an LL hop between GPUs",
                                 yaml::Evidence::kTransferred};
  std::int64_t links_per_pair = 1;
  std::vector<NvlinkPair> pairs;
  /// Layout kSwitch: number of groups of switches, each with an equal part of the GPUs (NVL36x2:
  /// one per rack). Every two groups are joined, so that all GPUs of a group can send across at
  /// once.
  std::int64_t switches = 1;
};

struct PcieConfig {
  std::optional<std::int64_t> generation;
  yaml::Sourced<double> efficiency{
      0.88, "pinned copies of an H200 over 5.0 x16: 55.4 of 63 GB/s (stas00/ml-engineering)",
      yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> latency{0.15_us, "PCIe switch data sheets: 100 to 150 ns a hop",
                                 yaml::Evidence::kDatasheet};
  std::optional<std::int64_t> switches;
  std::int64_t sockets = 2;
  yaml::Sourced<BytesPerSecond> socket_bandwidth{
      22_GB_s, "NCCL 2.28 (src/graph/topo.h): Intel Sapphire Rapids", yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> socket_latency{
      0.1_us, "difference of remote and local memory latency of two-socket servers",
      yaml::Evidence::kTransferred};
};

struct NicConfig {
  std::int64_t count = 0;
  yaml::Sourced<BytesPerSecond> bandwidth{};
  yaml::Sourced<double> efficiency{
      0.978, "all-reduce over 10 hosts with one 400 Gbit/s NIC each, 16 GiB: 48.9 of 50 GB/s",
      yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> latency{0.6_us, "ConnectX-6 product guide (Lenovo LP1195): below 600 ns",
                                 yaml::Evidence::kDatasheet};
  std::optional<yaml::Ref<Transport>> transport{};  ///< Default: InfiniBand verbs.
};

struct HostConfig {
  yaml::Sourced<Seconds> launch_time{5_us,
                                     "an eager PyTorch operator on the host thread takes a few us",
                                     yaml::Evidence::kTransferred};
  yaml::Sourced<double> speed{1, "taken as the host of a DGX H100", yaml::Evidence::kTransferred};
};

struct NodeConfig {
  std::string summary;
  yaml::Ref<DeviceType> device;
  std::int64_t gpus = 1;
  /// GPUs per tray (host), in a rack whose trays share one NVLink domain.
  std::optional<std::int64_t> gpus_per_tray;
  std::optional<NvlinkConfig> nvlink;
  PcieConfig pcie;
  std::optional<NicConfig> nics;
  /// Replaces `nvlink`, `pcie` and `nics`.
  std::optional<WiringConfig> wiring;
  HostConfig host;
  CpuConfig cpu;
  /// Power of the node besides its devices, per device and at all times: CPUs, memory, adapters,
  /// fans, losses.
  std::optional<yaml::Sourced<Watts>> host_power;
};

/// Whether the node has a port to the network.
bool has_nics(const NodeConfig& node);

const yaml::Names<NvlinkLayout>& yaml_names(const NvlinkLayout*);
const yaml::Table<NvlinkPair>& yaml_table(const NvlinkPair*);
const yaml::Table<NvlinkConfig>& yaml_table(const NvlinkConfig*);
const yaml::Table<PcieConfig>& yaml_table(const PcieConfig*);
const yaml::Table<NicConfig>& yaml_table(const NicConfig*);
const yaml::Table<HostConfig>& yaml_table(const HostConfig*);
const yaml::Table<NodeConfig>& yaml_table(const NodeConfig*);

/// Nominal rate of one direction of 16 PCIe lanes. Source: PCI-SIG base specifications 3.0 to 6.0
/// (8 GT/s a lane, doubled with each generation; 128b/130b coding, from 6.0 on 242 of 256 bytes of
/// a flit).
/// \pre 3 <= generation <= 6
BytesPerSecond pcie_bandwidth(std::int64_t generation);
/// The generation given, or the first one whose x16 carries a NIC of the node (at least 4).
std::int64_t pcie_generation(const NodeConfig& node);
/// Number of PCIe switches: as given, else the greatest common divisor of GPUs and NICs (one per
/// NIC where each NIC serves whole GPUs), but at least one per socket if the sockets divide the
/// GPUs. A switch is logical: what the GPUs of one NIC share.
std::int64_t pcie_switches(const NodeConfig& node);

}  // namespace foreshard
