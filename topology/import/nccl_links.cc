// The links between the parts of an NCCL file, once all parts are read, and the device type of its
// GPUs.
#include "base/text.h"

#include "topology/import/internal/nccl_xml.h"
#include "topology/import/internal/readers.h"
#include "topology/internal/words.h"

namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

constexpr std::int64_t kMostLinks = 1024;  // NVLinks between two ends
constexpr std::string_view kNvSwitchClass = "0x068000";
constexpr std::string_view kCpuClass = "0x068001";

}  // namespace

Status NcclXmlReader::join_switches() {
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
  return {};
}

Status NcclXmlReader::join_nvlinks(
    const NcclGpu& gpu, BytesPerSecond rate, std::map<std::size_t, std::int64_t>& to_switch,
    std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>>& to_gpu) {
  for (const auto* link : gpu.links) {
    FORESHARD_ASSIGN(const auto count, number(*link, "count", 1, kMostLinks, 1));
    const double links = static_cast<double>(count);
    if (link->name == "c2c") {
      FORESHARD_ASSIGN(const auto mbytes, number(*link, "bw", 1, 100'000'000, std::nullopt));
      tree.links.push_back({gpu.part, gpu.socket, WiringLinkKind::kNvLink,
                            links * static_cast<double>(mbytes) * 1_MB_s});
      continue;
    }
    if (!(rate > BytesPerSecond()))
      return error(*link, "the device has no NVLink in configs/hardware/gpus.yaml");
    const std::string* target = link->attribute("target");
    if (target == nullptr) return error(*link, "has no target");
    const std::string* kind = link->attribute("tclass");
    const auto known = buses_.find({gpu.host, lower_case(*target)});
    if (kind != nullptr && *kind == kNvSwitchClass) {
      to_switch[gpu.part] += count;
    } else if (kind != nullptr && *kind == kCpuClass) {
      tree.links.push_back({gpu.part, gpu.socket, WiringLinkKind::kNvLink, links * rate});
    } else if (known == buses_.end() || known->second == HostTree::kNone ||
               tree.parts[known->second].kind != Kind::kGpu) {
      return error(*link,
                   "target \"" + shown(*target) +
                       "\" is not a GPU of this file (dump it from a job that uses all GPUs)");
    } else if (known->second == gpu.part) {
      remark(*link, "joins the GPU to itself and was left out");
    } else {
      const bool forth = gpu.part < known->second;
      auto& counts = to_gpu[{std::min(gpu.part, known->second), std::max(gpu.part, known->second)}];
      (forth ? counts.first : counts.second) += count;
    }
  }
  return {};
}

/// Gives the usual machine's NVLinks to GPUs, and its rate to NICs, that are known only by PCI
/// class.
void NcclXmlReader::give_usual_links(const Defaults& defaults) {
  const auto usual = "of " + defaults.usual();
  const auto& machine = defaults.machine;
  if (!nics_by_class_.empty()) {
    auto rate = request_.link_rate;
    if (!rate && machine.nics) rate = *machine.nics->bandwidth;
    tree.ports_from = request_.link_rate ? kLinkRate : rate ? defaults.usual() : kAsNccl;
    for (const auto nic : nics_by_class_)
      tree.parts[nic].port = rate.value_or(static_cast<double>(kUnknownMbits) * 1_Mbit_s);
    remarks.push_back("the file gives no rate of its NICs: " +
                      (request_.link_rate ? std::string("that of --link-rate")
                       : rate             ? "that " + usual
                                          : std::string("10 Gbit/s")) +
                      " is taken" + (request_.link_rate ? "" : "; --link-rate gives another"));
  }
  const bool named = std::ranges::any_of(gpus_, [](const NcclGpu& gpu) { return !gpu.by_class; });
  if (named || !machine.nvlink || gpus_.size() < 2) return;
  remarks.push_back("the file names no NVLinks (NCCL finds them at run time): those " + usual +
                    (add_usual_nvlinks(tree, defaults)
                         ? " are taken, GPUs in the order of the file"
                         : " are for " + std::to_string(machine.gpus) + " GPUs and are left out"));
}

Status NcclXmlReader::join(const Defaults& defaults) {
  const BytesPerSecond rate = defaults.hardware.nvlink.value_or(BytesPerSecond());
  std::map<std::size_t, std::int64_t> to_switch;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>> to_gpu;
  for (const auto& gpu : gpus_) FORESHARD_TRY(join_nvlinks(gpu, rate, to_switch, to_gpu));
  for (const auto& [ends, counts] : to_gpu) {
    if (counts.first != counts.second) {
      const auto at = std::ranges::find(gpus_, ends.first, &NcclGpu::part);
      const auto other = std::ranges::find(gpus_, ends.second, &NcclGpu::part);
      return import_error(request_, at->line,
                          "<gpu>: " + shown(at->bus) + " has " + std::to_string(counts.first) +
                              " NVLinks to " + shown(other->bus) + ", which has " +
                              std::to_string(counts.second) + " back");
    }
    tree.links.push_back({ends.first, ends.second, WiringLinkKind::kNvLink,
                          static_cast<double>(counts.first) * rate});
  }
  give_usual_links(defaults);
  if (to_switch.empty()) return {};
  const std::size_t hub = tree.add({.kind = Kind::kNvSwitch});
  for (const auto& [gpu, count] : to_switch)
    tree.links.push_back({gpu, hub, WiringLinkKind::kNvLink, static_cast<double>(count) * rate});
  return {};
}

Result<std::string> NcclXmlReader::device(yaml::Loader& loader) {
  const HardwareDevice* found = nullptr;
  for (const auto& gpu : gpus_) {
    const auto id = whole_number(gpu.pci_id, 16);
    const HardwareDevice* known = id ? hardware_.device_of_pci_id(*id) : nullptr;
    if (known == nullptr && request_.device.empty()) return unknown_device(gpu, loader);
    if (known == nullptr || known == found) continue;
    if (request_.device.empty() && found != nullptr)
      return import_error(request_, gpu.line,
                          gpu.element + "is a " + known->device + ", but an earlier one is a " +
                              found->device + ": a node has one kind of device");
    if (!request_.device.empty() && known->device != request_.device)
      remarks.push_back("warning: line " + std::to_string(gpu.line) + ": PCI device \"" +
                        shown(gpu.pci_id) + "\" is a " + known->device + ", but --device says " +
                        request_.device + ", which is taken");
    found = known;
  }
  if (rccl_ && found == nullptr)
    remarks.push_back("warning: the file names its GPUs by gcn \"" + shown(gpus_.front().gcn) +
                      "\" alone: they are taken as --device says, " + request_.device);
  return request_.device.empty() ? found->device : request_.device;
}

/// The fault of a GPU whose PCI id is missing or in no list.
Error NcclXmlReader::unknown_device(const NcclGpu& gpu, yaml::Loader& loader) const {
  std::vector<std::string> candidates;
  for (const auto& device : hardware_.devices) {
    const auto type = loader.read_ref<DeviceType>(device.device, "candidate");
    if (type && gpu.sm && *type->compute_capability == *gpu.sm) candidates.push_back(device.device);
  }
  std::string what = gpu.pci_id.empty() ? "the file does not name the GPU"
                                        : "PCI device \"" + shown(gpu.pci_id) +
                                              "\" is not in configs/hardware/gpus.yaml";
  if (gpu.sm) what += ", of sm " + std::to_string(*gpu.sm);
  if (rccl_) what += " (the file is RCCL's: a GPU of AMD, gcn \"" + shown(gpu.gcn) + "\")";
  return import_error(
      request_, gpu.line,
      gpu.element + what + ": give --device" +
          (candidates.empty() ? ", a name in configs/devices or a file of your own"
                              : " (" + quoted_choice(candidates) + " have this sm)"));
}

Status NcclXmlReader::fault_in_device(const DeviceType& type) const {
  for (const auto& gpu : gpus_)
    if (gpu.sm && *type.compute_capability != *gpu.sm)
      return import_error(request_, gpu.line,
                          "<gpu>: sm=\"" + std::to_string(*gpu.sm) + "\", but " + type.name +
                              " has " + std::to_string(*type.compute_capability));
  return {};
}

}  // namespace foreshard::internal
