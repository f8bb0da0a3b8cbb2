// The usual machine of a device (of H100 SXM, a DGX H100: configs/nodes/by-device/) beside a host
// that nvidia_smi.cc or nccl_xml.cc read from a file: where the file names no NVLinks, the usual
// ones are added, and warnings say where the host has less than the usual machine. Rates are
// nominal and of one direction. Without a usual machine nothing is added and nothing is doubted.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/quantity.h"

#include "topology/import/internal/host_tree.h"

namespace foreshard::internal {
namespace {

using Kind = HostTree::Kind;

// Whether it is an NVLink between GPUs, directly or through a switch.
bool joins_gpus(const HostTree& tree, const HostTree::Link& link) {
  const auto is = [&](std::size_t part, Kind kind) { return tree.parts[part].kind == kind; };
  return link.kind == WiringLinkKind::kNvLink && !is(link.a, Kind::kSocket) &&
         !is(link.b, Kind::kSocket);
}

// A GPU with less than this share of the usual machine's NVLink rate gets a warning.
constexpr double kLeastShare = 0.95;

// The rate of all NVLinks of a GPU.
BytesPerSecond nvlink_of(const HostTree& tree, std::size_t gpu) {
  BytesPerSecond rate;
  for (const auto& link : tree.links)
    if ((link.a == gpu || link.b == gpu) && joins_gpus(tree, link)) rate += link.bandwidth;
  return rate;
}

// GPUs with less than the expected rate, and the rate of the first of them.
struct SlowGpus {
  std::vector<std::int64_t> gpus{};
  BytesPerSecond rate{};

  void add(std::int64_t gpu, BytesPerSecond rate_of_gpu) {
    if (gpus.empty()) rate = rate_of_gpu;
    gpus.push_back(gpu);
  }
  std::string text() const {
    const std::string more =
        gpus.size() == 1 ? "" : " (and " + std::to_string(gpus.size() - 1) + " more)";
    return "gpu" + std::to_string(gpus.front()) + more;
  }
};

}  // namespace

bool add_usual_nvlinks(HostTree& tree, const Defaults& defaults) {
  const auto& usual = defaults.machine.nvlink;
  std::map<std::int64_t, std::size_t> gpus;  // GPU index -> part
  for (std::size_t i = 0; i < tree.parts.size(); ++i)
    if (tree.parts[i].kind == Kind::kGpu) gpus.emplace(tree.parts[i].index, i);
  if (!usual) return false;
  const bool is_switched = usual->layout == NvlinkLayout::kSwitch;
  if (!is_switched && std::ssize(gpus) != defaults.machine.gpus) return false;
  tree.nvlinks_from = defaults.usual();
  if (is_switched) {  // the rate is one of a GPU; else it is one of a link
    const std::size_t hub = tree.add({.kind = Kind::kNvSwitch});
    for (const auto& [index, gpu] : gpus)
      tree.links.push_back({gpu, hub, WiringLinkKind::kNvLink, *usual->bandwidth});
    return true;
  }
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
  const std::string usual = defaults.usual();
  const auto usual_pcie = pcie_bandwidth(pcie_generation(defaults.machine));
  SlowGpus pcie;
  SlowGpus nvlink;
  const bool switched =
      defaults.machine.nvlink && defaults.machine.nvlink->layout == NvlinkLayout::kSwitch;
  for (std::size_t i = 0; i < tree.parts.size(); ++i) {
    const auto& part = tree.parts[i];
    if (part.kind != Kind::kGpu) continue;
    if (part.up < *limits.pcie_uplink * usual_pcie) pcie.add(part.index, part.up);
    const auto rate = nvlink_of(tree, i);
    if (switched && rate > BytesPerSecond() &&
        rate < kLeastShare * *defaults.machine.nvlink->bandwidth)
      nvlink.add(part.index, rate);
  }
  const std::optional<std::int64_t> tray = defaults.machine.gpus_per_tray;
  const auto gpus = static_cast<std::int64_t>(tree.count(Kind::kGpu));
  if (tray && gpus < defaults.machine.gpus && tree.count(Kind::kNvSwitch) > 0)
    remarks.push_back(
        "warning: the file shows " + std::to_string(gpus) +
        " GPUs, a part of an NVLink domain: the NVLink switches of " + usual + " join " +
        std::to_string(defaults.machine.gpus) + " GPUs in trays of " + std::to_string(*tray) +
        ". The written cluster has only the GPUs of the file; for the whole domain give the "
        "cluster node: by-device/" +
        defaults.device.name + ", a rack that counts as one node");
  if (!pcie.gpus.empty())
    remarks.push_back("warning: " + pcie.text() + ": its PCIe link has " + format(pcie.rate) +
                      ", but that of " + usual + " has " + format(usual_pcie) +
                      ": is the file's link_width or link_speed right?");
  if (!nvlink.gpus.empty())
    remarks.push_back("warning: " + nvlink.text() + ": has " + format(nvlink.rate) +
                      " of NVLink in one direction, but a GPU of " + usual + " has " +
                      format(*defaults.machine.nvlink->bandwidth) +
                      ": did links fail to come up, or are GPUs hidden?");
  if (tree.count(Kind::kGpu) > 1 && defaults.machine.nvlink &&
      std::ranges::none_of(tree.links, [&](const auto& link) { return joins_gpus(tree, link); }))
    remarks.push_back("warning: the file has no NVLink between GPUs, but " + usual +
                      " has NVLink: was it hidden from a virtual machine or a container, or "
                      "left out (as `nvidia-smi topo -mp` does)?");
}

}  // namespace foreshard::internal
