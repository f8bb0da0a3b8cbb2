#include "topology/route_symmetry.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.h"
#include "base/index.h"

namespace foreshard {
namespace {

constexpr std::int32_t kNone = -1;

// The switches outside of nodes, as an undirected graph.
class SwitchGraph {
 public:
  explicit SwitchGraph(const ClusterView& cluster) : number_(cluster.vertices().size(), kNone) {
    for (std::size_t v = 0; v < number_.size(); ++v) {
      if (cluster.vertices()[v].node < 0) number_[v] = count_++;
    }
    for (const Link& link : cluster.links()) {
      const std::int32_t from = number_[link.from.index()];
      const std::int32_t to = number_[link.to.index()];
      if (from != kNone && to != kNone)
        cables_.emplace_back(std::min(from, to), std::max(from, to));
    }
    std::ranges::sort(cables_);
    cables_.erase(std::unique(cables_.begin(), cables_.end()), cables_.end());
  }

  std::int32_t size() const { return count_; }
  std::int32_t number(VertexId vertex) const { return number_[vertex.index()]; }

  // The parent of each switch, kNone for roots. Leaves of the tree are removed repeatedly, so that
  // its middle becomes the root. Empty if there is a cycle.
  std::vector<std::int32_t> parents() const {
    std::vector<std::vector<std::int32_t>> next(at(count_));
    for (const auto& [a, b] : cables_) {
      next[at(a)].push_back(b);
      next[at(b)].push_back(a);
    }
    std::vector<std::int32_t> parent(at(count_), kNone);
    std::vector<std::size_t> left;
    std::vector<std::int32_t> ready;
    for (std::int32_t s = 0; s < count_; ++s) {
      left.push_back(next[at(s)].size());
      if (left.back() <= 1) ready.push_back(s);
    }
    std::vector<bool> taken(at(count_), false);
    for (std::size_t head = 0; head < ready.size(); ++head) {
      const std::int32_t s = ready[head];
      taken[at(s)] = true;
      for (const std::int32_t other : next[at(s)]) {
        if (taken[at(other)]) continue;
        parent[at(s)] = other;
        if (--left[at(other)] == 1) ready.push_back(other);
      }
    }
    if (ready.size() < at(count_)) parent.clear();
    return parent;
  }

 private:
  std::vector<std::int32_t> number_;  // by vertex
  std::int32_t count_ = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> cables_;
};

void mix_in(std::uint64_t& shape, std::initializer_list<std::uint64_t> what) {
  for (const std::uint64_t value : what) shape = mixed(shape ^ mixed(value));
}

}  // namespace

RouteSymmetry::RouteSymmetry(const ClusterView& cluster) {
  const SwitchGraph fabric(cluster);
  const auto parent = fabric.parents();
  if (cluster.routing() == Routing::kEcmpHash) {
    fault_ = "ecmp-hash chooses paths by the names of their ends";
  } else if (cluster.routing() == Routing::kAdaptive) {
    fault_ = "adaptive routing looks at the whole fabric";
  } else if (parent.empty() && fabric.size() > 0) {
    fault_ = "the fabric has several paths between two switches";
  }
  for (const Link& link : cluster.links()) {
    const std::int32_t from = cluster.vertices()[link.from.index()].node;
    const std::int32_t to = cluster.vertices()[link.to.index()].node;
    if (from >= 0 && to >= 0 && from != to) fault_ = "some hosts are cabled to each other";
  }
  if (!fault_.empty()) return;

  const auto vertices = cluster.vertices();
  const std::size_t parts = at(cluster.node_count()) + at(fabric.size());
  shape_.assign(parts, 0);
  // Number the vertices within their nodes, and hash the vertices of each part.
  std::vector<std::int32_t> local(vertices.size(), 0);
  std::vector<std::int32_t> members(at(cluster.node_count()), 0);
  std::vector<std::int32_t> devices(at(cluster.node_count()), 0);
  number_.resize(cluster.devices().size());
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    const Vertex& vertex = vertices[v];
    if (vertex.node < 0) {
      const auto part =
          at(cluster.node_count() + fabric.number(VertexId{static_cast<std::int64_t>(v)}));
      mix_in(shape_[part], {static_cast<std::uint64_t>(vertex.kind)});
      continue;
    }
    local[v] = members[at(vertex.node)]++;
    std::uint64_t type = 0;
    if (vertex.device.valid()) {
      number_[vertex.device.index()] = devices[at(vertex.node)]++;
      type = 1 + static_cast<std::uint64_t>(cluster.devices()[vertex.device.index()].type.value());
    }
    mix_in(shape_[at(vertex.node)], {static_cast<std::uint64_t>(vertex.kind), type});
  }

  const auto switch_part = [&](std::int32_t number) { return cluster.node_count() + number; };
  const auto part_of = [&](const Link& link) {
    const std::int32_t from = vertices[link.from.index()].node;
    const std::int32_t to = vertices[link.to.index()].node;
    if (from >= 0 || to >= 0) return std::max(from, to);
    const std::int32_t a = fabric.number(link.from);
    const std::int32_t b = fabric.number(link.to);
    return switch_part(parent[at(a)] == b ? a : b);
  };
  // CSR of links by part.
  first_link_.assign(parts + 1, 0);
  first_parent_.assign(parts + 1, 0);
  position_.resize(cluster.links().size());
  for (std::size_t l = 0; l < position_.size(); ++l) {
    const Link& link = cluster.links()[l];
    position_[l].part = part_of(link);
    ++first_link_[at(position_[l].part) + 1];
    if (position_[l].part < cluster.node_count() &&
        fabric.number(link.from) != fabric.number(link.to))
      ++first_parent_[at(position_[l].part) + 1];
  }
  for (std::int32_t s = 0; s < fabric.size(); ++s)
    first_parent_[at(switch_part(s)) + 1] = parent[at(s)] == kNone ? 0 : 1;
  for (std::size_t p = 0; p < parts; ++p) {
    first_link_[p + 1] += first_link_[p];
    first_parent_[p + 1] += first_parent_[p];
  }
  links_.resize(position_.size());
  parents_.resize(first_parent_.back());
  auto next_link = first_link_;
  auto next_parent = first_parent_;
  for (std::size_t l = 0; l < position_.size(); ++l) {
    const Link& link = cluster.links()[l];
    const std::size_t part = at(position_[l].part);
    position_[l].index = static_cast<std::int32_t>(next_link[part] - first_link_[part]);
    links_[next_link[part]++] = LinkId{static_cast<std::int64_t>(l)};
    std::uint64_t ends = 0;
    if (part < at(cluster.node_count())) {
      const std::int32_t outside = std::max(fabric.number(link.from), fabric.number(link.to));
      const bool leaves = fabric.number(link.to) != kNone;
      const bool enters = fabric.number(link.from) != kNone;
      if (leaves || enters) parents_[next_parent[part]++] = switch_part(outside);
      constexpr std::uint32_t kOutside = 0xffffffff;
      const auto inside = [&](VertexId id) {
        return static_cast<std::uint32_t>(local[id.index()]);
      };
      ends = (static_cast<std::uint64_t>(leaves ? kOutside : inside(link.from)) << 32) |
             (enters ? kOutside : inside(link.to));
    } else {
      ends = parent[at(fabric.number(link.from))] == fabric.number(link.to) ? 1 : 2;
    }
    mix_in(shape_[part], {ends, static_cast<std::uint64_t>(link.kind) * 2 + (link.up ? 1 : 0),
                          std::bit_cast<std::uint64_t>(link.bandwidth.in_base()),
                          std::bit_cast<std::uint64_t>(link.latency.in_base()),
                          std::bit_cast<std::uint64_t>(link.efficiency)});
  }
  for (std::int32_t s = 0; s < fabric.size(); ++s) {
    if (parent[at(s)] != kNone)
      parents_[next_parent[at(switch_part(s))]++] = switch_part(parent[at(s)]);
  }
}

}  // namespace foreshard
