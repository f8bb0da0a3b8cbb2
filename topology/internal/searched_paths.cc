#include <algorithm>
#include <optional>

#include "topology/internal/fabric_paths.h"
#include "topology/internal/up_down.h"

namespace foreshard::internal {
namespace {

/// Most memory that the stored searches may take; beyond it all are dropped.
constexpr std::size_t kMaxSearchBytes = std::size_t{256} << 20;

/// Shortest paths in a graph of states. A flow enters at state `entry` and leaves at state
/// `exit + exit_offset`; edges between states of one switch have no link.
class SearchedPaths final : public FabricPaths {
 public:
  SearchedPaths(std::size_t states, std::vector<Domain::Edge> edges, std::int32_t exit_offset,
                Metric constant)
      : domain_(std::vector<bool>(states, true), std::move(edges)),
        searches_(states),
        exit_offset_(exit_offset),
        constant_(constant) {}

  Crossing measure(std::int32_t entry, std::int32_t exit) override {
    const Search& search = search_from(entry);
    const auto end = static_cast<std::size_t>(exit) + static_cast<std::size_t>(exit_offset_);
    if (search.paths[end] == 0) return {};
    return {search.distance[end] - constant_, search.paths[end], search.latency[end]};
  }
  void spread(std::int32_t entry, std::int32_t exit, double amount,
              std::vector<RoutedLink>& out) override {
    domain_.spread(search_from(entry), false, exit + exit_offset_, amount, out);
    drop_inner(out);
  }
  void pick(std::int32_t entry, std::int32_t exit, double choice,
            std::vector<RoutedLink>& out) override {
    domain_.pick(search_from(entry), false, exit + exit_offset_, choice, out);
    drop_inner(out);
  }

 private:
  const Search& search_from(std::int32_t start) {
    auto& slot = searches_[static_cast<std::size_t>(start)];
    if (slot) return *slot;
    constexpr std::size_t kBytesPerVertex = sizeof(Metric) + sizeof(double) + sizeof(Seconds);
    if ((held_ + 1) * searches_.size() * kBytesPerVertex > kMaxSearchBytes) {
      for (auto& search : searches_) search.reset();
      held_ = 0;
    }
    ++held_;
    slot = domain_.search_from(start);
    return *slot;
  }
  void drop_inner(std::vector<RoutedLink>& out) const {
    if (exit_offset_ != 0)
      std::erase_if(out, [](const RoutedLink& part) { return !part.link.valid(); });
  }

  Domain domain_;
  std::vector<std::optional<Search>> searches_;
  std::size_t held_ = 0;
  std::int32_t exit_offset_ = 0;
  Metric constant_ = 0;
};

}  // namespace

std::unique_ptr<FabricPaths> searched_paths(const FabricGraph& graph) {
  return std::make_unique<SearchedPaths>(graph.vertices, graph.edges, 0, 0);
}

// States of a flow at a switch: 0 still going up, 1 going down, 2 leaving.
std::unique_ptr<FabricPaths> up_down_paths(const FabricGraph& graph) {
  const auto order = up_order(graph);
  const auto count = static_cast<std::int32_t>(graph.vertices);
  std::vector<Domain::Edge> edges;
  edges.reserve(2 * graph.edges.size() + 2 * graph.vertices);
  for (Domain::Edge edge : graph.edges) {
    const bool up =
        order[static_cast<std::size_t>(edge.to)] > order[static_cast<std::size_t>(edge.from)];
    const Domain::Edge given = edge;
    if (!up) edge.to += count;
    edges.push_back(edge);
    if (!up)
      edges.push_back(
          {given.from + count, given.to + count, given.link, given.metric, given.latency});
  }
  for (std::int32_t v = 0; v < count; ++v)
    for (const std::int32_t state : {0, 1})
      edges.push_back({v + state * count, v + 2 * count, LinkId(), 1, Seconds()});
  return std::make_unique<SearchedPaths>(3 * graph.vertices, std::move(edges), 2 * count, 1);
}

}  // namespace foreshard::internal
