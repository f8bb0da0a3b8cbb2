#include "topology/node_config.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "base/check.h"

namespace foreshard {

std::string fault_in(const WiringConfig& wiring, std::int64_t gpus) {
  std::set<std::string> names;
  std::set<std::string> unlinked_nics;
  for (std::int64_t i = 0; i < gpus; ++i) names.insert("gpu" + std::to_string(i));
  for (const auto& part : wiring.parts) {
    if (!names.insert(part.name).second) return "part '" + part.name + "' is there twice";
    if (part.name.find('/') != std::string::npos)
      return "part '" + part.name + "': names have no '/'";
    const bool nic = part.kind == WiringPartKind::kNic;
    if (nic && !part.bandwidth)
      return "NIC '" + part.name + "' has no bandwidth: give that of its port to the network";
    if (!nic && part.bandwidth)
      return "part '" + part.name + "' has a bandwidth, but only NICs have ports to the network";
    if (nic) unlinked_nics.insert(part.name);
  }
  for (const auto& link : wiring.links) {
    const std::string name = "link " + link.a + " - " + link.b;
    for (const auto& end : {link.a, link.b})
      if (!names.contains(end))
        return fmt::format(
            "{}: there is no '{}' (GPUs are gpu0 to gpu{}; anything else is listed under parts)",
            name, end, gpus - 1);
    if (link.a == link.b) return name + " joins a part to itself";
    unlinked_nics.erase(link.a);
    unlinked_nics.erase(link.b);
  }
  if (!unlinked_nics.empty()) return "NIC '" + *unlinked_nics.begin() + "' has no link";
  return "";
}

const yaml::Names<WiringPartKind>& yaml_names(const WiringPartKind*) {
  static const yaml::Names<WiringPartKind> names{
      {"nvswitch", WiringPartKind::kNvSwitch, "A switch of NVLinks."},
      {"pcie-switch", WiringPartKind::kPcieSwitch, "A PCIe switch or bridge."},
      {"socket", WiringPartKind::kSocket, "A CPU socket (or NUMA domain) with its root ports."},
      {"nic", WiringPartKind::kNic, "A network adapter."},
  };
  return names;
}

const yaml::Names<WiringLinkKind>& yaml_names(const WiringLinkKind*) {
  static const yaml::Names<WiringLinkKind> names{
      {"nvlink", WiringLinkKind::kNvLink, "NVLinks, those between the same ends as one."},
      {"pcie", WiringLinkKind::kPcie, "A PCIe connection."},
      {"socket", WiringLinkKind::kSocket, "Between CPU sockets; its rate is the payload rate."},
  };
  return names;
}

const yaml::Table<WiringPart>& yaml_table(const WiringPart*) {
  static const auto table =
      yaml::Table<WiringPart>("part", "Anything in a host but a GPU.")
          .required("name", &WiringPart::name, "Name, which links refer to.", yaml::non_empty())
          .required("kind", &WiringPart::kind, "Its kind.")
          .optional("bandwidth", &WiringPart::bandwidth,
                    "Of a NIC: nominal rate of one direction of its port to the network.",
                    yaml::positive());
  return table;
}

const yaml::Table<WiringLink>& yaml_table(const WiringLink*) {
  static const auto table =
      yaml::Table<WiringLink>("link", "Both directions of one connection inside a host.")
          .required("a", &WiringLink::a, "One end: a part or gpu0, gpu1, ...", yaml::non_empty())
          .required("b", &WiringLink::b, "The other end.", yaml::non_empty())
          .required("kind", &WiringLink::kind, "Its kind.")
          .required("bandwidth", &WiringLink::bandwidth,
                    "Nominal rate of one direction of all its lanes or links together.",
                    yaml::positive());
  return table;
}

const yaml::Table<WiringConfig>& yaml_table(const WiringConfig*) {
  using W = WiringConfig;
  static const auto table =
      yaml::Table<W>("wiring", "A host link by link, instead of nvlink, pcie and nics.")
          .optional("parts", &W::parts,
                    "Everything besides the GPUs; NICs in the order of their rails.")
          .required("links", &W::links, "The connections between parts and GPUs.",
                    yaml::non_empty())
          .optional("nvlink_efficiency", &W::nvlink_efficiency,
                    "Payload rate of long transfers over NVLink, as a part of the nominal rate.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("pcie_efficiency", &W::pcie_efficiency, "The same for PCIe.", yaml::positive(),
                    yaml::at_most(1.0))
          .optional("nic_efficiency", &W::nic_efficiency, "The same for the ports of the NICs.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("nvlink_latency", &W::nvlink_latency, "Latency of one NVLink.",
                    yaml::non_negative())
          .optional("pcie_latency", &W::pcie_latency, "Latency of one PCIe hop.",
                    yaml::non_negative())
          .optional("socket_latency", &W::socket_latency, "Latency between two sockets.",
                    yaml::non_negative())
          .optional("nic_latency", &W::nic_latency, "Latency of one adapter.",
                    yaml::non_negative());
  return table;
}

namespace {

/// Values beyond these limits are mistaken units, not machines.
constexpr BytesPerSecond kSlowest = 1_Mbit_s;
constexpr BytesPerSecond kFastest = 1000_TB_s;
constexpr Seconds kLongestLatency = 1_s;
constexpr double kLeastEfficiency = 0.01;

}  // namespace

const yaml::Table<CpuLinkConfig>& yaml_table(const CpuLinkConfig*) {
  using L = CpuLinkConfig;
  static const auto table =
      yaml::Table<L>("cpu_link", "What joins each GPU to its CPU beside PCIe: NVLink-C2C.")
          .required(
              "bandwidth", &L::bandwidth,
              "Nominal rate of one GPU's link in one direction: a quarter of what data sheets "
              "call the bandwidth of a superchip with two GPUs.",
              yaml::positive(), yaml::at_least(kSlowest), yaml::at_most(kFastest))
          .optional("efficiency", &L::efficiency,
                    "Payload rate of long copies, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("latency", &L::latency, "Latency of the link.", yaml::non_negative(),
                    yaml::at_most(kLongestLatency))
          .optional("gpus", &L::gpus, "GPUs that share one CPU.", yaml::at_least(1));
  return table;
}

const yaml::Table<CpuConfig>& yaml_table(const CpuConfig*) {
  using C = CpuConfig;
  static const auto table =
      yaml::Table<C>("cpu", "The CPUs, as offloading to them sees them.")
          .optional("memory_bandwidth", &C::memory_bandwidth,
                    "Nominal rate of the memory of one socket, reads and writes together. Without "
                    "it memory delays no copy, and nothing can be computed on the CPU.",
                    yaml::positive(), yaml::at_least(kSlowest), yaml::at_most(kFastest))
          .optional("memory_efficiency", &C::memory_efficiency,
                    "What long reads and writes reach, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("link", &C::link,
                    "Of GPUs that have a link of their own to a CPU, beside PCIe.");
  return table;
}

namespace {

/// Values beyond these limits are mistaken units, not machines.
constexpr BytesPerSecond kSlowestLink = 1_Mbit_s;
constexpr BytesPerSecond kFastestLink = 1000_TB_s;
constexpr double kSlowestHost = 0.01;
constexpr double kFastestHost = 100;
constexpr double kMostParts = 4096;  // of one node

std::string fault_in_pairs(const NodeConfig& node) {
  if (!node.nvlink) return "";
  const auto& nvlink = *node.nvlink;
  if (nvlink.layout == NvlinkLayout::kSwitch && !nvlink.pairs.empty())
    return "lists pairs, but its layout is switch: pairs belong to layout: mesh";
  if (nvlink.layout == NvlinkLayout::kMesh && nvlink.switches != 1)
    return "gives switches, but its layout is mesh";
  if (node.gpus % nvlink.switches != 0)
    return std::to_string(node.gpus) + " GPUs cannot be spread evenly over " +
           std::to_string(nvlink.switches) + " groups of NVSwitches: write nvlink: {switches: " +
           std::to_string(std::gcd(node.gpus, nvlink.switches)) + "}";
  for (const auto& pair : nvlink.pairs) {
    const std::string name = std::to_string(pair.a) + "-" + std::to_string(pair.b);
    if (pair.a >= node.gpus || pair.b >= node.gpus)
      return "pair " + name + " names a GPU beyond the node's last, " +
             std::to_string(node.gpus - 1) + ": list the pairs that such a node has";
    if (pair.a == pair.b) return "pair " + name + " joins a GPU to itself";
  }
  return "";
}

std::string fault_in_nics(const NodeConfig& node) {
  if (!node.nics) return "";
  const auto nics = node.nics->count;
  if (node.gpus % nics == 0 || nics % node.gpus == 0) return "";
  return std::to_string(nics) + " NICs cannot serve " + std::to_string(node.gpus) +
         " GPUs evenly: the count must divide the GPUs or be a multiple of them, for example nics: "
         "{count: " +
         std::to_string(node.gpus) + "}";
}

std::string fault_in_switches(const NodeConfig& node) {
  if (!node.pcie.switches) return "";
  const auto switches = *node.pcie.switches;
  if (node.gpus % switches == 0) return "";
  return std::to_string(node.gpus) + " GPUs cannot be spread evenly under " +
         std::to_string(switches) +
         " PCIe switches: write pcie: {switches: " + std::to_string(std::gcd(node.gpus, switches)) +
         "}";
}

bool regular_pcie_given(const PcieConfig& pcie) {
  const PcieConfig usual;
  return pcie.generation || pcie.switches || pcie.sockets != usual.sockets ||
         !(pcie.efficiency == usual.efficiency && pcie.latency == usual.latency &&
           pcie.socket_bandwidth == usual.socket_bandwidth &&
           pcie.socket_latency == usual.socket_latency);
}

std::string fault_in_cpu(const NodeConfig& node) {
  if (!node.cpu.memory_bandwidth && !(node.cpu.memory_efficiency == CpuConfig{}.memory_efficiency))
    return "gives memory_efficiency, a part of memory_bandwidth, but not that";
  if (!node.cpu.link) return "";
  if (node.wiring)
    return "gives link, but wiring gives every link: join each GPU to a part of kind socket there";
  if (node.gpus % node.cpu.link->gpus != 0)
    return std::to_string(node.gpus) + " GPUs cannot be spread evenly over CPUs of " +
           std::to_string(node.cpu.link->gpus);
  return "";
}

// Superchips have no PCIe between them that could replace NVLinks.
std::string fault_in_superchips(const NodeConfig& node) {
  if (!node.cpu.link || node.gpus == 1 || node.nvlink || node.wiring) return "";
  return std::to_string(node.gpus) +
         " GPUs on CPUs of their own (cpu.link), and nothing says how they are joined: give "
         "nvlink, "
         "for example {layout: mesh, bandwidth: 25 GB/s, links_per_pair: 6}, or extend a machine "
         "that "
         "has as many (gh200-4gpu)";
}

std::string fault_in_wiring(const NodeConfig& node) {
  if (!node.wiring) return "";
  if (node.nvlink || node.nics || regular_pcie_given(node.pcie))
    return "gives every link: remove nvlink, pcie and nics beside it";
  return fault_in(*node.wiring, node.gpus);
}

}  // namespace

bool has_nics(const NodeConfig& node) {
  if (!node.wiring) return node.nics.has_value();
  return std::ranges::any_of(
      node.wiring->parts, [](const WiringPart& part) { return part.kind == WiringPartKind::kNic; });
}

BytesPerSecond pcie_bandwidth(std::int64_t generation) {
  FORESHARD_CHECK(generation >= 3 && generation <= 6);
  const double transfers = 8e9 * std::exp2(static_cast<double>(generation - 3));
  const double coding = generation < 6 ? 128.0 / 130.0 : 242.0 / 256.0;
  constexpr double kLanes = 16;
  constexpr double kBits = 8;
  return BytesPerSecond::from_base(transfers * kLanes / kBits * coding);
}

std::int64_t pcie_generation(const NodeConfig& node) {
  if (node.pcie.generation) return *node.pcie.generation;
  std::int64_t generation = 4;
  while (node.nics && generation < 6 &&
         pcie_bandwidth(generation) * *node.pcie.efficiency <
             *node.nics->bandwidth * *node.nics->efficiency)
    ++generation;
  return generation;
}

std::int64_t pcie_switches(const NodeConfig& node) {
  if (node.pcie.switches) return *node.pcie.switches;
  const std::int64_t shared = node.nics ? std::gcd(node.gpus, node.nics->count) : 1;
  const bool divides = node.pcie.sockets > 0 && node.gpus % node.pcie.sockets == 0;
  const std::int64_t sockets = divides ? node.pcie.sockets : 1;
  return std::max(shared, sockets);
}

const yaml::Names<NvlinkLayout>& yaml_names(const NvlinkLayout*) {
  static const yaml::Names<NvlinkLayout> names{
      {"switch", NvlinkLayout::kSwitch, "Every GPU is joined to one NVSwitch by all its links."},
      {"mesh", NvlinkLayout::kMesh, "Links go from GPU to GPU."},
  };
  return names;
}

const yaml::Table<NvlinkPair>& yaml_table(const NvlinkPair*) {
  static const auto table =
      yaml::Table<NvlinkPair>("pair", "NVLinks between two GPUs of a node.")
          .required("a", &NvlinkPair::a, "Index of one GPU.", yaml::at_least(0))
          .required("b", &NvlinkPair::b, "Index of the other.", yaml::at_least(0))
          .optional("links", &NvlinkPair::links, "Number of links between the two.",
                    yaml::at_least(1));
  return table;
}

const yaml::Table<NvlinkConfig>& yaml_table(const NvlinkConfig*) {
  using N = NvlinkConfig;
  static const auto table =
      yaml::Table<N>("nvlink", "The GPUs' own links inside a node.")
          .optional("layout", &N::layout, "How the links are joined.")
          .required("bandwidth", &N::bandwidth,
                    "Nominal rate of one direction: of all links of a GPU together (switch), or of "
                    "one link (mesh). Half of what data sheets call the NVLink bandwidth.",
                    yaml::positive(), yaml::at_least(kSlowestLink), yaml::at_most(kFastestLink))
          .optional("efficiency", &N::efficiency,
                    "Payload rate of long transfers, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("latency", &N::latency,
                    "Latency of one link; a path through the switch takes two.",
                    yaml::non_negative(), yaml::at_most(kLongestLatency))
          .optional("links_per_pair", &N::links_per_pair,
                    "Mesh without `pairs`: number of links between any two GPUs.",
                    yaml::at_least(1))
          .optional("pairs", &N::pairs, "Mesh: which GPUs are joined.")
          .optional("switches", &N::switches,
                    "Switch: number of groups of NVSwitches that share the GPUs evenly. Paths "
                    "between two groups take one more hop, at full bandwidth.",
                    yaml::at_least(1), yaml::at_most(16));
  return table;
}

const yaml::Table<PcieConfig>& yaml_table(const PcieConfig*) {
  using P = PcieConfig;
  static const auto table =
      yaml::Table<P>("pcie", "The PCIe tree: sockets, switches under them, GPUs and NICs at x16.")
          .optional("generation", &P::generation,
                    "PCIe generation, 3 to 6; by default the lowest from 4 on whose x16 link "
                    "carries a NIC.",
                    yaml::between(3, 6))
          .optional("efficiency", &P::efficiency,
                    "Payload rate of long transfers, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("latency", &P::latency, "Latency of one hop.", yaml::non_negative(),
                    yaml::at_most(kLongestLatency))
          .optional("switches", &P::switches,
                    "Number of PCIe switches; by default one per NIC, or one per GPU if there are "
                    "fewer GPUs.",
                    yaml::at_least(1), yaml::at_most(kMostParts))
          .optional("sockets", &P::sockets,
                    "Number of CPU sockets, each joined to every other. 0: nothing joins the "
                    "switches (a rack of trays).",
                    yaml::at_least(0), yaml::at_most(64))
          .optional("socket_bandwidth", &P::socket_bandwidth, "Payload rate between two sockets.",
                    yaml::positive(), yaml::at_least(kSlowestLink), yaml::at_most(kFastestLink))
          .optional("socket_latency", &P::socket_latency, "Latency between two sockets.",
                    yaml::non_negative(), yaml::at_most(kLongestLatency));
  return table;
}

const yaml::Table<NicConfig>& yaml_table(const NicConfig*) {
  using N = NicConfig;
  static const auto table =
      yaml::Table<N>("nics", "The network adapters of a node.")
          .required("count", &N::count, "Number of NICs; each serves an equal part of the GPUs.",
                    yaml::at_least(1), yaml::at_most(kMostParts))
          .required("bandwidth", &N::bandwidth, "Nominal rate of one NIC in one direction.",
                    yaml::positive(), yaml::at_least(kSlowestLink), yaml::at_most(kFastestLink))
          .optional("efficiency", &N::efficiency,
                    "Payload rate of long transfers, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("latency", &N::latency, "Latency of one adapter.", yaml::non_negative(),
                    yaml::at_most(kLongestLatency))
          .optional("transport", &N::transport,
                    "How the NICs are driven. Default: InfiniBand verbs.");
  return table;
}

const yaml::Table<HostConfig>& yaml_table(const HostConfig*) {
  static const auto table =
      yaml::Table<HostConfig>("host",
                              "What the CPU side of a node costs, independent of the framework.")
          .optional("launch_time", &HostConfig::launch_time,
                    "Time that the host thread takes to launch one kernel.", yaml::non_negative(),
                    yaml::at_most(kLongestLatency))
          .optional("speed", &HostConfig::speed,
                    "Speed of one thread at what frameworks do for a kernel (`host_time`), as a "
                    "multiple of that of a DGX H100 (Xeon 8480C).",
                    yaml::at_least(kSlowestHost), yaml::at_most(kFastestHost));
  return table;
}

const yaml::Table<NodeConfig>& yaml_table(const NodeConfig*) {
  using N = NodeConfig;
  static const auto table =
      yaml::Table<N>("node", "One host: its devices and what joins them.")
          .folder("nodes")
          .optional("summary", &N::summary, "A sentence on what machine this is.")
          .required("device", &N::device, "The kind of its GPUs.")
          .required("gpus", &N::gpus, "Number of GPUs.", yaml::at_least(1),
                    yaml::at_most(kMostParts))
          .optional("gpus_per_tray", &N::gpus_per_tray,
                    "GPUs per tray of a rack whose trays share one NVLink domain; the node is then "
                    "the rack.",
                    yaml::at_least(1))
          .optional("nvlink", &N::nvlink, "The NVLinks; without them GPUs communicate over PCIe.")
          .optional("pcie", &N::pcie, "The PCIe tree.")
          .optional("nics", &N::nics, "The network adapters; without them the node has no network.")
          .optional("wiring", &N::wiring,
                    "Link by link, instead of nvlink, pcie and nics: for irregular hosts.")
          .optional("host", &N::host, "The CPU side.")
          .optional("cpu", &N::cpu, "The CPUs, as offloading to them sees them.")
          .optional("host_power", &N::host_power,
                    "What the node draws beside its devices, for each of them and at all times: "
                    "CPUs, memory, adapters, fans, losses.",
                    yaml::non_negative())
          .check("nvlink", fault_in_pairs)
          .check("nics", fault_in_nics)
          .check("pcie", fault_in_switches)
          .check("cpu", fault_in_cpu)
          .check("gpus", fault_in_superchips)
          .check("wiring", fault_in_wiring);
  return table;
}

}  // namespace foreshard
