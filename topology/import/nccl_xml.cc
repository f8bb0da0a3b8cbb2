// Reads NCCL's topology XML (NCCL_TOPO_DUMP_FILE), a row of import.cc; the class and what joins its
// parts are in internal/nccl_xml.h and nccl_links.cc. Faults name the line and the element.
#include "topology/import/internal/nccl_xml.h"

#include "base/text.h"

// Source of elements, attributes and their meaning: NCCL 2.28.9, src/graph/xml.cc and topo.cc; RCCL
// (version 2: <xgmi>, sm counts compute units). docs/topology-import.md says what is taken and what
// is not.
namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

constexpr std::int64_t kMostLanes = 32;
constexpr std::int64_t kMostMbits = 100'000'000;  // 100 Tbit/s
/// First index of NICs without a `dev`: they follow the NICs with one, in the order of the file.
constexpr std::int64_t kNoIndex = 1 << 20;
/// PCIe width and speed where the file says 0 or nothing, as in NCCL.
constexpr std::int64_t kUnknownLanes = 16;
constexpr double kUnknownTransfers = 8;
/// PCIe speed of a NIC that is below no PCIe device: more than any NIC needs.
constexpr double kVirtualTransfers = 64;

/// The kind of a PCIe device without an element of its own, by its class: files that clouds hand to
/// NCCL (NCCL_TOPO_FILE) leave <gpu> and <net> to NCCL.
/// Source: NCCL 2.28.9 (src/graph/topo.cc, kvDictPciClass: 0x03 GPU, 0x02 NIC), RCCL (0x12 GPU).
enum class PciClass : std::uint8_t { kUnknown, kGpu, kNic, kOther };

PciClass class_of(const XmlElement& pci) {
  const std::string* text = pci.attribute("class");
  if (text == nullptr || text->empty()) return PciClass::kUnknown;
  const std::string known = lower_case(*text);
  if (known.starts_with("0x03") || known.starts_with("0x12")) return PciClass::kGpu;
  return known.starts_with("0x02") ? PciClass::kNic : PciClass::kOther;
}

}  // namespace

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
  FORESHARD_ASSIGN(auto lanes, number(at, "link_width", 0, kMostLanes, 0));
  const std::int64_t width = lanes == 0 ? kUnknownLanes : lanes;
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

Status NcclXmlReader::read(const XmlElement& root) {
  if (root.name == "graphs")
    return error(root,
                 "is a file of NCCL's rings and trees (NCCL_GRAPH_FILE), not of a machine: give "
                 "the topology, from NCCL_TOPO_DUMP_FILE");
  if (root.name != "system") return error(root, "is not an NCCL topology, whose root is <system>");
  const std::string* version = root.attribute("version");
  if (version == nullptr || (*version != "1" && *version != "2"))
    return error(root, "has neither version=\"1\" (NCCL) nor version=\"2\" (RCCL)");
  rccl_ = *version == "2";
  for (const auto& cpu : root.children) {
    if (cpu.name != "cpu") {
      unknown(cpu);
      continue;
    }
    FORESHARD_TRY(read_cpu(cpu));
  }
  if (gpus_.empty()) return no_gpu(root);
  FORESHARD_TRY(number_gpus());
  return join_switches();
}

Error NcclXmlReader::no_gpu(const XmlElement& root) const {
  if (!without_class_.empty())
    return error(*without_class_.front(),
                 "has no class, so that GPUs cannot be told from NICs (NCCL asks the machine that "
                 "it runs on): give what NCCL_TOPO_DUMP_FILE writes there, or add "
                 "class=\"0x030200\" to GPUs and class=\"0x020000\" to NICs");
  return error(root,
               "holds no <gpu>, and no <pci> of class 0x03 or 0x12: dump it from a job that uses "
               "the GPUs");
}

Status NcclXmlReader::read_cpu(const XmlElement& cpu) {
  const std::string* hash = cpu.attribute("host_hash");
  host_ = hosts_.try_emplace(hash == nullptr ? "" : *hash, hosts_.size()).first->second;
  FORESHARD_ASSIGN(const auto numa, number(cpu, "numaid", -1, 1 << 20, -1));
  if (!numa_.emplace(host_, numa).second)
    return error(cpu, "numaid=\"" + std::to_string(numa) + "\" is there twice");
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
      FORESHARD_TRY(read_pci(child, socket, socket));
    } else if (child.name == "nic") {
      for (const auto& net : child.children) {
        if (net.name != "net") {
          unknown(net);
          continue;
        }
        remark(net, "is attached to no PCIe device: its link to the CPU is taken as 6.0 x16");
        FORESHARD_TRY(read_net(net, socket, pcie_rate(kVirtualTransfers, kUnknownLanes), true));
      }
    } else {
      unknown(child);
    }
  }
  return {};
}

Status NcclXmlReader::read_pci(const XmlElement& pci, std::size_t parent, std::size_t socket) {
  const std::string* bus = pci.attribute("busid");
  if (bus == nullptr || bus->empty()) return error(pci, "has no busid");
  const auto slot = buses_.try_emplace({host_, lower_case(*bus)}, HostTree::kNone);
  if (!slot.second) return error(pci, "busid \"" + shown(*bus) + "\" is there twice");
  FORESHARD_ASSIGN(const auto up, pcie(pci));

  const auto is = [](std::string_view name) {
    return [name](const XmlElement& child) { return child.name == name; };
  };
  const auto gpu = std::ranges::find_if(pci.children, is("gpu"));
  if (gpu != pci.children.end()) {
    if (std::ranges::count_if(pci.children, is("gpu")) > 1)
      return error(pci, "holds several GPUs (parts of one device are not modelled)");
    FORESHARD_TRY(read_gpu(*gpu, pci, parent, socket, up));
    slot.first->second = gpus_.back().part;
    return {};
  }
  const bool holds_devices = std::ranges::any_of(pci.children, is("pci"));
  if (!holds_devices && std::ranges::any_of(pci.children, is("nic"))) {
    slot.first->second = tree.parts.size();
    return read_nics(pci, parent, up);
  }
  if (pci.children.empty() && class_of(pci) != PciClass::kOther) {
    slot.first->second = tree.parts.size();
    return read_leaf(pci, parent, socket, up);
  }
  const std::size_t bridge = tree.add({.kind = Kind::kSwitch, .parent = parent, .up = up});
  slot.first->second = bridge;
  for (const auto& child : pci.children) {
    if (child.name == "pci") {
      FORESHARD_TRY(read_pci(child, bridge, socket));
    } else if (child.name == "pcilink") {
      pcilinks_.emplace_back(bridge, &child);
    } else if (child.name != "nic") {
      unknown(child);
    }
  }
  return holds_devices ? read_nics(pci, bridge, up) : Status();
}

/// Reads a device that is known only by its PCI class.
Status NcclXmlReader::read_leaf(const XmlElement& pci, std::size_t parent, std::size_t socket,
                                BytesPerSecond up) {
  if (class_of(pci) == PciClass::kGpu) {
    auto fault = read_gpu(pci, pci, parent, socket, up);
    gpus_.back().by_class = true;
    return fault;
  }
  if (class_of(pci) == PciClass::kUnknown) {
    without_class_.push_back(&pci);
    tree.add({.kind = Kind::kSwitch, .parent = parent, .up = up});
    return {};
  }
  const std::string* bus = pci.attribute("busid");
  nics_by_class_.push_back(tree.parts.size());
  nets_.try_emplace({host_, kNoIndex + std::ssize(nets_)}, Net{tree.parts.size(), *bus, false});
  tree.add({.kind = Kind::kNic, .parent = parent, .up = up});
  return {};
}

/// Ports of one adapter share its PCIe link.
Status NcclXmlReader::read_nics(const XmlElement& pci, std::size_t parent, BytesPerSecond up) {
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
  for (const auto* net : nets) FORESHARD_TRY(read_net(*net, parent, up, false));
  return {};
}

Status NcclXmlReader::read_net(const XmlElement& net, std::size_t parent, BytesPerSecond up,
                               bool on_cpu) {
  FORESHARD_ASSIGN(const auto dev,
                   number(net, "dev", 0, kNoIndex - 1, kNoIndex + std::ssize(nets_)));
  auto mbits = number(net, "speed", -1, kMostMbits, 0);  // -1: the adapter did not know it
  if (!mbits) return mbits.error();
  BytesPerSecond port = static_cast<double>(*mbits) * 1_Mbit_s;
  if (*mbits <= 0) {
    port = request_.link_rate.value_or(static_cast<double>(kUnknownMbits) * 1_Mbit_s);
    tree.ports_from = request_.link_rate ? kLinkRate : kAsNccl;
    remark(net, request_.link_rate ? "has no speed: the rate of --link-rate is taken"
                                   : "has no speed: 10 Gbit/s is taken, as NCCL does");
  }
  const std::string* name = net.attribute("name");
  const auto [slot, added] =
      nets_.try_emplace({host_, dev}, Net{tree.parts.size(), name == nullptr ? "" : *name, on_cpu});
  if (!added) {
    // A socket interface is listed under every CPU.
    if (on_cpu && slot->second.on_cpu && name != nullptr && slot->second.name == *name) {
      tree.links.push_back({slot->second.part, parent, WiringLinkKind::kPcie, up});
      return {};
    }
    return error(net, "dev=\"" + std::to_string(dev) + "\" is there twice");
  }
  tree.add({.kind = Kind::kNic, .index = dev, .parent = parent, .up = up, .port = port});
  return {};
}

Status NcclXmlReader::read_gpu(const XmlElement& gpu, const XmlElement& pci, std::size_t parent,
                               std::size_t socket, BytesPerSecond up) {
  NcclGpu found;
  found.part = tree.add({.kind = Kind::kGpu, .parent = parent, .up = up});
  found.host = host_;
  found.socket = socket;
  found.line = gpu.line;
  found.bus = lower_case(*pci.attribute("busid"));
  found.element = "<" + gpu.name + ">: ";
  if (const std::string* id = pci.attribute("device")) found.pci_id = *id;
  if (const std::string* gcn = gpu.attribute("gcn")) found.gcn = *gcn;
  if (gpu.attribute("dev") != nullptr) {
    FORESHARD_ASSIGN(found.dev, number(gpu, "dev", 0, 1 << 20, std::nullopt));
  }
  if (gpu.attribute("sm") != nullptr && !rccl_) {
    FORESHARD_ASSIGN(found.sm, number(gpu, "sm", 0, 10'000, std::nullopt));
  }
  for (const auto& child : gpu.children) {
    if (child.name == "nvlink" || child.name == "xgmi" || child.name == "c2c") {
      found.links.push_back(&child);
    } else {
      unknown(child);
    }
  }
  gpus_.push_back(std::move(found));
  return {};
}

/// Numbers GPUs by host and CUDA index, NICs by their own index.
Status NcclXmlReader::number_gpus() {
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
  return {};
}

bool looks_like_nccl_xml(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return begin != std::string_view::npos && text[begin] == '<';
}

Result<Imported> read_nccl_xml(const ImportRequest& request, yaml::Loader& loader) {
  FORESHARD_ASSIGN(const auto hardware, read_hardware(loader));
  const auto parsed = parse_xml(request.text);
  if (const auto* fault = std::get_if<XmlFault>(&parsed))
    return import_error(request, fault->line, fault->why);
  const auto& root = std::get<XmlElement>(parsed);

  NcclXmlReader reader(request, hardware);
  FORESHARD_TRY(reader.read(root));
  FORESHARD_ASSIGN(const auto device, reader.device(loader));
  FORESHARD_ASSIGN(const auto defaults, defaults_of(device, hardware, loader, reader.remarks));
  FORESHARD_TRY(reader.fault_in_device(*defaults.device));
  FORESHARD_TRY(reader.join(defaults));

  add_doubts(reader.tree, defaults, hardware.limits, reader.remarks);

  NodeConfig node = node_of(reader.tree, defaults, request.name + " (NCCL topology)");
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
