// Lists the meshes that the search of a graph tries (meshes.h), for search.cc of this folder.
#include "sim/search/graph/meshes.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <utility>

#include "strategies/parallelism/graphs.h"

namespace foreshard::search {
namespace {

// Adds all ways to write `product` as `count` factors, with the largest first factors first.
void factor(std::int64_t product, std::size_t count, std::vector<std::int64_t>& sizes,
            std::vector<std::vector<std::int64_t>>& all) {
  if (sizes.size() + 1 == count) {
    sizes.push_back(product);
    all.push_back(sizes);
    sizes.pop_back();
    return;
  }
  for (std::int64_t size = product; size >= 1; --size) {
    if (product % size != 0) continue;
    sizes.push_back(size);
    factor(product / size, count, sizes, all);
    sizes.pop_back();
  }
}

// Counts of what is wrong with groupings, by cause. Faults that differ only in their numbers count
// as one, with the text of the first.
class Refusals {
 public:
  void add(const std::string& cause, const std::string& text) {
    RefusalCount& told = by_cause_[cause];
    if (told.count++ == 0) told.text = text;
  }
  void add(const StrategyFault& fault) {
    std::string cause = fault.key + ": " + fault.message;
    std::erase_if(cause, [](char c) { return c >= '0' && c <= '9'; });
    add(cause, fault.key + ": " + fault.message + (fault.help.empty() ? "" : "; " + fault.help));
  }
  std::map<std::string, std::int64_t> by_text() const {
    std::map<std::string, std::int64_t> counts;
    for (const auto& [cause, told] : by_cause_) counts[told.text] += told.count;
    return counts;
  }

 private:
  struct RefusalCount {
    std::string text;
    std::int64_t count = 0;
  };
  std::map<std::string, RefusalCount> by_cause_;
};

}  // namespace

std::vector<MeshAxis> Grouping::mesh() const {
  return mesh_of(strategy, axes);
}

namespace {

// The axis of the second level of tensor ranks: its ranks are groups, which `tensor` splits.
constexpr const char* kOuter = "outer";

// Turns data-parallel ranks into a second level of tensor ranks, where the batch does not divide
// over them and there are tensor ranks.
void nest(Grouping& grouping, std::int64_t batch) {
  Strategy& strategy = grouping.strategy;
  if (batch % strategy.data_parallel == 0 || strategy.tensor_parallel == 1) return;
  if (std::ranges::find(grouping.axes, kOuter, &MeshAxis::name) != grouping.axes.end()) return;
  grouping.axes.push_back({kOuter, strategy.data_parallel});
  strategy.data_parallel = 1;
}

// Adds the groupings of `count` devices per stage, on the first devices of the place.
void add_groupings(const study::LoadedStudy& study, const DeviceSubset& place, std::int64_t count,
                   bool two_levels, std::vector<Grouping>& found, Refusals& refusals) {
  const study::LoadedGraph& graph = *study.graph;
  std::vector<std::vector<std::int64_t>> all;
  std::vector<std::int64_t> sizes;
  constexpr std::size_t kOwnAxes = 2;  // data, tensor
  factor(count, kOwnAxes + graph.axes.size(), sizes, all);
  for (const auto& one : all) {
    Grouping grouping{.strategy = study.strategy, .place = place, .axes = graph.axes};
    grouping.strategy.granularity.clear();
    grouping.strategy.data_parallel = one[0];
    grouping.strategy.tensor_parallel = one[1];
    for (std::size_t a = 0; a < graph.axes.size(); ++a) grouping.axes[a].size = one[kOwnAxes + a];
    if (two_levels) nest(grouping, graph.batch);
    const std::int64_t data = grouping.strategy.data_parallel;
    if (graph.batch % data != 0) {
      refusals.add("batch",
                   fmt::format("the batch of {} in the graph's inputs does not divide over "
                               "data_parallel; a multiple of {} would",
                               graph.batch, count));
      continue;
    }
    grouping.strategy.micro_batch = graph.batch / data;
    const auto faults = faults_in_graph(grouping.strategy, graph.graph, grouping.axes, graph.units,
                                        graph.batch, place.pool.size());
    if (!faults.empty()) {
      refusals.add(faults.front());
      continue;
    }
    found.push_back(std::move(grouping));
  }
}

}  // namespace

Groupings groupings_of(const study::LoadedStudy& study, const std::vector<DeviceSubset>& places,
                       bool two_levels) {
  Groupings found;
  Refusals refusals;
  const std::int64_t stages = study.strategy.pipeline_parallel;
  std::set<std::vector<std::int32_t>> tried;
  for (const DeviceSubset& place : places) {
    const std::int64_t most = place.pool.size() / stages;
    const auto below = static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1))));
    for (const std::int64_t count : std::set<std::int64_t, std::greater<>>{most, below}) {
      const auto begin = place.pool.devices.begin();
      const bool is_enough = count >= 1 && count <= most;
      if (count < 1 || (is_enough && !tried.emplace(begin, begin + count * stages).second))
        continue;
      add_groupings(study, place, count, two_levels, found.all, refusals);
    }
  }
  found.refused = refusals.by_text();
  return found;
}

}  // namespace foreshard::search
