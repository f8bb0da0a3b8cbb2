#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>

#include "base/index.h"

#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {
namespace {

using Neighbours = std::vector<std::vector<std::int32_t>>;

constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

Neighbours neighbours_of(const FabricGraph& graph) {
  Neighbours result(graph.vertices);
  for (const auto& edge : graph.edges) result[at(edge.from)].push_back(edge.to);
  return result;
}

/// Sets the hops of every vertex from the nearest vertex in `queue`; known hops stay.
void breadth_first(const Neighbours& neighbours, std::vector<std::int32_t> queue,
                   std::vector<std::int64_t>& hops) {
  for (const auto start : queue) hops[at(start)] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const auto next : neighbours[at(queue[i])]) {
      if (hops[at(next)] != kNowhere) continue;
      hops[at(next)] = hops[at(queue[i])] + 1;
      queue.push_back(next);
    }
}

/// A set of switches with NICs for each vertex.
class Sets {
 public:
  Sets(std::size_t vertices, std::size_t members)
      : words_((members + 63) / 64), bits_(vertices * words_, 0) {}
  void add(std::int32_t vertex, std::size_t member) {
    bits_[at(vertex) * words_ + member / 64] |= std::uint64_t{1} << (member % 64);
  }
  void add_all(std::int32_t vertex, std::int32_t other) {
    for (std::size_t i = 0; i < words_; ++i)
      bits_[at(vertex) * words_ + i] |= bits_[at(other) * words_ + i];
  }
  std::int64_t size(std::int32_t vertex) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < words_; ++i) count += std::popcount(bits_[at(vertex) * words_ + i]);
    return count;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// vertex -> number of switches with NICs in its connected part.
std::vector<std::int64_t> members_of_parts(const FabricGraph& graph, const Neighbours& neighbours) {
  std::vector<std::int64_t> result(graph.vertices, 0);
  std::vector<bool> seen(graph.vertices, false);
  for (std::size_t start = 0; start < graph.vertices; ++start) {
    if (seen[start]) continue;
    std::vector<std::int32_t> part{static_cast<std::int32_t>(start)};
    seen[start] = true;
    std::int64_t members = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      members += graph.has_nics[at(part[i])] ? 1 : 0;
      for (const auto next : neighbours[at(part[i])]) {
        if (seen[at(next)]) continue;
        seen[at(next)] = true;
        part.push_back(next);
      }
    }
    for (const auto vertex : part) result[at(vertex)] = members;
  }
  return result;
}

/// Hops from the nearest switch with NICs, if these can serve as the order.
std::optional<std::vector<std::int64_t>> by_level(const FabricGraph& graph,
                                                  const Neighbours& neighbours) {
  std::vector<std::int32_t> members;
  for (std::size_t i = 0; i < graph.vertices; ++i)
    if (graph.has_nics[i]) members.push_back(static_cast<std::int32_t>(i));
  std::vector<std::int64_t> level(graph.vertices, kNowhere);
  breadth_first(neighbours, members, level);
  for (const auto& edge : graph.edges)
    if (level[at(edge.from)] == level[at(edge.to)]) return std::nullopt;

  std::vector<std::int32_t> ascending(graph.vertices);
  std::iota(ascending.begin(), ascending.end(), 0);
  std::ranges::stable_sort(ascending, {}, [&](std::int32_t v) { return level[at(v)]; });
  Sets reached(graph.vertices, members.size());
  for (std::size_t i = 0; i < members.size(); ++i) reached.add(members[i], i);
  for (const auto vertex : ascending)  // add what lies below it
    for (const auto next : neighbours[at(vertex)])
      if (level[at(next)] < level[at(vertex)]) reached.add_all(vertex, next);
  for (auto vertex = ascending.rbegin(); vertex != ascending.rend(); ++vertex)
    for (const auto next : neighbours[at(*vertex)])
      if (level[at(next)] > level[at(*vertex)]) reached.add_all(*vertex, next);
  const auto needed = members_of_parts(graph, neighbours);
  for (const auto member : members)
    if (reached.size(member) != needed[at(member)]) return std::nullopt;
  return level;
}

}  // namespace

std::vector<std::int64_t> up_order(const FabricGraph& graph) {
  const auto neighbours = neighbours_of(graph);
  const auto count = static_cast<std::int64_t>(graph.vertices);
  std::vector<std::int64_t> order(graph.vertices);
  if (const auto level = by_level(graph, neighbours)) {
    for (std::size_t i = 0; i < graph.vertices; ++i)
      order[i] = std::min((*level)[i], count) * count + static_cast<std::int64_t>(i);
    return order;
  }
  std::vector<std::int64_t> hops(graph.vertices, kNowhere);
  for (std::size_t root = 0; root < graph.vertices; ++root)
    if (hops[root] == kNowhere) breadth_first(neighbours, {static_cast<std::int32_t>(root)}, hops);
  for (std::size_t i = 0; i < graph.vertices; ++i)
    order[i] = -(hops[i] * count + static_cast<std::int64_t>(i));
  return order;
}

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
