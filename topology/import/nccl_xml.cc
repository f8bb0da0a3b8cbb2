#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

#include "topology/import/internal/host_tree.h"
#include "topology/import/internal/readers.h"
#include "topology/import/internal/words.h"
#include "topology/import/internal/xml.h"

// Source of elements, attributes and their meaning: NCCL 2.28.9, src/graph/xml.cc and topo.cc; what
// is taken and what is not stands in docs/topology-import.md.
namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

constexpr std::int64_t kMostLanes = 32;
constexpr std::int64_t kMostLinks = 1024;         // NVLinks between two ends
constexpr std::int64_t kMostMbits = 100'000'000;  // 100 Tbit/s
constexpr std::string_view kNvSwitchClass = "0x068000";
constexpr std::string_view kCpuClass = "0x068001";
/// Used where the file says 0 or nothing, as NCCL does.
constexpr std::int64_t kUnknownMbits = 10'000;
constexpr std::int64_t kUnknownLanes = 16;
constexpr double kUnknownTransfers = 8;
/// PCIe of a NIC that hangs on no PCIe device: more than any NIC needs.
constexpr double kVirtualTransfers = 64;

struct Found {
  std::size_t part = 0;
  std::size_t host = 0;
  std::size_t socket = 0;
  std::int64_t line = 0;
  std::string bus;
  std::string pci_id;
  std::optional<std::int64_t> dev;
  std::optional<std::int64_t> sm;
  std::vector<const XmlElement*> links;  // nvlink and c2c
};

struct Socket {
  std::size_t part = 0;
  std::size_t host = 0;
  BytesPerSecond bandwidth;
};

class NcclXmlReader {
 public:
  NcclXmlReader(const ImportRequest& request, const Hardware& hardware)
      : request_(request), hardware_(hardware) {}

  /// The first fault found, or nothing.
  std::optional<Error> read(const XmlElement& root);
  /// The NVLinks, once the device is known.
  std::optional<Error> join(const Defaults& defaults);
  Result<std::string> device(yaml::Loader& loader) const;
  std::optional<Error> fault_in_device(const DeviceType& type) const;

  HostTree tree;
  std::vector<std::string> remarks;
  std::size_t hosts() const { return hosts_.size(); }
  std::size_t gpus_of(std::size_t host) const {
    return static_cast<std::size_t>(std::ranges::count(gpus_, host, &Found::host));
  }

 private:
  using Fault = std::optional<Error>;

  Error error(const XmlElement& at, const std::string& why) const {
    return import_error(request_, at.line, "<" + shown(at.name) + ">: " + why);
  }
  void remark(const XmlElement& at, const std::string& what) {
    remarks.push_back("line " + std::to_string(at.line) + ", <" + shown(at.name) + ">: " + what);
  }
  /// A whole number in [lowest, highest]; `fallback` where the attribute is missing or empty.
  Result<std::int64_t> number(const XmlElement& at, std::string_view key, std::int64_t lowest,
                              std::int64_t highest, std::optional<std::int64_t> fallback) const;
  Result<BytesPerSecond> pcie(const XmlElement& at);
  void unknown(const XmlElement& element);

  Fault read_cpu(const XmlElement& cpu);
  Fault read_pci(const XmlElement& pci, std::size_t parent, std::size_t socket);
  Fault read_gpu(const XmlElement& gpu, const XmlElement& pci, std::size_t parent,
                 std::size_t socket, BytesPerSecond up);
  Fault read_net(const XmlElement& net, std::size_t parent, BytesPerSecond up, bool on_cpu);
  Fault read_nics(const XmlElement& pci, std::size_t parent, BytesPerSecond up);
  Fault number_gpus();
  Fault join_switches();
  Fault join_nvlinks(
      const Found& gpu, BytesPerSecond rate, std::map<std::size_t, std::int64_t>& to_switch,
      std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>>& to_gpu);

  const ImportRequest& request_;
  const Hardware& hardware_;
  std::map<std::string, std::size_t> hosts_;  // by host_hash
  std::set<std::pair<std::size_t, std::int64_t>> numa_;
  std::vector<Socket> sockets_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> buses_;  // (host, busid) -> part
  std::vector<Found> gpus_;
  struct Net {
    std::size_t part;
    std::string name;
    bool on_cpu;
  };
  std::map<std::pair<std::size_t, std::int64_t>, Net> nets_;  // by (host, dev)
  std::vector<std::pair<std::size_t, const XmlElement*>> pcilinks_;
  std::size_t host_ = 0;  // being read
};

Result<std::int64_t> NcclXmlReader::number(const XmlElement& at, std::string_view key,
                                           std::int64_t lowest, std::int64_t highest,
                                           std::optional<std::int64_t> fallback) const {
  const std::string* text = at.attribute(key);
  if (text == nullptr || text->empty()) {
    if (fallback) return *fallback;
    return error(at, "has no " + std::string(key));
  }
  const auto value = whole_number(*text);
  if (!value || *value < lowest || *value > highest)
    return error(at, std::string(key) + "=\"" + shown(*text) + "\" is not a whole number from " +
                         std::to_string(lowest) + " to " + std::to_string(highest));
  return *value;
}

void NcclXmlReader::unknown(const XmlElement& element) {
  remark(element, "is not known and was left out");
}

Result<BytesPerSecond> NcclXmlReader::pcie(const XmlElement& at) {
  auto lanes = number(at, "link_width", 0, kMostLanes, 0);
  if (!lanes) return lanes.error();
  const std::int64_t width = *lanes == 0 ? kUnknownLanes : *lanes;
  const std::string* speed = at.attribute("link_speed");
  static constexpr std::pair<std::string_view, double> kSpeeds[] = {
      {"2.5", 2.5}, {"5", 5},   {"5.0", 5},   {"8", 8},   {"8.0", 8},  {"16", 16},
      {"16.0", 16}, {"32", 32}, {"32.0", 32}, {"64", 64}, {"64.0", 64}};
  if (speed != nullptr && !speed->empty()) {
    const auto words = words_of(*speed);
    for (const auto& [text, transfers] : kSpeeds)
      if (!words.empty() && words.front() == text) return pcie_rate(transfers, width);
    remark(at, "link_speed \"" + shown(*speed) + "\" is not known; taken as 8 GT/s, as NCCL does");
  }
  return pcie_rate(kUnknownTransfers, width);
}

std::optional<Error> NcclXmlReader::read(const XmlElement& root) {
  if (root.name != "system") return error(root, "is not an NCCL topology, whose root is <system>");
  const std::string* version = root.attribute("version");
  if (version == nullptr || *version != "1")
    return error(root, "has no version=\"1\", the only version that is read");
  for (const auto& cpu : root.children) {
    if (cpu.name != "cpu") {
      unknown(cpu);
      continue;
    }
    if (auto fault = read_cpu(cpu)) return fault;
  }
  if (gpus_.empty()) return error(root, "holds no <gpu>");
  if (auto fault = number_gpus()) return fault;
  return join_switches();
}

std::optional<Error> NcclXmlReader::read_cpu(const XmlElement& cpu) {
  const std::string* hash = cpu.attribute("host_hash");
  host_ = hosts_.try_emplace(hash == nullptr ? "" : *hash, hosts_.size()).first->second;
  const auto numa = number(cpu, "numaid", -1, 1 << 20, -1);
  if (!numa) return numa.error();
  if (!numa_.emplace(host_, *numa).second)
    return error(cpu, "numaid=\"" + std::to_string(*numa) + "\" is there twice");
  const auto word = [&](std::string_view key) {
    const std::string* text = cpu.attribute(key);
    return text == nullptr ? std::string() : *text;
  };
  const auto optional_number = [&](std::string_view key) { return whole_number(word(key)); };
  const auto* known = hardware_.socket_of(word("arch"), word("vendor"), optional_number("familyid"),
                                          optional_number("modelid"));
  const std::size_t socket = tree.add({.kind = Kind::kSocket});
  sockets_.push_back({socket, host_, known == nullptr ? 6_GB_s : known->bandwidth});
  for (const auto& child : cpu.children) {
    if (child.name == "pci") {
      if (auto fault = read_pci(child, socket, socket)) return fault;
    } else if (child.name == "nic") {
      for (const auto& net : child.children) {
        if (net.name != "net") {
          unknown(net);
          continue;
        }
        remark(net, "is attached to no PCIe device: its link to the CPU is taken as 6.0 x16");
        if (auto fault = read_net(net, socket, pcie_rate(kVirtualTransfers, kUnknownLanes), true))
          return fault;
      }
    } else {
      unknown(child);
    }
  }
  return std::nullopt;
}

std::optional<Error> NcclXmlReader::read_pci(const XmlElement& pci, std::size_t parent,
                                             std::size_t socket) {
  const std::string* bus = pci.attribute("busid");
  if (bus == nullptr || bus->empty()) return error(pci, "has no busid");
  const auto slot = buses_.try_emplace({host_, lower_case(*bus)}, HostTree::kNone);
  if (!slot.second) return error(pci, "busid \"" + shown(*bus) + "\" is there twice");
  const auto up = pcie(pci);
  if (!up) return up.error();

  const auto is = [](std::string_view name) {
    return [name](const XmlElement& child) { return child.name == name; };
  };
  const auto gpu = std::ranges::find_if(pci.children, is("gpu"));
  if (gpu != pci.children.end()) {
    if (std::ranges::count_if(pci.children, is("gpu")) > 1)
      return error(pci, "holds several GPUs (parts of one device are not modelled)");
    if (auto fault = read_gpu(*gpu, pci, parent, socket, *up)) return fault;
    slot.first->second = gpus_.back().part;
    return std::nullopt;
  }
  const bool holds_devices = std::ranges::any_of(pci.children, is("pci"));
  if (!holds_devices && std::ranges::any_of(pci.children, is("nic"))) {
    slot.first->second = tree.parts.size();
    return read_nics(pci, parent, *up);
  }
  const std::size_t bridge = tree.add({.kind = Kind::kSwitch, .parent = parent, .up = *up});
  slot.first->second = bridge;
  for (const auto& child : pci.children) {
    if (child.name == "pci") {
      if (auto fault = read_pci(child, bridge, socket)) return fault;
    } else if (child.name == "pcilink") {
      pcilinks_.emplace_back(bridge, &child);
    } else if (child.name != "nic") {
      unknown(child);
    }
  }
  return holds_devices ? read_nics(pci, bridge, *up) : std::nullopt;
}

/// Ports of one adapter share its PCIe link.
std::optional<Error> NcclXmlReader::read_nics(const XmlElement& pci, std::size_t parent,
                                              BytesPerSecond up) {
  std::vector<const XmlElement*> nets;
  for (const auto& nic : pci.children) {
    if (nic.name != "nic") continue;
    for (const auto& net : nic.children) {
      if (net.name == "net") {
        nets.push_back(&net);
      } else {
        unknown(net);
      }
    }
  }
  if (nets.size() > 1) parent = tree.add({.kind = Kind::kSwitch, .parent = parent, .up = up});
  for (const auto* net : nets)
    if (auto fault = read_net(*net, parent, up, false)) return fault;
  return std::nullopt;
}

std::optional<Error> NcclXmlReader::read_net(const XmlElement& net, std::size_t parent,
                                             BytesPerSecond up, bool on_cpu) {
  const auto dev = number(net, "dev", 0, 1 << 20, std::nullopt);
  if (!dev) return dev.error();
  auto mbits = number(net, "speed", 0, kMostMbits, 0);
  if (!mbits) return mbits.error();
  BytesPerSecond port = static_cast<double>(*mbits) * 1_Mbit_s;
  if (*mbits == 0) {
    port = request_.link_rate.value_or(static_cast<double>(kUnknownMbits) * 1_Mbit_s);
    remark(net, request_.link_rate ? "has no speed: the rate of --link-rate is taken"
                                   : "has no speed: 10 Gbit/s is taken, as NCCL does");
  }
  const std::string* name = net.attribute("name");
  const auto [slot, added] = nets_.try_emplace(
      {host_, *dev}, Net{tree.parts.size(), name == nullptr ? "" : *name, on_cpu});
  if (!added) {
    // A socket interface is listed under every CPU.
    if (on_cpu && slot->second.on_cpu && name != nullptr && slot->second.name == *name) {
      tree.links.push_back({slot->second.part, parent, WiringLinkKind::kPcie, up});
      return std::nullopt;
    }
    return error(net, "dev=\"" + std::to_string(*dev) + "\" is there twice");
  }
  tree.add({.kind = Kind::kNic, .index = *dev, .parent = parent, .up = up, .port = port});
  return std::nullopt;
}

std::optional<Error> NcclXmlReader::read_gpu(const XmlElement& gpu, const XmlElement& pci,
                                             std::size_t parent, std::size_t socket,
                                             BytesPerSecond up) {
  Found found;
  found.part = tree.add({.kind = Kind::kGpu, .parent = parent, .up = up});
  found.host = host_;
  found.socket = socket;
  found.line = gpu.line;
  found.bus = lower_case(*pci.attribute("busid"));
  if (const std::string* id = pci.attribute("device")) found.pci_id = *id;
  if (gpu.attribute("dev") != nullptr) {
    const auto dev = number(gpu, "dev", 0, 1 << 20, std::nullopt);
    if (!dev) return dev.error();
    found.dev = *dev;
  }
  if (gpu.attribute("sm") != nullptr) {
    const auto sm = number(gpu, "sm", 0, 10'000, std::nullopt);
    if (!sm) return sm.error();
    found.sm = *sm;
  }
  for (const auto& child : gpu.children) {
    if (child.name == "nvlink" || child.name == "c2c") {
      found.links.push_back(&child);
    } else {
      unknown(child);
    }
  }
  gpus_.push_back(std::move(found));
  return std::nullopt;
}

/// By host and CUDA index; NICs by their own index.
std::optional<Error> NcclXmlReader::number_gpus() {
  std::vector<std::size_t> order(gpus_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) {
    return std::pair(gpus_[i].host, gpus_[i].dev.value_or(static_cast<std::int64_t>(i)));
  };
  std::ranges::stable_sort(order, {}, key);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && key(order[i]) == key(order[i - 1]))
      return import_error(
          request_, gpus_[order[i]].line,
          "<gpu>: dev=\"" + std::to_string(key(order[i]).second) + "\" is there twice");
    tree.parts[gpus_[order[i]].part].index = static_cast<std::int64_t>(i);
  }
  std::int64_t nic = 0;
  for (const auto& [place, net] : nets_) tree.parts[net.part].index = nic++;
  return std::nullopt;
}

std::optional<Error> NcclXmlReader::join_switches() {
  for (std::size_t i = 0; i < sockets_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (sockets_[i].host == sockets_[j].host)
        tree.links.push_back({sockets_[j].part, sockets_[i].part, WiringLinkKind::kSocket,
                              std::min(sockets_[i].bandwidth, sockets_[j].bandwidth)});
  std::set<std::pair<std::size_t, std::size_t>> joined;
  for (const auto& [from, element] : pcilinks_) {
    const std::string* target = element->attribute("target");
    if (target == nullptr) return error(*element, "has no target");
    std::size_t to = HostTree::kNone;
    for (const auto& [place, part] : buses_)
      if (place.second == lower_case(*target)) to = part;
    if (to == HostTree::kNone || tree.parts[to].kind != Kind::kSwitch)
      return error(*element, "target \"" + shown(*target) + "\" is not a PCIe switch of this file");
    if (to == from) return error(*element, "joins a switch to itself");
    if (joined.emplace(std::min(from, to), std::max(from, to)).second)
      tree.links.push_back({from, to, WiringLinkKind::kPcie, tree.parts[from].up});
  }
  return std::nullopt;
}

std::optional<Error> NcclXmlReader::join_nvlinks(
    const Found& gpu, BytesPerSecond rate, std::map<std::size_t, std::int64_t>& to_switch,
    std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>>& to_gpu) {
  for (const auto* link : gpu.links) {
    const auto count = number(*link, "count", 1, kMostLinks, 1);
    if (!count) return count.error();
    const double links = static_cast<double>(*count);
    if (link->name == "c2c") {
      const auto mbytes = number(*link, "bw", 1, 100'000'000, std::nullopt);
      if (!mbytes) return mbytes.error();
      tree.links.push_back({gpu.part, gpu.socket, WiringLinkKind::kNvLink,
                            links * static_cast<double>(*mbytes) * 1_MB_s});
      continue;
    }
    if (!(rate > BytesPerSecond()))
      return error(*link, "is an NVLink, but the device has none in configs/hardware/nvidia.yaml");
    const std::string* target = link->attribute("target");
    if (target == nullptr) return error(*link, "has no target");
    const std::string* kind = link->attribute("tclass");
    const auto known = buses_.find({gpu.host, lower_case(*target)});
    if (kind != nullptr && *kind == kNvSwitchClass) {
      to_switch[gpu.part] += *count;
    } else if (kind != nullptr && *kind == kCpuClass) {
      tree.links.push_back({gpu.part, gpu.socket, WiringLinkKind::kNvLink, links * rate});
    } else if (known == buses_.end() || known->second == HostTree::kNone ||
               tree.parts[known->second].kind != Kind::kGpu) {
      return error(*link,
                   "target \"" + shown(*target) +
                       "\" is not a GPU of this file (dump it from a job that uses all GPUs)");
    } else if (known->second == gpu.part) {
      return error(*link, "joins a GPU to itself");
    } else {
      const bool forth = gpu.part < known->second;
      auto& counts = to_gpu[{std::min(gpu.part, known->second), std::max(gpu.part, known->second)}];
      (forth ? counts.first : counts.second) += *count;
    }
  }
  return std::nullopt;
}

std::optional<Error> NcclXmlReader::join(const Defaults& defaults) {
  const BytesPerSecond rate = defaults.hardware.nvlink.value_or(BytesPerSecond());
  std::map<std::size_t, std::int64_t> to_switch;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>> to_gpu;
  for (const auto& gpu : gpus_)
    if (auto fault = join_nvlinks(gpu, rate, to_switch, to_gpu)) return fault;
  for (const auto& [ends, counts] : to_gpu) {
    if (counts.first != counts.second) {
      const auto at = std::ranges::find(gpus_, ends.first, &Found::part);
      const auto other = std::ranges::find(gpus_, ends.second, &Found::part);
      return import_error(request_, at->line,
                          "<gpu>: " + shown(at->bus) + " has " + std::to_string(counts.first) +
                              " NVLinks to " + shown(other->bus) + ", which has " +
                              std::to_string(counts.second) + " back");
    }
    tree.links.push_back({ends.first, ends.second, WiringLinkKind::kNvLink,
                          static_cast<double>(counts.first) * rate});
  }
  if (to_switch.empty()) return std::nullopt;
  const std::size_t hub = tree.add({.kind = Kind::kNvSwitch});
  for (const auto& [gpu, count] : to_switch)
    tree.links.push_back({gpu, hub, WiringLinkKind::kNvLink, static_cast<double>(count) * rate});
  return std::nullopt;
}

Result<std::string> NcclXmlReader::device(yaml::Loader& loader) const {
  if (!request_.device.empty()) return request_.device;
  const HardwareDevice* found = nullptr;
  for (const auto& gpu : gpus_) {
    const auto id = whole_number(gpu.pci_id, 16);
    const HardwareDevice* known = id ? hardware_.device_of_pci_id(*id) : nullptr;
    if (known == nullptr) {
      std::vector<std::string> candidates;
      for (const auto& device : hardware_.devices) {
        const auto type = loader.read_ref<DeviceType>(device.device, "candidate");
        if (type && gpu.sm && *type->compute_capability == *gpu.sm)
          candidates.push_back(device.device);
      }
      return import_error(
          request_, gpu.line,
          "<gpu>: PCI device \"" + shown(gpu.pci_id) + "\"" +
              (gpu.sm ? " of sm " + std::to_string(*gpu.sm) : "") +
              " is not in configs/hardware/nvidia.yaml: give --device" +
              (candidates.empty() ? "" : " (" + quoted_choice(candidates) + " have this sm)"));
    }
    if (found != nullptr && found != known)
      return import_error(request_, gpu.line,
                          "<gpu>: is a " + known->device + ", but an earlier one is a " +
                              found->device + ": a node has one kind of device");
    found = known;
  }
  return found->device;
}

std::optional<Error> NcclXmlReader::fault_in_device(const DeviceType& type) const {
  for (const auto& gpu : gpus_)
    if (gpu.sm && *type.compute_capability != *gpu.sm)
      return import_error(request_, gpu.line,
                          "<gpu>: sm=\"" + std::to_string(*gpu.sm) + "\", but " + type.name +
                              " has " + std::to_string(*type.compute_capability));
  return std::nullopt;
}

}  // namespace

bool looks_like_nccl_xml(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return begin != std::string_view::npos && text[begin] == '<';
}

Result<Imported> read_nccl_xml(const ImportRequest& request, yaml::Loader& loader) {
  const auto hardware = read_hardware(loader);
  if (!hardware) return hardware.error();
  const auto parsed = parse_xml(request.text);
  if (const auto* fault = std::get_if<XmlFault>(&parsed))
    return import_error(request, fault->line, fault->why);
  const auto& root = std::get<XmlElement>(parsed);

  NcclXmlReader reader(request, *hardware);
  if (auto fault = reader.read(root)) return *std::move(fault);
  const auto device = reader.device(loader);
  if (!device) return device.error();
  const auto defaults = defaults_of(*device, *hardware, loader, reader.remarks);
  if (!defaults) return defaults.error();
  if (auto fault = reader.fault_in_device(*defaults->device)) return *std::move(fault);
  if (auto fault = reader.join(*defaults)) return *std::move(fault);

  NodeConfig node = node_of(reader.tree, *defaults, request.name + " (NCCL topology)");
  node.summary = "Imported from " + request.name + " (NCCL topology).";
  if (reader.hosts() > 1) {
    reader.remarks.push_back("the file describes " + std::to_string(reader.hosts()) +
                             " hosts that share one NVLink domain: they are one node here");
    bool equal = true;
    for (std::size_t host = 1; host < reader.hosts(); ++host)
      equal = equal && reader.gpus_of(host) == reader.gpus_of(0);
    if (equal) node.gpus_per_tray = static_cast<std::int64_t>(reader.gpus_of(0));
  }
  return Imported{std::move(node), "nccl-xml", request.name, std::move(reader.remarks)};
}

}  // namespace foreshard::internal
