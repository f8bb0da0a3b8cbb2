// What the usual machine of a device adds to a host, and what the host lacks beside it.
#include <algorithm>
#include <map>

#include "base/quantity.h"

#include "topology/import/internal/host_tree.h"

namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

bool joins_gpus(const HostTree& tree, const HostTree::Link& link) {
  const auto is = [&](std::size_t part, Kind kind) { return tree.parts[part].kind == kind; };
  return link.kind == WiringLinkKind::kNvLink && !is(link.a, Kind::kSocket) &&
         !is(link.b, Kind::kSocket);
}

}  // namespace

bool add_usual_nvlinks(HostTree& tree, const Defaults& defaults) {
  const auto& usual = defaults.machine.nvlink;
  std::map<std::int64_t, std::size_t> gpus;  // parts by index
  for (std::size_t i = 0; i < tree.parts.size(); ++i)
    if (tree.parts[i].kind == Kind::kGpu) gpus.emplace(tree.parts[i].index, i);
  if (!usual) return false;
  if (usual->layout == NvlinkLayout::kSwitch) {
    const std::size_t hub = tree.add({.kind = Kind::kNvSwitch});
    for (const auto& [index, gpu] : gpus)
      tree.links.push_back({gpu, hub, WiringLinkKind::kNvLink, *usual->bandwidth});
    return true;
  }
  if (std::ssize(gpus) != defaults.machine.gpus) return false;
  const auto join = [&](std::int64_t a, std::int64_t b, std::int64_t links) {
    tree.links.push_back({gpus.at(a), gpus.at(b), WiringLinkKind::kNvLink,
                          static_cast<double>(links) * *usual->bandwidth});
  };
  for (const auto& pair : usual->pairs) join(pair.a, pair.b, pair.links);
  if (!usual->pairs.empty()) return true;
  for (std::int64_t a = 0; a < std::ssize(gpus); ++a)
    for (std::int64_t b = a + 1; b < std::ssize(gpus); ++b) join(a, b, usual->links_per_pair);
  return true;
}

void add_doubts(const HostTree& tree, const Defaults& defaults, const HardwareLimits& limits,
                std::vector<std::string>& remarks) {
  if (!defaults.has_machine) return;
  const std::string usual = "the usual machine of " + defaults.device.name;
  const auto slot = pcie_bandwidth(pcie_generation(defaults.machine));
  std::string first;
  BytesPerSecond rate;
  std::size_t more = 0;
  for (const auto& part : tree.parts) {
    if (part.kind != Kind::kGpu || !(part.up < *limits.pcie_uplink * slot)) continue;
    if (!first.empty()) {
      ++more;
      continue;
    }
    first = "gpu" + std::to_string(part.index);
    rate = part.up;
  }
  if (!first.empty())
    remarks.push_back("warning: " + first +
                      (more > 0 ? " (and " + std::to_string(more) + " more)" : "") + ": its PCIe " +
                      "link has " + format(rate) + ", that of " + usual + " " + format(slot) +
                      ": is the file's link_width or link_speed right?");
  if (tree.count(Kind::kGpu) > 1 && defaults.machine.nvlink &&
      std::ranges::none_of(tree.links, [&](const auto& link) { return joins_gpus(tree, link); }))
    remarks.push_back("warning: the file has no NVLink between GPUs, but " + usual +
                      " has: was it hidden from a virtual machine or a container, or "
                      "left out (as `nvidia-smi topo -mp` does)?");
}

}  // namespace foreshard::internal
