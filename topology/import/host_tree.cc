// Turns a host as a reader found it into a node of ours (internal/host_tree.h), for nccl_xml.cc,
// nvidia_smi.cc and paddle.cc. Rates are nominal and of one direction; links that regular keys
// describe exactly are written as these keys, others one by one.
#include "topology/import/internal/host_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "topology/cluster_config.h"

namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

constexpr double kSame = 1e-9;
/// Offset of NICs: GPUs come before NICs in the order of what is below a switch.
constexpr std::int64_t kAfterGpus = std::int64_t{1} << 32;

bool same(double a, double b) {
  return std::abs(a - b) <= kSame * std::max(std::abs(a), std::abs(b));
}

/// part -> the first GPU, else NIC, below it; a large number if nothing is below it.
std::vector<std::int64_t> first_below(const HostTree& tree) {
  std::vector<std::int64_t> first(tree.parts.size(), std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = tree.parts.size(); i-- > 0;) {
    const auto& part = tree.parts[i];
    if (part.kind == Kind::kGpu) first[i] = part.index;
    if (part.kind == Kind::kNic) first[i] = kAfterGpus + part.index;
    if (part.parent != HostTree::kNone) first[part.parent] = std::min(first[part.parent], first[i]);
  }
  return first;
}

std::vector<std::size_t> parts_of(const HostTree& tree, Kind kind,
                                  const std::vector<std::int64_t>& order) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < tree.parts.size(); ++i)
    if (tree.parts[i].kind == kind && order[i] != std::numeric_limits<std::int64_t>::max())
      found.push_back(i);
  std::ranges::stable_sort(found, {}, [&](std::size_t i) { return order[i]; });
  return found;
}

WiringPartKind part_kind(Kind kind) {
  switch (kind) {
    case Kind::kNic:
      return WiringPartKind::kNic;
    case Kind::kSocket:
      return WiringPartKind::kSocket;
    case Kind::kNvSwitch:
      return WiringPartKind::kNvSwitch;
    case Kind::kSwitch:
    case Kind::kGpu:
      break;
  }
  return WiringPartKind::kPcieSwitch;
}

using Rates = std::map<std::tuple<std::string, std::string, int>, std::vector<double>>;

/// (names of the ends, kind) -> bandwidths and latencies of the links.
Rates rates_of(const NodeConfig& node) {
  ClusterConfig config;
  config.node = yaml::Ref<NodeConfig>{node, ""};
  Rates rates;
  const auto cluster = build_cluster(config);
  if (!cluster) return rates;
  for (const auto& link : cluster->links()) {
    auto& rate = rates[{cluster->vertices()[link.from.index()].name,
                        cluster->vertices()[link.to.index()].name, static_cast<int>(link.kind)}];
    rate.push_back(link.bandwidth.in_base());
    rate.push_back(link.latency.in_base());
  }
  return rates;
}

bool same_links(const NodeConfig& a, const NodeConfig& b) {
  const Rates left = rates_of(a);
  const Rates right = rates_of(b);
  return !left.empty() && std::ranges::equal(left, right, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second, y.second, same);
  });
}

/// The common rate of the links of one kind. Nothing if there are none or rates differ.
std::optional<BytesPerSecond> common_rate(const WiringConfig& wiring, WiringLinkKind kind) {
  std::optional<BytesPerSecond> rate;
  for (const auto& link : wiring.links) {
    if (link.kind != kind) continue;
    if (rate && !same(rate->in_base(), link.bandwidth.in_base())) return std::nullopt;
    rate = link.bandwidth;
  }
  return rate;
}

std::int64_t count(const WiringConfig& wiring, WiringPartKind kind) {
  return std::ranges::count(wiring.parts, kind, &WiringPart::kind);
}

yaml::Sourced<BytesPerSecond> sourced(BytesPerSecond rate, const std::string& file,
                                      yaml::Evidence evidence, const std::string& other) {
  if (other.empty()) return {rate, file, evidence};
  if (other == kLinkRate) return {rate, other, yaml::Evidence::kUser};
  return {rate, other, yaml::Evidence::kTransferred};
}

std::optional<NvlinkConfig> regular_nvlink(const WiringConfig& wiring, const HostTree& tree,
                                           const Defaults& defaults, const std::string& source) {
  NvlinkConfig nvlink;
  nvlink.efficiency = wiring.nvlink_efficiency;
  nvlink.latency = wiring.nvlink_latency;
  if (count(wiring, WiringPartKind::kNvSwitch) > 0) {
    const auto rate = common_rate(wiring, WiringLinkKind::kNvLink);
    if (!rate) return std::nullopt;
    nvlink.bandwidth = sourced(*rate, source, yaml::Evidence::kDatasheet, tree.nvlinks_from);
    return nvlink;
  }
  nvlink.layout = NvlinkLayout::kMesh;
  auto unit = defaults.hardware.nvlink;
  for (const auto& link : wiring.links) {
    if (link.kind != WiringLinkKind::kNvLink) continue;
    if (!unit) unit = link.bandwidth;
    if (!link.a.starts_with("gpu") || !link.b.starts_with("gpu")) return std::nullopt;
    const double links = std::round(link.bandwidth / *unit);
    if (links < 1 || !same(links, link.bandwidth / *unit)) return std::nullopt;
    nvlink.pairs.push_back({std::stoll(link.a.substr(3)), std::stoll(link.b.substr(3)),
                            static_cast<std::int64_t>(links)});
  }
  if (nvlink.pairs.empty()) return std::nullopt;
  nvlink.bandwidth = sourced(*unit, source, yaml::Evidence::kDatasheet, tree.nvlinks_from);
  return nvlink;
}

/// Whether one count divides the other, as NodeConfig requires of GPUs and NICs.
bool divides(std::int64_t a, std::int64_t b) {
  return a % b == 0 || b % a == 0;
}

std::optional<NodeConfig> regular_form(const NodeConfig& wired, const HostTree& tree,
                                       const Defaults& defaults, const std::string& source) {
  const WiringConfig& wiring = *wired.wiring;
  NodeConfig node = wired;
  node.wiring.reset();
  const auto has_kind = [&](WiringLinkKind kind) {
    return std::ranges::count(wiring.links, kind, &WiringLink::kind) > 0;
  };
  if (has_kind(WiringLinkKind::kNvLink)) {
    node.nvlink = regular_nvlink(wiring, tree, defaults, source);
    if (!node.nvlink) return std::nullopt;
  }

  const auto lane = common_rate(wiring, WiringLinkKind::kPcie);
  const auto switches = count(wiring, WiringPartKind::kPcieSwitch);
  if (!lane || switches == 0 || wired.gpus % switches != 0) return std::nullopt;
  for (std::int64_t generation = 3; generation <= 6; ++generation)
    if (same(pcie_bandwidth(generation).in_base(), lane->in_base()))
      node.pcie.generation = generation;
  if (!node.pcie.generation) return std::nullopt;
  node.pcie.switches = switches;
  node.pcie.sockets = count(wiring, WiringPartKind::kSocket);
  node.pcie.efficiency = wiring.pcie_efficiency;
  node.pcie.latency = wiring.pcie_latency;
  node.pcie.socket_latency = wiring.socket_latency;
  if (const auto bridge = common_rate(wiring, WiringLinkKind::kSocket))
    node.pcie.socket_bandwidth =
        sourced(*bridge, source, yaml::Evidence::kTransferred, tree.bridges_from);

  NicConfig nics;
  for (const auto& part : wiring.parts) {
    if (part.kind != WiringPartKind::kNic) continue;
    if (nics.count > 0 && !same(nics.bandwidth->in_base(), part.bandwidth->in_base()))
      return std::nullopt;
    nics.bandwidth = sourced(*part.bandwidth, source, yaml::Evidence::kDatasheet, tree.ports_from);
    ++nics.count;
  }
  if (nics.count > 0) {
    if (!divides(wired.gpus, nics.count)) return std::nullopt;
    nics.efficiency = wiring.nic_efficiency;
    nics.latency = wiring.nic_latency;
    if (defaults.machine.nics) nics.transport = defaults.machine.nics->transport;
    node.nics = nics;
  }
  if (!same_links(node, wired)) return std::nullopt;
  return node;
}

}  // namespace

std::size_t HostTree::add(const HostPart& part) {
  parts.push_back(part);
  return parts.size() - 1;
}

std::int64_t HostTree::count(Kind kind) const {
  return std::ranges::count(parts, kind, &HostPart::kind);
}

BytesPerSecond pcie_rate(double transfers, std::int64_t lanes) {
  constexpr double kBits = 8;
  const double coding = transfers <= 5 ? 0.8 : transfers <= 32 ? 128.0 / 130 : 242.0 / 256;
  return BytesPerSecond::from_base(transfers * 1e9 * static_cast<double>(lanes) / kBits * coding);
}

WiringConfig wiring_of(const HostTree& tree) {
  auto order = first_below(tree);
  for (const auto& link : tree.links)  // an NVSwitch has nothing below it
    for (const auto end : {link.a, link.b})
      if (tree.parts[end].kind == Kind::kNvSwitch)
        order[end] = std::min(order[end], order[end == link.a ? link.b : link.a]);
  WiringConfig wiring;
  std::vector<std::string> names(tree.parts.size());
  for (const auto& [kind, word] : {std::pair{Kind::kSocket, "socket"},
                                   {Kind::kSwitch, "pcie"},
                                   {Kind::kNvSwitch, "nvswitch"},
                                   {Kind::kNic, "nic"}}) {
    const auto found = parts_of(tree, kind, order);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto& part = tree.parts[found[i]];
      const bool alone = kind == Kind::kNvSwitch && found.size() == 1;
      names[found[i]] = alone ? word : word + std::to_string(i);
      wiring.parts.push_back({names[found[i]], part_kind(kind), std::nullopt});
      if (kind == Kind::kNic) wiring.parts.back().bandwidth = part.port;
    }
  }
  for (const auto i : parts_of(tree, Kind::kGpu, order))
    names[i] = "gpu" + std::to_string(tree.parts[i].index);

  for (const auto kind : {Kind::kSwitch, Kind::kGpu, Kind::kNic})
    for (const auto i : parts_of(tree, kind, order))
      if (const auto parent = tree.parts[i].parent; parent != HostTree::kNone)
        wiring.links.push_back({names[i], names[parent], WiringLinkKind::kPcie, tree.parts[i].up});
  for (const auto& link : tree.links)
    if (!names[link.a].empty() && !names[link.b].empty())
      wiring.links.push_back({names[link.a], names[link.b], link.kind, link.bandwidth});
  return wiring;
}

NodeConfig node_of(const HostTree& tree, const Defaults& defaults, const std::string& source) {
  NodeConfig node;
  node.device = defaults.device;
  node.gpus = tree.count(Kind::kGpu);
  node.host = defaults.machine.host;
  WiringConfig wiring = wiring_of(tree);
  const auto& machine = defaults.machine;
  if (machine.nvlink) {
    wiring.nvlink_efficiency = machine.nvlink->efficiency;
    wiring.nvlink_latency = machine.nvlink->latency;
  }
  wiring.pcie_efficiency = machine.pcie.efficiency;
  wiring.pcie_latency = machine.pcie.latency;
  wiring.socket_latency = machine.pcie.socket_latency;
  if (machine.nics) {
    wiring.nic_efficiency = machine.nics->efficiency;
    wiring.nic_latency = machine.nics->latency;
  }
  node.wiring = std::move(wiring);
  if (node.wiring->links.empty()) node.wiring.reset();
  if (!node.wiring) return node;
  if (auto regular = regular_form(node, tree, defaults, source)) return *std::move(regular);
  return node;
}

Result<Defaults> defaults_of(const std::string& device, const Hardware& hardware,
                             yaml::Loader& loader, std::vector<std::string>& remarks) {
  Defaults defaults;
  auto type = loader.read_ref<DeviceType>(device, "device");
  if (!type)
    return Error{Error::Code::kInvalidInput, "device '" + device + "': " + type.error().message};
  defaults.device = {*std::move(type), device};
  if (const auto* known = hardware.find(device)) defaults.hardware = *known;
  auto machine = loader.read_ref<NodeConfig>("by-device/" + device, "machine");
  defaults.has_machine = machine.has_value();
  if (machine) {
    defaults.machine = *std::move(machine);
    remarks.push_back(
        "efficiencies, latencies and the host's launch time are those of the usual "
        "machine of " +
        device + " (configs/nodes/by-device)");
  } else {
    remarks.push_back("efficiencies, latencies and the host's launch time are general defaults: " +
                      device + " has no usual machine in configs/nodes/by-device");
  }
  return defaults;
}

}  // namespace foreshard::internal
