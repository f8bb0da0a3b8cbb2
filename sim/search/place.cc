#include "sim/search/place.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "sim/study/run.h"

namespace foreshard::search {
namespace {

// What tells nodes apart that are all as they were built.
struct NodeKind {
  DeviceTypeId type;
  std::int64_t devices = 0;
  BytesPerSecond network{};  // of all links that leave it
  Seconds launch_time{};     // of its host
  double speed = 1;          // likewise

  bool operator<(const NodeKind& other) const {
    return std::tuple(type.value(), devices, network, launch_time, speed) <
           std::tuple(other.type.value(), other.devices, other.network, other.launch_time,
                      other.speed);
  }
  bool operator==(const NodeKind&) const = default;
};

struct Nodes {
  std::vector<NodeKind> kinds;  // by node
  std::vector<bool> intact;     // likewise
};

// The cluster without its `down` and `degraded`.
Result<ClusterView> as_built(const study::LoadedStudy& study) {
  ClusterConfig config = study.cluster;
  config.down.clear();
  config.degraded.clear();
  config.single_cables = true;  // as with those
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

using Wanted = std::function<bool(std::size_t node)>;

// The devices of the study's pool on those nodes.
Place part_of(const study::LoadedStudy& study, const ClusterView& cluster, const Wanted& wanted) {
  Place part{.pool = {.devices = {}, .shortage = study.pool.shortage}, .use = {}};
  for (const std::int32_t id : study.pool.devices) {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    if (!wanted(static_cast<std::size_t>(device.node))) continue;
    part.pool.devices.push_back(id);
    const std::string node = node_name(cluster, device);
    if (part.use.empty() || part.use.back() != node) part.use.push_back(node);
  }
  return part;
}

}  // namespace

Result<std::vector<Place>> places_of(const study::LoadedStudy& study, const ClusterView& cluster) {
  std::vector<Place> places{{.pool = study.pool, .use = {}}};
  if (study.pool.named) return places;
  const bool damaged = !study.cluster.down.empty() || !study.cluster.degraded.empty();
  FORESHARD_ASSIGN(const auto built, damaged ? as_built(study) : cluster_of(study));
  const Nodes nodes = nodes_of(cluster, built);
  const auto add = [&](const Wanted& wanted) {
    Place part = part_of(study, cluster, wanted);
    const bool known = std::ranges::any_of(
        places, [&](const Place& place) { return place.pool.devices == part.pool.devices; });
    if (!known && !part.pool.devices.empty()) places.push_back(std::move(part));
  };
  const auto add_both = [&](const Wanted& wanted) {
    add(wanted);
    add([&](std::size_t node) { return nodes.intact[node] && wanted(node); });
  };
  add_both([](std::size_t) { return true; });
  for (const NodeKind& kind : std::set(nodes.kinds.begin(), nodes.kinds.end())) {
    add_both([&](std::size_t node) { return nodes.kinds[node] == kind; });
    add_both([&](std::size_t node) { return nodes.kinds[node] != kind; });
  }
  return places;
}

std::vector<std::int64_t> parts_of(const Place& place, const ClusterView& cluster) {
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
