// Lists the parts of a study's devices that a search tries by themselves (device_subset.h), for
// search.cc, the search of graphs and the ranks of a team.
#include "sim/search/device_subset.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "sim/study/run.h"

namespace foreshard::search {
namespace {

// What distinguishes nodes as they were built.
struct NodeKind {
  DeviceTypeId type;
  std::int64_t devices = 0;
  BytesPerSecond network{};  // bandwidth of all links that leave the node
  Seconds launch_time{};     // launch time of its host
  double speed = 1;          // speed of its host

  bool operator<(const NodeKind& other) const {
    return std::tuple(type.value(), devices, network, launch_time, speed) <
           std::tuple(other.type.value(), other.devices, other.network, other.launch_time,
                      other.speed);
  }
  bool operator==(const NodeKind&) const = default;
};

struct Nodes {
  std::vector<NodeKind> kinds;  // one per node
  std::vector<bool> intact;     // one per node
};

// The cluster as it was before `down` and `degraded`.
Result<ClusterView> as_built(const study::LoadedStudy& study) {
  ClusterConfig config = study.cluster;
  config.down.clear();
  config.degraded.clear();
  config.single_cables = true;  // as a cluster with `down` or `degraded` has them
  return build_cluster(config, study.loader, "cluster");
}

Nodes nodes_of(const ClusterView& cluster, const ClusterView& built) {
  const auto count = static_cast<std::size_t>(cluster.node_count());
  Nodes nodes{.kinds = std::vector<NodeKind>(count), .intact = std::vector<bool>(count, true)};
  const auto node_of = [&](VertexId vertex) { return cluster.vertices()[vertex.index()].node; };
  const auto lose = [&](std::int32_t node) {
    if (node >= 0) nodes.intact[static_cast<std::size_t>(node)] = false;
  };
  for (std::size_t d = 0; d < cluster.devices().size(); ++d) {
    const Device& device = cluster.devices()[d];
    NodeKind& kind = nodes.kinds[static_cast<std::size_t>(device.node)];
    kind.type = device.type;
    kind.launch_time = cluster.host(device.node).launch_time;
    kind.speed = cluster.host(device.node).speed;
    ++kind.devices;
    if (!device.up || device.speed < built.devices()[d].speed) lose(device.node);
  }
  FORESHARD_CHECK(cluster.links().size() == built.links().size());
  for (std::size_t l = 0; l < cluster.links().size(); ++l) {
    const Link& link = cluster.links()[l];
    const std::int32_t from = node_of(link.from);
    const std::int32_t to = node_of(link.to);
    if (from >= 0 && from != to)
      nodes.kinds[static_cast<std::size_t>(from)].network += built.links()[l].bandwidth;
    if (link.up && link.bandwidth == built.links()[l].bandwidth) continue;
    lose(from);
    lose(to);
  }
  return nodes;
}

std::string node_name(const ClusterView& cluster, const Device& device) {
  const std::string& name = cluster.vertices()[device.vertex.index()].name;
  return name.substr(0, name.find('/'));
}

// Whether all pairs of these devices have routes of equal length and bandwidth.
bool is_symmetric(const ClusterView& built, std::span<const std::int32_t> devices) {
  std::optional<std::pair<std::size_t, BytesPerSecond>> usual;
  for (const std::int32_t from : devices)
    for (const std::int32_t to : devices) {
      if (from == to) continue;
      const auto route = built.route(DeviceId{from}, DeviceId{to});
      if (!route) return false;
      BytesPerSecond least = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
      for (const RoutedLink& one : route->links)
        least = std::min(least, built.links()[one.link.index()].bandwidth);
      const std::pair now{route->links.size(), least};
      if (usual && *usual != now) return false;
      usual = now;
    }
  return true;
}

// Orders the devices of a cluster with faults so that the order does not depend on which of several
// equal nodes or devices has the fault. Among the nodes of a kind that one switch connects, those
// with the most capacity left come first; in nodes whose devices reach each other alike, devices of
// full speed come first.
class Order {
 public:
  Order(const study::LoadedStudy& study, const ClusterView& cluster, const ClusterView& built,
        const Nodes& nodes)
      : cluster_(cluster), built_(built), of_node_(nodes.kinds.size()) {
    for (std::size_t d = 0; d < cluster.devices().size(); ++d)
      of_node_[static_cast<std::size_t>(cluster.devices()[d].node)].push_back(
          static_cast<std::int32_t>(d));
    place_slow_last();
    node_at_.resize(of_node_.size());
    std::iota(node_at_.begin(), node_at_.end(), std::size_t{0});
    if (study.cluster.fabric.kind == "single-switch") place_damaged_last(nodes);
  }

  std::vector<std::int32_t> devices() const {
    std::vector<std::int32_t> all;
    for (const std::size_t node : node_at_)
      all.insert(all.end(), of_node_[node].begin(), of_node_[node].end());
    return all;
  }

 private:
  // The part of its built speed that a device still has.
  double left_of(std::int32_t device) const {
    const auto d = static_cast<std::size_t>(device);
    return cluster_.devices()[d].up ? cluster_.devices()[d].speed / built_.devices()[d].speed : 0;
  }

  // Puts slow devices last within all nodes. If a device of one node is slow, the devices at the
  // same position in all other nodes move as well, so that rails stay intact.
  void place_slow_last() {
    std::vector<double> least;  // position in a node -> least speed left
    for (const auto& devices : of_node_)
      for (std::size_t i = 0; i < devices.size(); ++i) {
        if (i >= least.size()) least.push_back(1);
        const double left = left_of(devices[i]);
        if (left > 0) least[i] = std::min(least[i], left);  // devices that are down do not count
      }
    if (std::ranges::all_of(least, [](double left) { return left >= 1; })) return;
    for (auto& devices : of_node_) {
      const bool is_whole =
          std::ranges::all_of(devices, [&](std::int32_t device) { return left_of(device) >= 1; });
      if (!is_whole && !is_symmetric(built_, devices)) return;
    }
    for (auto& devices : of_node_) {
      std::vector<std::size_t> places(devices.size());
      std::iota(places.begin(), places.end(), std::size_t{0});
      std::ranges::stable_sort(places, std::greater(), [&](std::size_t i) { return least[i]; });
      std::vector<std::int32_t> sorted;
      sorted.reserve(places.size());
      for (const std::size_t i : places) sorted.push_back(devices[i]);
      devices = std::move(sorted);
    }
  }

  void place_damaged_last(const Nodes& nodes) {
    const auto left = [&](std::size_t node) {
      double sum = nodes.intact[node] ? 1 : 0;  // a link counts less than a device
      for (const std::int32_t device : of_node_[node]) sum += 2 * left_of(device);
      return sum;
    };
    for (const NodeKind& kind : std::set(nodes.kinds.begin(), nodes.kinds.end())) {
      std::vector<std::size_t> own;
      for (std::size_t node = 0; node < nodes.kinds.size(); ++node)
        if (nodes.kinds[node] == kind) own.push_back(node);
      std::vector<std::size_t> sorted = own;
      std::ranges::stable_sort(sorted, std::greater(), left);
      for (std::size_t i = 0; i < own.size(); ++i) node_at_[own[i]] = sorted[i];
    }
  }

  const ClusterView& cluster_;
  const ClusterView& built_;
  std::vector<std::vector<std::int32_t>> of_node_;
  std::vector<std::size_t> node_at_;  // position in the order -> node
};

using Wanted = std::function<bool(std::size_t device)>;

// The wanted devices of the study's pool, in the given order. `use` names a node alone where all
// its devices of the pool follow one another, and else each device.
DeviceSubset part_of(const study::LoadedStudy& study, const ClusterView& cluster,
                     std::span<const std::int32_t> order, const Wanted& wanted) {
  DeviceSubset part{.pool = {.devices = {}, .shortage = study.pool.shortage}, .use = {}};
  std::vector<bool> in_pool(cluster.devices().size(), false);
  for (const std::int32_t id : study.pool.devices) in_pool[static_cast<std::size_t>(id)] = true;
  std::map<std::int32_t, std::vector<std::int32_t>> all;  // node -> its devices in the pool
  for (const std::int32_t id : study.pool.devices)
    all[cluster.devices()[DeviceId{id}.index()].node].push_back(id);
  for (const std::int32_t id : order)
    if (in_pool[static_cast<std::size_t>(id)] && wanted(static_cast<std::size_t>(id)))
      part.pool.devices.push_back(id);
  if (part.pool.devices == study.pool.devices) return part;
  const auto& devices = part.pool.devices;
  for (auto begin = devices.begin(); begin != devices.end();) {
    const std::int32_t node = cluster.devices()[DeviceId{*begin}.index()].node;
    const auto end = std::find_if(begin, devices.end(), [&](std::int32_t id) {
      return cluster.devices()[DeviceId{id}.index()].node != node;
    });
    if (std::ranges::equal(std::span(begin, end), all[node])) {
      part.use.push_back(node_name(cluster, cluster.devices()[DeviceId{*begin}.index()]));
    } else {
      for (auto one = begin; one != end; ++one)
        part.use.push_back(
            cluster.vertices()[cluster.devices()[DeviceId{*one}.index()].vertex.index()].name);
    }
    begin = end;
  }
  return part;
}

}  // namespace

Result<std::vector<DeviceSubset>> device_subsets_of(const study::LoadedStudy& study,
                                                    const ClusterView& cluster) {
  if (study.pool.named) return std::vector<DeviceSubset>{{.pool = study.pool, .use = {}}};
  const bool damaged = !study.cluster.down.empty() || !study.cluster.degraded.empty();
  FORESHARD_ASSIGN(const auto built,
                   damaged ? as_built(study) : cluster_of(study, study.pool.devices));
  const Nodes nodes = nodes_of(cluster, built);
  const auto order = Order(study, cluster, built, nodes).devices();
  std::vector<DeviceSubset> places;
  const auto add = [&](const Wanted& wanted) {
    DeviceSubset part = part_of(study, cluster, order, wanted);
    const bool known = std::ranges::any_of(
        places, [&](const DeviceSubset& place) { return place.pool.devices == part.pool.devices; });
    if (!known && !part.pool.devices.empty()) places.push_back(std::move(part));
  };
  const auto node_of = [&](std::size_t device) {
    return static_cast<std::size_t>(cluster.devices()[device].node);
  };
  const auto add_each = [&](const std::function<bool(const NodeKind&)>& wanted) {
    const auto is_wanted = [&](std::size_t device) { return wanted(nodes.kinds[node_of(device)]); };
    add(is_wanted);
    add([&](std::size_t device) { return nodes.intact[node_of(device)] && is_wanted(device); });
    add([&](std::size_t device) {
      return cluster.devices()[device].speed >= built.devices()[device].speed && is_wanted(device);
    });
  };
  add_each([](const NodeKind&) { return true; });
  for (const NodeKind& kind : std::set(nodes.kinds.begin(), nodes.kinds.end())) {
    add_each([&](const NodeKind& one) { return one == kind; });
    add_each([&](const NodeKind& one) { return !(one == kind); });
  }
  return places;
}

std::vector<std::int64_t> parts_of(const DeviceSubset& place, const ClusterView& cluster) {
  std::vector<std::int64_t> parts;
  std::int64_t nodes = 0;
  std::int64_t next = 1;
  std::int32_t last = -1;
  for (std::int64_t i = 0; i < place.pool.size(); ++i) {
    const DeviceId id{place.pool.devices[static_cast<std::size_t>(i)]};
    const std::int32_t node = cluster.devices()[id.index()].node;
    if (node == last) continue;
    last = node;
    if (nodes++ != next) continue;
    parts.push_back(i);
    next *= 2;
  }
  return parts;
}

}  // namespace foreshard::search
