// The platform files that we write, loaded by SimGrid itself in a process of its own: its routes
// must be ours.
#include "topology/simgrid_platform.h"

#include <simgrid/s4u.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "small_clusters.h"
#include "tests/test.h"

namespace foreshard::simgrid_platform_test {

constexpr double kSame = 1e-12;

/// In the forked process: 0 if SimGrid finds each pair's latency and bandwidth as we do.
int compare(const ClusterView& cluster, const std::string& file) {
  std::string name = "test";
  std::string quiet = "--log=root.thres:critical";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  int count = 2;
  simgrid::s4u::Engine engine(&count, arguments);
  engine.load_platform(file);
  const auto host = [&](DeviceId id) {
    return engine.host_by_name(
        cluster.vertices()[cluster.devices()[id.index()].vertex.index()].name);
  };
  const auto devices = static_cast<std::int64_t>(cluster.devices().size());
  if (engine.get_host_count() != cluster.devices().size()) return 2;
  for (std::int64_t i = 0; i < devices; ++i)
    for (std::int64_t j = 0; j < devices; ++j) {
      if (i == j) continue;
      std::vector<simgrid::s4u::Link*> links;
      double latency = 0;
      host(DeviceId(i))->route_to(host(DeviceId(j)), links, &latency);
      double bandwidth = std::numeric_limits<double>::infinity();
      for (const auto* link : links) bandwidth = std::min(bandwidth, link->get_bandwidth());
      const auto route = cluster.route(DeviceId(i), DeviceId(j));
      double expected = std::numeric_limits<double>::infinity();
      for (const auto& [id, share] : route->links)
        expected = std::min(expected, cluster.links()[id.index()].bandwidth.in_base());
      if (links.size() != route->links.size()) return 3;
      if (std::abs(latency - route->latency.in_base()) > kSame) return 4;
      if (std::abs(bandwidth - expected) > kSame * expected) return 5;
    }
  // One flow alone: latency + bytes / bandwidth, by SimGrid's own clock.
  const auto route = cluster.route(DeviceId(0), DeviceId(devices - 1));
  double rate = std::numeric_limits<double>::infinity();
  for (const auto& [id, share] : route->links)
    rate = std::min(rate, cluster.links()[id.index()].bandwidth.in_base());
  constexpr std::uint64_t kBytes = 1'000'000'000;
  auto* from = host(DeviceId(0));
  auto* to = host(DeviceId(devices - 1));
  simgrid::s4u::Actor::create("sender", from,
                              [&] { simgrid::s4u::Comm::sendto(from, to, kBytes); });
  engine.run();
  const double time = route->latency.in_base() + static_cast<double>(kBytes) / rate;
  return std::abs(simgrid::s4u::Engine::get_clock() - time) < 1e-9 * time ? 0 : 6;
}

int loaded_by_simgrid(const ClusterView& cluster) {
  const auto text = value_of(to_simgrid(cluster));
  const auto file =
      std::filesystem::temp_directory_path() / ("platform" + std::to_string(getpid()) + ".xml");
  std::ofstream(file) << text;
  const pid_t child = fork();
  if (child == 0) {
    int code = 7;
    try {
      code = compare(cluster, file);
    } catch (...) {
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

TEST(SimgridPlatform, HasOurRoutes) {
  for (const std::string kind : {"single-switch", "fat-tree", "rail-fat-tree"}) {
    FabricConfig fabric{.kind = kind};
    if (kind != "single-switch") fabric.nodes_per_pod = 2;
    auto config = small_cluster(4, fabric);
    config.routing = Routing::kEcmpHash;
    config.node->value.device.value.vector_peak.value = FlopsPerSecond::from_base(1e12);
    EXPECT_EQ(loaded_by_simgrid(must_build(config)), 0) << kind;
  }
}

TEST(SimgridPlatform, SaysWhatSimgridCannot) {
  FabricConfig fabric{.kind = "fat-tree"};
  fabric.nodes_per_pod = 1;
  auto config = small_cluster(4, fabric);
  config.down = {"pod0/leaf0 - spine0"};  // so that spines are drawn one by one
  EXPECT_THAT(message_of(to_simgrid(must_build(config))), HasSubstr("choose routing: ecmp-hash"));
  EXPECT_THAT(message_of(to_simgrid(must_build(small_cluster(300, {})))),
              HasSubstr("600 devices are more than 512"));
}

}  // namespace foreshard::simgrid_platform_test
