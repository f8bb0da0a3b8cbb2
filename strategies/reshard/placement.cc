#include "strategies/reshard/placement.h"

#include <algorithm>

namespace foreshard::reshard {
namespace {

std::int64_t ranks_of(const Placement& placement) {
  return placement.device_of_rank.empty() ? std::ssize(placement.cluster->devices())
                                          : std::ssize(placement.device_of_rank);
}

}  // namespace

std::optional<std::string> fault_in(const Placement& placement, const ProcessMesh& mesh) {
  const std::int64_t ranks = ranks_of(placement);
  const auto devices = std::ssize(placement.cluster->devices());
  for (const std::int32_t rank : mesh.ranks) {
    if (rank >= ranks || placement.device(rank).value() >= devices)
      return "rank " + std::to_string(rank) + " is not in cluster '" + placement.cluster->name() +
             "', which has " + std::to_string(devices) + " devices: use ranks 0 to " +
             std::to_string(std::min(ranks, devices) - 1) + " or a larger cluster";
  }
  return std::nullopt;
}

std::vector<std::int32_t> nodes_of_ranks(const Placement& placement) {
  std::vector<std::int32_t> nodes;
  const std::int64_t ranks = ranks_of(placement);
  nodes.reserve(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    nodes.push_back(placement.cluster->devices()[placement.device(rank).index()].node);
  return nodes;
}

}  // namespace foreshard::reshard
