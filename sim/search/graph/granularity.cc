#include "sim/search/graph/granularity.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "strategies/graph/layout.h"
#include "strategies/graph/rebatch.h"

namespace foreshard::search {
namespace {

constexpr std::array<std::int64_t, 4> kTaken{1, 2, 4, 8};
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> kSizes{
    {{1, 4}, {1, 2}, {1, 1}, {2, 1}, {4, 1}}};

// stage -> number of its kind; stages with the same types of device have the same kind.
std::vector<std::size_t> kinds_of(const std::vector<std::vector<std::int32_t>>& stages,
                                  const ClusterView& cluster) {
  std::vector<std::set<DeviceTypeId>> known;
  std::vector<std::size_t> kinds;
  for (const auto& devices : stages) {
    std::set<DeviceTypeId> types;
    for (const std::int32_t id : devices)
      types.insert(cluster.devices()[DeviceId{id}.index()].type);
    const auto found = std::ranges::find(known, types);
    kinds.push_back(static_cast<std::size_t>(found - known.begin()));
    if (found == known.end()) known.push_back(std::move(types));
  }
  return kinds;
}

// Whether the grouping's granularities suit its micro-batches and the graph.
bool suits(const Grouping& grouping, const Graph& graph, std::int64_t batch) {
  const Strategy& strategy = grouping.strategy;
  const std::int64_t samples = strategy.micro_batch * strategy.data_parallel;
  if (strategy.global_batch % samples != 0) return false;
  return std::ranges::all_of(strategy.granularity, [&](std::int64_t taken) {
    return strategy.micro_batches() % taken == 0 && rebatched(graph, batch, taken * samples);
  });
}

}  // namespace

std::vector<std::vector<std::int32_t>> devices_of_stages(const Grouping& grouping) {
  const ProcessMesh mesh = mesh_from(grouping.mesh());
  const Axis pipeline = axis_of(mesh.axes, "pipeline");
  std::vector<std::vector<std::int32_t>> stages(
      static_cast<std::size_t>(grouping.strategy.pipeline_parallel));
  for (const std::int32_t rank : mesh.ranks)
    stages[static_cast<std::size_t>(coordinate_of(mesh, rank, pipeline))].push_back(
        grouping.place.pool.devices[static_cast<std::size_t>(rank)]);
  return stages;
}

std::vector<Grouping> granularities_of(const Grouping& grouping, const Graph& graph,
                                       std::int64_t batch, const ClusterView& cluster) {
  std::vector<Grouping> all{grouping};
  const auto stages = devices_of_stages(grouping);
  const std::vector<std::size_t> kind_of = kinds_of(stages, cluster);
  const std::size_t kinds = *std::ranges::max_element(kind_of) + 1;
  if (kinds == 1 || grouping.strategy.schedule != "1f1b" || grouping.strategy.virtual_stages > 1)
    return all;
  std::vector<std::size_t> chosen(kinds);  // kind -> index into kTaken
  while (true) {
    // If all stages take several micro-batches at a time, larger micro-batches one at a time do the
    // same.
    const bool is_least = std::ranges::min(chosen) == 0;
    for (const auto& [times, parts] : kSizes) {
      Grouping one = grouping;
      if (!is_least || times * grouping.strategy.micro_batch % parts != 0) continue;
      one.strategy.micro_batch = times * grouping.strategy.micro_batch / parts;
      one.strategy.granularity.clear();
      for (const std::size_t kind : kind_of)
        one.strategy.granularity.push_back(kTaken[chosen[kind]]);
      if (!suits(one, graph, batch)) continue;
      all.push_back(one);
      if (std::ranges::max(chosen) > 0 || times == parts) continue;
      one.strategy.granularity.clear();  // without granularities, like the grouping itself
      all.push_back(std::move(one));
    }
    std::size_t k = 0;
    for (; k < kinds; ++k) {
      if (++chosen[k] < kTaken.size()) break;
      chosen[k] = 0;
    }
    if (k == kinds) return all;
  }
}

}  // namespace foreshard::search
