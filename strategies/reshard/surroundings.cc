#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/hash.h"

#include "strategies/reshard/price.h"

namespace foreshard::reshard {
namespace {

std::uint64_t joined(std::uint64_t seed, std::uint64_t value) {
  return mixed(seed ^ mixed(value));
}
std::uint64_t joined(std::uint64_t seed, double value) {
  return joined(seed, std::bit_cast<std::uint64_t>(value));
}

std::uint64_t kind_of(const Link& link) {
  std::uint64_t kind = joined(static_cast<std::uint64_t>(link.kind), link.bandwidth.in_base());
  return joined(joined(kind, link.latency.in_base()), std::uint64_t{link.up});
}

// Numbers keys by first use.
template <class Key, class Hash = std::hash<Key>>
class Numbers {
 public:
  std::uint64_t of(const Key& key) { return known_.try_emplace(key, known_.size()).first->second; }

 private:
  std::unordered_map<Key, std::uint64_t, Hash> known_;
};

// One number for each distinct set of vertices.
std::vector<std::int32_t> numbered(std::vector<std::vector<std::int32_t>>& sets) {
  Numbers<std::uint64_t> known;
  std::vector<std::int32_t> numbers;
  numbers.reserve(sets.size());
  for (auto& set : sets) {
    std::ranges::sort(set);
    set.erase(std::unique(set.begin(), set.end()), set.end());
    std::uint64_t hash = set.size();
    for (const std::int32_t vertex : set) hash = joined(hash, static_cast<std::uint64_t>(vertex));
    numbers.push_back(static_cast<std::int32_t>(known.of(hash)));
  }
  return numbers;
}

}  // namespace

Surroundings::Surroundings(const ClusterView& cluster) {
  const auto vertices = cluster.vertices();
  const auto nodes = static_cast<std::size_t>(cluster.node_count());
  std::vector<std::int32_t> vertices_of_node(nodes, 0);
  std::vector<std::uint64_t> place(vertices.size());  // vertex -> index within its node
  std::vector<std::int32_t> devices_of_node(nodes, 0);
  place_of_.resize(cluster.devices().size());
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    if (vertices[v].node < 0) continue;
    const auto node = static_cast<std::size_t>(vertices[v].node);
    place[v] = static_cast<std::uint64_t>(vertices_of_node[node]++);
    if (vertices[v].kind == VertexKind::kDevice)
      place_of_[vertices[v].device.index()] = {vertices[v].node, devices_of_node[node]++};
  }

  // Hashes of switches with their links and neighbours, then hashes of nodes.
  std::vector<std::uint64_t> own(vertices.size(), 0);
  std::vector<std::vector<std::int32_t>> leaves(nodes);
  std::vector<std::vector<std::int32_t>> above(vertices.size());
  node_kind_.assign(nodes, 0);
  for (const Link& link : cluster.links()) {
    const auto from = link.from.index();
    const auto to = link.to.index();
    const std::uint64_t kind = kind_of(link);
    own[from] += joined(kind, std::uint64_t{1});
    own[to] += joined(kind, std::uint64_t{2});
    if (vertices[from].node < 0 && vertices[to].node < 0)
      above[from].push_back(link.to.value());
    else if (vertices[from].node >= 0 && vertices[to].node < 0)
      leaves[static_cast<std::size_t>(vertices[from].node)].push_back(link.to.value());
    if (vertices[from].node >= 0)
      node_kind_[static_cast<std::size_t>(vertices[from].node)] +=
          joined(joined(kind, place[from]), vertices[to].node < 0 ? ~std::uint64_t{0} : place[to]);
    if (vertices[to].node >= 0 && vertices[from].node != vertices[to].node)
      node_kind_[static_cast<std::size_t>(vertices[to].node)] +=
          joined(joined(kind, place[to]), std::uint64_t{3});
  }
  std::vector<std::uint64_t> wider = own;
  for (const Link& link : cluster.links()) {
    if (vertices[link.from.index()].node < 0 && vertices[link.to.index()].node < 0)
      wider[link.from.index()] += mixed(own[link.to.index()]);
  }
  leaves_ = numbered(leaves);  // without duplicates from here on
  // Nodes under the same switches share the switches above them.
  std::vector<std::vector<std::int32_t>> pods(nodes);
  std::unordered_map<std::int32_t, std::size_t> first_of_leaves;
  std::vector<std::size_t> like(nodes);
  for (std::size_t n = 0; n < nodes; ++n) {
    for (const std::int32_t leaf : leaves[n])
      node_kind_[n] += mixed(wider[static_cast<std::size_t>(leaf)]);
    const auto [first, is_new] = first_of_leaves.try_emplace(leaves_[n], n);
    like[n] = first->second;
    if (!is_new) continue;
    for (const std::int32_t leaf : leaves[n]) {
      const auto& next = above[static_cast<std::size_t>(leaf)];
      pods[n].insert(pods[n].end(), next.begin(), next.end());
    }
  }
  pods_ = numbered(pods);
  for (std::size_t n = 0; n < nodes; ++n) pods_[n] = pods_[like[n]];
}

std::uint64_t Surroundings::pattern_of(const std::vector<DeviceId>& devices) const {
  Numbers<std::int32_t> node_number;
  Numbers<std::int32_t> leaf_number;
  Numbers<std::int32_t> pod_number;
  std::uint64_t pattern = devices.size();
  for (const DeviceId device : devices) {
    const Place& place = place_of_[device.index()];
    const auto node = static_cast<std::size_t>(place.node);
    pattern = joined(pattern, node_kind_[node]);
    pattern =
        joined(pattern, node_number.of(place.node) << 32 | static_cast<std::uint64_t>(place.index));
    pattern = joined(pattern, leaf_number.of(leaves_[node]) << 32 | pod_number.of(pods_[node]));
  }
  return pattern;
}

bool Surroundings::uniform(const std::vector<DeviceId>& devices) const {
  std::unordered_map<std::int32_t, std::int32_t> members;
  for (const DeviceId device : devices) ++members[place_of_[device.index()].node];
  const auto& [first, count] = *members.begin();
  return std::ranges::all_of(members, [&, first = first, count = count](const auto& node) {
    return node.second == count && node_kind_[static_cast<std::size_t>(node.first)] ==
                                       node_kind_[static_cast<std::size_t>(first)];
  });
}

}  // namespace foreshard::reshard
