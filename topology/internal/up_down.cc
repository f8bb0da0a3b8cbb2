#include "topology/internal/up_down.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>

#include "base/index.h"

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

}  // namespace foreshard::internal
