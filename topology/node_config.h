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

#include "topology/device_type.h"
#include "topology/transport.h"

namespace foreshard {

// A host whose wiring has no regular form, link by link: uneven PCIe trees, adapters of unequal
// rates, GPUs at a socket's root port. It is `wiring` of a node (node_config.h), written by hand
// or by an importer (topology/import/) where nothing simpler describes the same host, and built by
// node_builder.cc.
//
//     device: H100-PCIe
//     gpus: 2
//     wiring:
//       parts:
//         - {name: socket0, kind: socket}
//         - {name: nic0, kind: nic, bandwidth: 100 Gbit/s}
//       links:
//         - {a: gpu0, b: socket0, kind: pcie, bandwidth: 63.01 GB/s}
//         - {a: gpu1, b: socket0, kind: pcie, bandwidth: 31.51 GB/s}
//         - {a: nic0, b: socket0, kind: pcie, bandwidth: 15.75 GB/s}
//
// GPUs are called gpu0, gpu1, ... Every bandwidth is nominal and holds for one direction. The
// payload rate is that bandwidth times the efficiency of the link's or part's kind; a link between
// sockets has no efficiency, as its bandwidth is the payload rate already.

enum class WiringPartKind : std::uint8_t { kNvSwitch, kPcieSwitch, kSocket, kNic };
enum class WiringLinkKind : std::uint8_t { kNvLink, kPcie, kSocket };

/// A part of a host other than a GPU.
struct WiringPart {
  std::string name;
  WiringPartKind kind = WiringPartKind::kPcieSwitch;
  std::optional<BytesPerSecond> bandwidth;  ///< Rate of a NIC's port to the network.
};

/// Both directions of one connection.
struct WiringLink {
  std::string a;
  std::string b;
  WiringLinkKind kind = WiringLinkKind::kPcie;
  BytesPerSecond bandwidth;
};

struct WiringConfig {
  std::vector<WiringPart> parts;  ///< NICs are in the order of their rails: the first is rail 0.
  std::vector<WiringLink> links;  ///< At least one.
  // Efficiency: payload rate of long transfers / nominal rate. Latency: seconds that each link of
  // the kind adds to a transfer. The defaults are those of NodeConfig (node_config.h), where the
  // sources stand; kTransferred says that a value was measured or fitted on a relative of this
  // host.
  yaml::Sourced<double> nvlink_efficiency{0.816, "as nvlink.efficiency",
                                          yaml::Evidence::kTransferred};
  yaml::Sourced<double> pcie_efficiency{0.88, "as pcie.efficiency", yaml::Evidence::kTransferred};
  yaml::Sourced<double> nic_efficiency{0.978, "as nics.efficiency", yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> nvlink_latency{0.3_us, "as nvlink.latency", yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> pcie_latency{0.15_us, "as pcie.latency", yaml::Evidence::kDatasheet};
  yaml::Sourced<Seconds> socket_latency{0.1_us, "as pcie.socket_latency",
                                        yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> nic_latency{0.6_us, "as nics.latency", yaml::Evidence::kDatasheet};
};

/// What is wrong with the wiring of a host that has `gpus` GPUs: a name that repeats, is a GPU's or
/// has a '/'; an end that does not exist; a link from a part to itself; a NIC without a bandwidth
/// or a link; a bandwidth on a part that is no NIC. Empty if nothing is wrong; a GPU without links
/// is no fault.
std::string fault_in(const WiringConfig& wiring, std::int64_t gpus);

const yaml::Names<WiringPartKind>& yaml_names(const WiringPartKind*);
const yaml::Names<WiringLinkKind>& yaml_names(const WiringLinkKind*);
const yaml::Table<WiringPart>& yaml_table(const WiringPart*);
const yaml::Table<WiringLink>& yaml_table(const WiringLink*);
const yaml::Table<WiringConfig>& yaml_table(const WiringConfig*);

// The CPUs of a host, as far as offloading to them needs: the rate of their memory, and the link
// between a GPU and its CPU where it is not PCIe:
//
//     cpu:
//       memory_bandwidth: 307.2 GB/s
//
// Not modelled: where in host memory data lies (each GPU uses the memory of its nearest socket),
// the size of that memory, and the rate that reads and writes cost each other.

/// Chip to chip (NVLink-C2C): each GPU has its own link to the CPU that it shares with others.
struct CpuLinkConfig {
  yaml::Sourced<BytesPerSecond> bandwidth{};
  yaml::Sourced<double> efficiency{
      0.77,
      "nvbandwidth of a GH200 (NVIDIA/nvbandwidth, issue 23), host_to_device_memcpy_ce: 346 of 450 "
      "GB/s",
      yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> latency{0.3_us, "as a hop of NVLink", yaml::Evidence::kTransferred};
  std::int64_t gpus = 1;  ///< GPUs that share one CPU.
};

struct CpuConfig {
  std::optional<yaml::Sourced<BytesPerSecond>> memory_bandwidth{};
  yaml::Sourced<double> memory_efficiency{
      0.8, "assumed: about what STREAM leaves of the nominal rate of DDR4 and DDR5 servers",
      yaml::Evidence::kUser};
  std::optional<CpuLinkConfig> link{};
};

const yaml::Table<CpuLinkConfig>& yaml_table(const CpuLinkConfig*);
const yaml::Table<CpuConfig>& yaml_table(const CpuConfig*);

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
