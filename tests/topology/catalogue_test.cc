// Every machine and cluster of the catalogue can be read, built and routed.

#include "small_clusters.h"
#include "tests/test.h"

#include "topology/summary.h"

namespace foreshard {
namespace {

namespace fs = std::filesystem;
const fs::path kConfigs = FORESHARD_SOURCE_DIR "/configs";

std::set<fs::path> files(const char* folder) {
  std::set<fs::path> result;
  for (const auto& entry : fs::directory_iterator(kConfigs / folder))
    if (entry.path().extension() == ".yaml") result.insert(entry.path());
  EXPECT_FALSE(result.empty());
  return result;
}

TEST(Catalogue, EveryNodeBuilds) {
  for (const char* folder : {"nodes", "nodes/by-device"})
    for (const auto& path : files(folder)) {
      yaml::Loader loader({.catalogue = {kConfigs}});
      const auto node = value_of(loader.read_file<NodeConfig>(path));
      const auto cluster = must_build(small_cluster(node.nics ? 2 : 1, {}, node));
      for (std::int64_t i = 1; i < std::ssize(cluster.devices()); ++i)
        EXPECT_TRUE(cluster.route(DeviceId(0), DeviceId(i))) << path;
      if (std::string(folder) == "nodes/by-device") {
        // "GH200-96GB-4gpu": nodes of four, where the usual one has fewer (cluster_for.h).
        const std::string sized = node.device->name + "-" + std::to_string(node.gpus) + "gpu";
        EXPECT_THAT(path.stem().string(), AnyOf(node.device->name, sized));
      } else {
        EXPECT_FALSE(node.summary.empty()) << path;
      }
    }
}

TEST(Catalogue, EveryClusterBuilds) {
  for (const auto& path : files("clusters")) {
    yaml::Loader loader({.catalogue = {kConfigs}});
    const auto config = value_of(loader.read_file<ClusterConfig>(path));
    EXPECT_EQ(config.name, path.stem().string());
    const auto cluster = value_of(build_cluster(config, loader));
    const DeviceId last(std::ssize(cluster.devices()) - 1);
    const auto route = value_of(cluster.route(DeviceId(0), last));
    EXPECT_EQ(fault_in(cluster, DeviceId(0), last, route), "");
    const std::string& kind = config.fabric.kind;
    if (!config.down.empty()) continue;
    const bool clos = kind == "fat-tree" || kind == "rail-fat-tree" || kind == "dual-plane";
    EXPECT_LT(route.links.size(), clos ? 25U : 100'000U) << "equal switches should be merged";
  }
}

// An adapter must not be throttled by the PCIe links to it. (It is in a DGX-1: 100 Gbit/s
// over 3.0.)
TEST(Catalogue, PcieCarriesTheAdapters) {
  for (const auto& path : files("nodes")) {
    const auto node = yaml::Loader({.catalogue = {kConfigs}}).read_file<NodeConfig>(path);
    ASSERT_TRUE(node) << node.error().message;
    if (!node->nics || path.stem().string().find("pcie") != std::string::npos) continue;
    if (pcie_generation(*node) < 4) continue;
    const auto pcie = pcie_bandwidth(pcie_generation(*node)) * *node->pcie.efficiency;
    EXPECT_GE(pcie, *node->nics->bandwidth * *node->nics->efficiency) << path;
  }
}

// Six links per GPU; GPU 0 and GPU 5 have none in common: GPU 1 (one link to 0, two to 5) and GPU 4
// (two, one) could both pass on between them, equally fast, and the first does.
TEST(Catalogue, Dgx1vIsAHybridCubeMesh) {
  const auto node = yaml::Loader({.catalogue = {kConfigs}}).read_ref<NodeConfig>("dgx-1v");
  ASSERT_TRUE(node) << node.error().message;
  const auto cluster = must_build(small_cluster(1, {}, *node));
  const double link = *node->nvlink->bandwidth * *node->nvlink->efficiency / 1_GB_s;
  for (const auto& gpu : cluster.devices()) {
    double rate = 0;
    for (const auto& l : cluster.links())
      if (l.from == gpu.vertex && l.kind == LinkKind::kNvLink) rate += l.bandwidth / 1_GB_s;
    EXPECT_NEAR(rate, 6 * link, 1e-9);
  }
  EXPECT_EQ(cluster.route(DeviceId(0), DeviceId(4))->widest_kind, LinkKind::kNvLink);
  const auto relayed = cluster.route(DeviceId(0), DeviceId(5));
  EXPECT_EQ(relayed->widest_kind, LinkKind::kNvLink);
  ASSERT_EQ(relayed->links.size(), 2U);
  const auto passes = [&](DeviceId device) {
    return std::ranges::any_of(relayed->links, [&](const RoutedLink& routed) {
      return cluster.links()[routed.link.index()].to == cluster.devices()[device.index()].vertex;
    });
  };
  EXPECT_TRUE(passes(DeviceId(1)));
  EXPECT_TRUE(passes(DeviceId(5)));
}

// 36 GPUs behind each of two groups of switches: a path across has one link more and no less rate;
// a half can send 36 x 721.8 GB/s (900 x 0.802) to the other.
TEST(Catalogue, Nvl36x2IsOneDomainOfTwoRacks) {
  yaml::Loader loader({.catalogue = {kConfigs}});
  const auto node = value_of(loader.read_ref<NodeConfig>("gb200-nvl36x2"));
  const auto cluster = must_build(small_cluster(1, {}, node));
  ASSERT_EQ(cluster.devices().size(), 72U);
  EXPECT_EQ(cluster.route(DeviceId(0), DeviceId(35))->links.size(), 2U);
  const auto across = cluster.route(DeviceId(0), DeviceId(36));
  EXPECT_EQ(across->links.size(), 3U);
  EXPECT_EQ(across->widest_kind, LinkKind::kNvLink);
  EXPECT_NEAR(*bisection_bandwidth(cluster) / 1_GB_s, 36 * 721.8, 1e-6);
  const auto single = value_of(loader.read_ref<NodeConfig>("gb200-nvl36"));
  EXPECT_EQ(must_build(small_cluster(1, {}, single)).devices().size(), 36U);
}

// Two GPUs on PCIe alone, one switch each: under one socket they meet in it, with two they cross
// the link between sockets. A path is 2 hops up and 2 down of 63 GB/s, or limited to 22 GB/s.
TEST(Catalogue, PcieTreesOfOneAndTwoSockets) {
  auto node = small_node(2);
  node.nvlink.reset();
  node.pcie.switches = 2;
  for (const std::int64_t sockets : {1, 2}) {
    node.pcie.sockets = sockets;
    const auto cluster = must_build(small_cluster(1, {}, node));
    const auto route = value_of(cluster.route(DeviceId(0), DeviceId(1)));
    EXPECT_EQ(route.links.size(), sockets == 1 ? 4U : 5U);
    EXPECT_EQ(route.widest_kind, sockets == 1 ? LinkKind::kPcie : LinkKind::kSocket);
    EXPECT_NEAR(*bisection_bandwidth(cluster) / 1_GB_s, sockets == 1 ? 63.015 : 22, 1e-3);
  }
}

// Budget of a forecast at this size: building and one ring of routes over all devices.
TEST(Catalogue, SixteenThousandDevicesAreQuick) {
  yaml::Loader loader({.catalogue = {kConfigs}});
  const auto config = value_of(loader.read_ref<ClusterConfig>("h100-16384"));
  const auto begin = std::chrono::steady_clock::now();
  const auto cluster = must_build(config);
  const auto built = std::chrono::steady_clock::now();
  const auto count = std::ssize(cluster.devices());
  ASSERT_EQ(count, 16384);
  std::size_t links = 0;
  for (std::int64_t i = 0; i < count; ++i)
    links += cluster.route(DeviceId(i), DeviceId((i + 8) % count))->links.size();
  const auto end = std::chrono::steady_clock::now();
  const auto ms = [](auto d) {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  RecordProperty("build_ms", ms(built - begin));
  RecordProperty("ring_ms", ms(end - built));
  std::printf("build %d ms, ring of routes %d ms, %zu links\n", ms(built - begin), ms(end - built),
              links);
  EXPECT_LT(ms(end - begin), 10'000);
}

// The examples of docs/fabrics.md.
TEST(Catalogue, FabricsOfTheGuideBuild) {
  std::ifstream file(FORESHARD_SOURCE_DIR "/docs/fabrics.md");
  std::string example;
  bool inside = false;
  int examples = 0;
  for (std::string line; std::getline(file, line);) {
    if (line == "```yaml") {
      inside = true;
      example.clear();
    } else if (line == "```" && inside) {
      inside = false;
      ++examples;
      yaml::Loader loader({.catalogue = {kConfigs}});
      const auto config = value_of(loader.read_text<ClusterConfig>(example, "guide.yaml"));
      const auto cluster = value_of(build_cluster(config, loader));
      const DeviceId last(std::ssize(cluster.devices()) - 2);
      const auto route = value_of(cluster.route(DeviceId(0), last));
      EXPECT_EQ(fault_in(cluster, DeviceId(0), last, route), "");
    } else if (inside) {
      example += line + "\n";
    }
  }
  EXPECT_EQ(examples, 9);
}

// 100,000 devices: building, and the routes of one ring through all nodes, on each kind of fabric.
TEST(Catalogue, HundredThousandDevicesAreQuick) {
  yaml::Loader loader({.catalogue = {kConfigs}});
  const auto node = value_of(loader.read_ref<NodeConfig>("dgx-h100"));
  FabricConfig rails{.kind = "rail-fat-tree"};
  rails.levels = 3;
  rails.pods_per_block = {8};
  FabricConfig torus{.kind = "torus"};
  torus.grid = GridConfig{.dims = {25, 25, 20}};
  FabricConfig dragonfly{.kind = "dragonfly"};
  dragonfly.dragonfly = DragonflyConfig{
      .nics_per_router = 16, .routers_per_group = 32, .global_cables_per_router = 8};
  const auto ms = [](auto d) {
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  for (const auto& fabric : {rails, FabricConfig{.kind = "rail-only"}, torus, dragonfly}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto cluster = must_build(small_cluster(12'500, fabric, node));
    const auto built = std::chrono::steady_clock::now();
    const auto count = std::ssize(cluster.devices());
    ASSERT_EQ(count, 100'000);
    for (std::int64_t i = 0; i < count; i += 8)
      ASSERT_TRUE(cluster.route(DeviceId(i), DeviceId((i + 9) % count)));
    const auto end = std::chrono::steady_clock::now();
    std::printf("%s: build %d ms, 12,500 routes %d ms\n", fabric.kind.c_str(), ms(built - begin),
                ms(end - built));
    EXPECT_LT(ms(end - begin), 20'000) << fabric.kind;
  }
}

}  // namespace
}  // namespace foreshard
