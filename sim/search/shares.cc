#include "sim/search/shares.h"

#include <algorithm>
#include <set>
#include <string>
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

std::vector<FlopsPerSecond> rates_of(const Place& place, const ClusterView& cluster, DType dtype) {
  std::vector<FlopsPerSecond> peaks;  // by type of device
  peaks.reserve(cluster.device_types().size());
  for (const DeviceType& type : cluster.device_types())
    peaks.push_back(peak_of(type, std::string(name_of(dtype))));
  std::vector<FlopsPerSecond> rates;
  rates.reserve(place.pool.devices.size());
  for (const std::int32_t id : place.pool.devices) {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    rates.push_back(device.speed * peaks[device.type.index()]);
  }
  return rates;
}

std::vector<FlopsPerSecond> rates_of_data_ranks(const Strategy& strategy,
                                                std::span<const FlopsPerSecond> rates) {
  const program::Program ranks{.mesh = mesh_of(strategy)};
  const Axis data = axis_of(ranks.mesh, "data");
  std::vector<FlopsPerSecond> slowest(static_cast<std::size_t>(strategy.data_parallel),
                                      std::ranges::max(rates));
  for (std::int32_t rank = 0; rank < ranks.ranks(); ++rank) {
    FlopsPerSecond& own =
        slowest[static_cast<std::size_t>(program::coordinate_of(ranks, rank, data))];
    own = std::min(own, rates[static_cast<std::size_t>(rank)]);
  }
  return slowest;
}

std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<FlopsPerSecond>& rates,
                                        std::int64_t devices, std::size_t most) {
  const std::set<FlopsPerSecond> kinds(rates.begin(), rates.end());
  if (kinds.size() != 2) return {};
  const FlopsPerSecond slow = *kinds.begin();
  const FlopsPerSecond fast = *kinds.rbegin();
  const std::int64_t fast_ranks = std::ranges::count(rates, fast);
  const std::int64_t slow_ranks = std::ssize(rates) - fast_ranks;
  const std::int64_t all = strategy.global_batch / strategy.micro_batch;
  struct Division {
    double end = 0;  // in micro-batches on the slow ranks
    std::int64_t few = 0;
    std::int64_t many = 0;
  };
  std::vector<Division> divisions;
  for (std::int64_t few = 1; few < strategy.micro_batches(); ++few) {
    const std::int64_t left = all - few * slow_ranks;
    if (left % fast_ranks != 0) continue;
    const std::int64_t many = left / fast_ranks;
    const double end =
        std::max(static_cast<double>(few), static_cast<double>(many) * (slow / fast));
    divisions.push_back({.end = end, .few = few, .many = many});
  }
  std::ranges::stable_sort(divisions, {}, &Division::end);
  if (divisions.size() > kMostDivisionsTried) divisions.resize(kMostDivisionsTried);
  std::vector<Strategy> strategies;
  for (const Division& division : divisions) {
    if (strategies.size() == most) break;
    std::vector<std::int64_t> by_rank;
    by_rank.reserve(rates.size());
    for (const FlopsPerSecond rate : rates)
      by_rank.push_back(rate == fast ? division.many : division.few);
    Strategy one = strategy;
    one.batch_shares = in_groups(by_rank);
    if (faults_in(one, model, devices).empty()) strategies.push_back(std::move(one));
  }
  return strategies;
}

}  // namespace foreshard::search
