/// \file
/// A host whose wiring has no regular form, link by link: uneven PCIe trees, adapters of unequal
/// rates, GPUs at a socket's root port. It is `wiring` of a node (node_config.h), written by hand
/// or by an importer (topology/import/) where nothing simpler describes the same host, and built by
/// topology/nodes/wiring.cc.
///
///     device: H100-PCIe
///     gpus: 2
///     wiring:
///       parts:
///         - {name: socket0, kind: socket}
///         - {name: nic0, kind: nic, bandwidth: 100 Gbit/s}
///       links:
///         - {a: gpu0, b: socket0, kind: pcie, bandwidth: 63.01 GB/s}
///         - {a: gpu1, b: socket0, kind: pcie, bandwidth: 31.51 GB/s}
///         - {a: nic0, b: socket0, kind: pcie, bandwidth: 15.75 GB/s}
///
/// GPUs are called gpu0, gpu1, ... Every bandwidth is nominal and holds for one direction. The
/// payload rate is that bandwidth times the efficiency of the link's or part's kind; a link between
/// sockets has no efficiency, as its bandwidth is the payload rate already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard {

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

}  // namespace foreshard
