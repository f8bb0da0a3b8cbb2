#include "strategies/reshard/price.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

#include "strategies/reshard/program.h"

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
class Interner {
 public:
  std::uint64_t of(const Key& key) { return known_.try_emplace(key, known_.size()).first->second; }

 private:
  std::unordered_map<Key, std::uint64_t, Hash> known_;
};

// One number for each distinct set of vertices.
std::vector<std::int32_t> numbered(std::vector<std::vector<std::int32_t>>& sets) {
  Interner<std::uint64_t> known;
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

// Transfers with more messages are priced by the messages of a few ranks.
constexpr double kMostListed = 1024;
constexpr std::int64_t kMostSampledTargets = 4;
constexpr std::size_t kMostSampledMessages = 128;

}  // namespace

DeviceSymmetry::DeviceSymmetry(const ClusterView& cluster) {
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

std::uint64_t DeviceSymmetry::pattern_of(const std::vector<DeviceId>& devices) const {
  Interner<std::int32_t> node_number;
  Interner<std::int32_t> leaf_number;
  Interner<std::int32_t> pod_number;
  std::uint64_t pattern = devices.size();
  for (const DeviceId device : devices) {
    const NodePosition& place = place_of_[device.index()];
    const auto node = static_cast<std::size_t>(place.node);
    pattern = joined(pattern, node_kind_[node]);
    pattern =
        joined(pattern, node_number.of(place.node) << 32 | static_cast<std::uint64_t>(place.index));
    pattern = joined(pattern, leaf_number.of(leaves_[node]) << 32 | pod_number.of(pods_[node]));
  }
  return pattern;
}

bool DeviceSymmetry::uniform(const std::vector<DeviceId>& devices) const {
  std::unordered_map<std::int32_t, std::int32_t> members;
  for (const DeviceId device : devices) ++members[place_of_[device.index()].node];
  const auto& [first, count] = *members.begin();
  return std::ranges::all_of(members, [&, first = first, count = count](const auto& node) {
    return node.second == count && node_kind_[static_cast<std::size_t>(node.first)] ==
                                       node_kind_[static_cast<std::size_t>(first)];
  });
}

StepPricer::StepPricer(const TensorSpec& tensor, const CostModel& cost, const Placement& placement)
    : tensor_(tensor),
      cost_(cost),
      placement_(placement),
      symmetry_(*placement.cluster),
      nodes_(nodes_of_ranks(placement)) {}

Result<Seconds> StepPricer::operator()(const Step& step) {
  FORESHARD_ASSIGN(const auto time, on_links(step));
  return time + copies(step);
}

Result<Seconds> StepPricer::on_links(const Step& step) {
  if (is_local(step.primitive)) return Seconds{};
  return step.primitive == Primitive::kTransfer ? transfer(step) : collective(step);
}

Seconds StepPricer::copies(const Step& step) const {
  const Repack repack = repack_of(step, tensor_);
  const auto time_of = [&](std::int64_t elements, const ProcessMesh& mesh) {
    Seconds slowest;
    if (elements == 0) return slowest;
    std::set<DeviceTypeId> types;
    for (const std::int32_t rank : mesh.ranks)
      types.insert(placement_.cluster->devices()[placement_.device(rank).index()].type);
    for (const DeviceTypeId type : types)
      slowest = std::max(slowest, cost_.kernel_time(Pass{.kind = PassKind::kTranspose,
                                                         .rows = elements,
                                                         .columns = 1,
                                                         .dtype = tensor_.dtype},
                                                    type));
    return slowest;
  };
  return time_of(repack.before, step.from.mesh) + time_of(repack.after, step.to.mesh);
}

const StepPricer::Groups& StepPricer::distinct_groups(const Step& step) {
  auto mesh = std::ranges::find(meshes_, step.to.mesh);
  if (mesh == meshes_.end()) mesh = meshes_.insert(meshes_.end(), step.to.mesh);
  // A broadcast's root depends on `from`, but its cost hardly does.
  const auto key = std::pair(static_cast<std::size_t>(mesh - meshes_.begin()), step.axes);
  const auto [place, is_new] = groups_.try_emplace(key);
  if (!is_new) return place->second;
  std::set<std::uint64_t> seen;
  for (const auto& group : groups_of(step)) {
    std::vector<DeviceId> devices;
    devices.reserve(group.size());
    for (const std::int32_t rank : group) devices.push_back(placement_.device(rank));
    if (step.primitive != Primitive::kBroadcast) std::ranges::sort(devices);
    if (seen.insert(symmetry_.pattern_of(devices)).second)
      place->second.push_back({devices, symmetry_.uniform(devices)});
  }
  return place->second;
}

Result<Seconds> StepPricer::collective(const Step& step) {
  const Groups& groups = distinct_groups(step);
  const Bytes bytes = communication_bytes(step.primitive, volume_of(step, tensor_).logical,
                                          static_cast<double>(groups.front().devices.size()));
  const auto key = std::tuple(step.primitive, &groups, bytes.in_base());
  if (const auto known = times_.find(key); known != times_.end()) return known->second;
  Seconds slowest;
  const auto kind = *collective_of(step.primitive);
  for (const DistinctGroup& group : groups) {
    FORESHARD_ASSIGN(const auto time, group.uniform
                                          ? cost_.approximate_time(kind, bytes, group.devices)
                                          : cost_.communication_time(kind, bytes, group.devices));
    slowest = std::max(slowest, time);
  }
  times_.emplace(key, slowest);
  return slowest;
}

Result<Seconds> StepPricer::transfer(const Step& step) {
  const auto known = std::ranges::find(transfers_, step, &std::pair<Step, Seconds>::first);
  if (known != transfers_.end()) return known->second;
  auto time = transfer_time(step);
  if (time) transfers_.emplace_back(step, *time);
  return time;
}

Result<Seconds> StepPricer::transfer_time(const Step& step) const {
  const double moves = count_moves(step, tensor_);
  if (moves > kMostListed) return cost_.exchange_time(sampled(step, moves));
  // Disjoint sets of communicating ranks run side by side, and the slowest set decides. That set
  // has the busiest link of all, so one exchange of all sets takes equally long, except that the
  // latency of the rank with most messages may come from another set.
  std::vector<DeviceTransfer> transfers;
  for (const Move& move : moves_of(step, tensor_, nodes_)) {
    if (move.from == move.to) continue;
    transfers.push_back({placement_.device(move.from), placement_.device(move.to),
                         size_of(tensor_.dtype) * static_cast<double>(move.box.elements())});
  }
  return cost_.exchange_time(transfers);
}

// A sample of the transfers: all that a few evenly spaced targets receive, and one source's average
// share.
std::vector<DeviceTransfer> StepPricer::sampled(const Step& step, double moves) const {
  const Slices from(step.from, tensor_.shape);
  const Slices to(step.to, tensor_.shape);
  const std::size_t dimensions = tensor_.shape.size();
  const Bytes element = size_of(tensor_.dtype);

  // slice -> source ranks that hold it.
  std::vector<std::int64_t> weight(dimensions, 1);
  for (std::size_t d = 1; d < dimensions; ++d)
    weight[d] = weight[d - 1] * (std::ssize(from.bounds(d - 1)) - 1);
  std::unordered_map<std::int64_t, std::vector<std::int32_t>> holders;
  for (std::int64_t i = 0; i < step.from.mesh.size(); ++i) {
    std::int64_t slice = 0;
    for (std::size_t d = 0; d < dimensions; ++d) slice += from.part_of(i, d) * weight[d];
    holders[slice].push_back(step.from.mesh.ranks[static_cast<std::size_t>(i)]);
  }
  const auto sender_of = [&](std::int64_t slice, std::int32_t target, std::int64_t turn) {
    const auto& ranks = holders.at(slice);
    for (const std::int32_t rank : ranks)
      if (rank == target) return rank;
    for (const std::int32_t rank : ranks)
      if (nodes_[static_cast<std::size_t>(rank)] == nodes_[static_cast<std::size_t>(target)])
        return rank;
    return ranks[static_cast<std::size_t>(turn) % ranks.size()];
  };

  std::vector<DeviceTransfer> transfers;
  const std::int64_t targets = step.to.mesh.size();
  const std::int64_t stride = std::max<std::int64_t>(1, targets / kMostSampledTargets);
  for (std::int64_t j = 0; j < targets; j += stride) {
    const std::int32_t target = step.to.mesh.ranks[static_cast<std::size_t>(j)];
    const Box slice = to.of(j);
    if (slice.empty()) continue;
    std::vector<std::size_t> first(dimensions);
    std::vector<std::size_t> last(dimensions);
    double pieces = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const auto& bounds = from.bounds(d);
      first[d] = static_cast<std::size_t>(
          std::upper_bound(bounds.begin(), bounds.end(), slice.begin[d]) - bounds.begin() - 1);
      last[d] = static_cast<std::size_t>(
          std::lower_bound(bounds.begin(), bounds.end(), slice.end[d]) - bounds.begin());
      pieces *= static_cast<double>(last[d] - first[d]);
    }
    // If there are very many pieces, every n-th stands for n.
    const auto skip = static_cast<std::int64_t>(
        std::max(1.0, pieces / static_cast<double>(kMostSampledMessages)));
    auto part = first;
    std::int64_t turn = 0;
    for (bool more = true; more; ++turn) {
      if (turn % skip == 0) {
        std::int64_t source = 0;
        double elements = 1;
        for (std::size_t d = 0; d < dimensions; ++d) {
          const auto& bounds = from.bounds(d);
          source += static_cast<std::int64_t>(part[d]) * weight[d];
          elements *= static_cast<double>(std::min(slice.end[d], bounds[part[d] + 1]) -
                                          std::max(slice.begin[d], bounds[part[d]]));
        }
        const std::int32_t sender = sender_of(source, target, turn + j);
        if (sender != target && elements > 0)
          transfers.push_back({placement_.device(sender), placement_.device(target),
                               element * (elements * static_cast<double>(skip)),
                               static_cast<double>(skip)});
      }
      more = false;
      for (std::size_t d = dimensions; d-- > 0 && !more;) {
        more = ++part[d] < last[d];
        if (!more) part[d] = first[d];
      }
    }
  }
  // One source's average share, to evenly spaced targets.
  const std::int32_t source = step.from.mesh.ranks.front();
  const double sources = static_cast<double>(step.from.mesh.size());
  const Bytes share = volume_of(step, tensor_).exact_total / sources;
  const double messages = std::clamp(moves / sources, 1.0, static_cast<double>(targets));
  const double listed = std::ceil(std::min(messages, static_cast<double>(kMostSampledMessages)));
  std::vector<std::int32_t> others;
  for (std::int64_t m = 0; m < static_cast<std::int64_t>(listed); ++m) {
    const std::int32_t target =
        step.to.mesh
            .ranks[static_cast<std::size_t>(m * targets / static_cast<std::int64_t>(listed))];
    if (target != source) others.push_back(target);
  }
  for (const std::int32_t target : others)
    transfers.push_back({placement_.device(source), placement_.device(target),
                         share / static_cast<double>(others.size()),
                         std::max(1.0, messages / listed)});
  return transfers;
}

}  // namespace foreshard::reshard
