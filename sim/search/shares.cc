#include "sim/search/shares.h"

#include <algorithm>
#include <set>
#include <utility>

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/ir/group.h"

namespace foreshard::search {
namespace {

// One entry for each group of as many neighbours as have the same.
std::vector<std::int64_t> in_groups(const std::vector<std::int64_t>& by_rank) {
  const std::size_t ranks = by_rank.size();
  const auto is_constant = [&](std::size_t width) {
    for (std::size_t i = 0; i < ranks; ++i)
      if (by_rank[i] != by_rank[i / width * width]) return false;
    return true;
  };
  std::size_t width = ranks;
  while (ranks % width != 0 || !is_constant(width)) --width;
  std::vector<std::int64_t> groups;
  for (std::size_t i = 0; i < ranks; i += width) groups.push_back(by_rank[i]);
  return groups;
}

}  // namespace

std::vector<double> speeds_of_data_ranks(const Strategy& strategy, const Place& place,
                                         const ClusterView& cluster) {
  const program::Program ranks{.mesh = mesh_of(strategy)};
  const Axis data = axis_of(ranks.mesh, "data");
  std::vector<double> speeds(static_cast<std::size_t>(strategy.data_parallel), 0);
  for (std::int32_t rank = 0; rank < ranks.ranks(); ++rank) {
    const DeviceId id{place.pool.devices[static_cast<std::size_t>(rank)]};
    const Device& device = cluster.devices()[id.index()];
    const double speed = device.speed * peak_of(cluster.device_types()[device.type.index()],
                                                std::string(name_of(strategy.precision)))
                                            .in_base();
    double& slowest = speeds[static_cast<std::size_t>(program::coordinate_of(ranks, rank, data))];
    slowest = slowest > 0 ? std::min(slowest, speed) : speed;
  }
  return speeds;
}

std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<double>& speeds, std::int64_t devices,
                                        std::size_t most) {
  const std::set<double> kinds(speeds.begin(), speeds.end());
  if (kinds.size() != 2) return {};
  const double slow = *kinds.begin();
  const double fast = *kinds.rbegin();
  const std::int64_t fast_ranks = std::ranges::count(speeds, fast);
  const std::int64_t slow_ranks = std::ssize(speeds) - fast_ranks;
  const std::int64_t all = strategy.global_batch / strategy.micro_batch;
  std::vector<std::pair<double, Strategy>> found;
  for (std::int64_t few = 1; few < strategy.micro_batches(); ++few) {
    const std::int64_t left = all - few * slow_ranks;
    if (left % fast_ranks != 0) continue;
    const std::int64_t many = left / fast_ranks;
    std::vector<std::int64_t> by_rank;
    by_rank.reserve(speeds.size());
    for (const double speed : speeds) by_rank.push_back(speed == fast ? many : few);
    Strategy one = strategy;
    one.batch_shares = in_groups(by_rank);
    if (!faults_in(one, model, devices).empty()) continue;
    found.emplace_back(std::max(static_cast<double>(few) / slow, static_cast<double>(many) / fast),
                       std::move(one));
  }
  std::ranges::stable_sort(found, {}, &std::pair<double, Strategy>::first);
  if (found.size() > most) found.resize(most);
  std::vector<Strategy> strategies;
  strategies.reserve(found.size());
  for (auto& [time, one] : found) strategies.push_back(std::move(one));
  return strategies;
}

}  // namespace foreshard::search
