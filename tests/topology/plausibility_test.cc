// Clusters that can be built, but hardly exist.
#include "topology/plausibility.h"

#include "small_clusters.h"
#include "tests/test.h"

namespace foreshard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShipped = FORESHARD_SOURCE_DIR "/configs";

Hardware hardware() {
  yaml::Loader loader({.catalogue = {kShipped}});
  return value_of(read_hardware(loader));
}

std::vector<Finding> find(const ClusterConfig& config) {
  return implausible(config, must_build(config), hardware());
}

/// Two sound nodes of the catalogue.
ClusterConfig sound() {
  return value_of(yaml::Loader({.catalogue = {kShipped}}).read_ref<ClusterConfig>("two-dgx-h100"));
}

template <class Change>
std::string rules_after(Change change) {
  ClusterConfig config = sound();
  change(config);
  std::string rules;
  for (const auto& finding : find(config)) rules += finding.rule + " ";
  return rules;
}

TEST(Plausibility, TheCatalogueHasNoWarnings) {
  for (const auto& entry : fs::directory_iterator(fs::path(kShipped) / "clusters")) {
    yaml::Loader loader({.catalogue = {kShipped}});
    const auto config = value_of(loader.read_file<ClusterConfig>(entry.path()));
    const auto cluster = value_of(build_cluster(config, loader));
    if (!config.down.empty() || !config.degraded.empty()) continue;  // Broken on purpose.
    for (const auto& finding : implausible(config, cluster, hardware()))
      EXPECT_EQ(finding.severity, Severity::kRemark) << entry.path() << "\n" << to_text({finding});
  }
  EXPECT_THAT(find(sound()), IsEmpty());
}

TEST(Plausibility, EveryMachineOfTheCatalogueIsSound) {
  for (const auto& entry : fs::directory_iterator(fs::path(kShipped) / "nodes")) {
    if (entry.path().extension() != ".yaml") continue;
    yaml::Loader loader({.catalogue = {kShipped}});
    const auto node = value_of(loader.read_file<NodeConfig>(entry.path()));
    for (const auto& finding : find(small_cluster(has_nics(node) ? 2 : 1, {}, node)))
      EXPECT_EQ(finding.severity, Severity::kRemark) << entry.path() << "\n" << to_text({finding});
  }
}

// 400 GB/s are 3,200 Gbit/s; PCIe 4.0 x16 has 31.5 GB/s, a 400 Gbit/s port 50.
TEST(Plausibility, FindsUnitSlipsAndSlots) {
  EXPECT_EQ(rules_after([](auto& c) { c.node->value.nics->bandwidth.value = 400_GB_s; }),
            "port-rate ");
  EXPECT_EQ(rules_after([](auto& c) { c.node->value.nics->bandwidth.value = 400_Mbit_s; }),
            "port-rate ");
  EXPECT_EQ(rules_after([](auto& c) { c.node->value.pcie.generation = 4; }), "nic-slot ");
  EXPECT_EQ(rules_after([](auto& c) { c.fabric.latency.value = 130_ms; }), "latency ");
  EXPECT_EQ(rules_after([](auto& c) { c.node->value.host.launch_time.value = 5_ms; }),
            "launch-time ");
  EXPECT_EQ(rules_after([](auto& c) { c.node->value.nvlink->bandwidth.value = 900_GB_s; }),
            "nvlink-rate ");
  const auto text = [](auto change) {
    ClusterConfig config = sound();
    change(config);
    return to_text(find(config), {.width = 1000});
  };
  EXPECT_THAT(text([](auto& c) { c.node->value.nics->bandwidth.value = 400_GB_s; }),
              HasSubstr("warning: port-rate: node0/nic0 (and 15 more): its port has 3200 Gbit/s "
                        "(400 GB/s), the fastest there is 1600 Gbit/s\n  help: GB/s are bytes"));
  EXPECT_THAT(
      text([](auto& c) { c.node->value.pcie.generation = 4; }),
      HasSubstr("node0/nic0 (and 15 more): its port has 400 Gbit/s (50.0 GB/s), its PCIe link "
                "31.5 GB/s"));
}

TEST(Plausibility, FindsWhatIsCutOffOrBroken) {
  EXPECT_EQ(rules_after([](auto& c) { c.down = {"node0/gpu3"}; }), "isolated ");
  EXPECT_EQ(rules_after([](auto& c) { c.down = {"node1/nic5 - switch"}; }), "isolated ");
  EXPECT_EQ(rules_after([](auto& c) {
              Degradation bad;
              bad.links = "node1/nic5 - switch";
              bad.factor = 0.04;
              c.degraded = {bad};
            }),
            "degraded ");
  EXPECT_EQ(rules_after([](auto& c) {
              Degradation bad;
              bad.links = "node1/nic5 - switch";
              bad.factor = 1e-4;
              c.degraded = {bad};
            }),
            "degraded slow-link ");
}

TEST(Plausibility, FindsSwitchesThatNobodyBuilds) {
  EXPECT_THAT(rules_after([](auto& c) { c.nodes = 200; }), HasSubstr("switch-size"));
  EXPECT_THAT(rules_after([](auto& c) {
                c.nodes = 64;
                c.fabric.kind = "fat-tree";
                c.fabric.oversubscription = {16};
              }),
              HasSubstr("oversubscription"));
}

// Two GPUs below a switch: with all lanes up, half of them, and an eighth.
TEST(Plausibility, WarnsOfSlowUplinksAndMissingNvlink) {
  ClusterConfig config = sound();
  config.nodes = 1;
  NodeConfig& node = config.node->value;
  node.nvlink.reset();
  node.nics.reset();
  node.gpus = 2;
  node.pcie = {};
  node.wiring.emplace();
  node.wiring->parts = {{"socket0", WiringPartKind::kSocket, {}},
                        {"pcie0", WiringPartKind::kPcieSwitch, {}}};
  node.wiring->links = {{"gpu0", "pcie0", WiringLinkKind::kPcie, 64_GB_s},
                        {"gpu1", "pcie0", WiringLinkKind::kPcie, 64_GB_s},
                        {"pcie0", "socket0", WiringLinkKind::kPcie, 64_GB_s}};
  EXPECT_THAT(find(config), IsEmpty());
  node.wiring->links.back().bandwidth = 32_GB_s;
  EXPECT_THAT(find(config), IsEmpty());
  node.wiring->links.back().bandwidth = 8_GB_s;
  const auto slow = find(config);
  ASSERT_EQ(slow.size(), 1U) << to_text(slow);
  EXPECT_EQ(slow[0].rule, "pcie-uplink");
  EXPECT_EQ(slow[0].place, "node0/gpu0 (and 1 more)");
  EXPECT_THAT(slow[0].message, HasSubstr("the way from there to its CPU 8.00 GB/s"));

  node.wiring->links.back().bandwidth = 64_GB_s;
  node.wiring->parts.push_back({"socket1", WiringPartKind::kSocket, {}});
  node.wiring->links.push_back({"gpu0", "socket1", WiringLinkKind::kNvLink, 100_GB_s});
  EXPECT_THAT(find(config), IsEmpty()) << "chip to chip is no link to other GPUs";
  node.wiring->parts.push_back({"nvswitch", WiringPartKind::kNvSwitch, {}});
  node.wiring->links.push_back({"gpu0", "nvswitch", WiringLinkKind::kNvLink, 100_GB_s});
  const auto missing = find(config);
  ASSERT_EQ(missing.size(), 1U) << to_text(missing);
  EXPECT_EQ(missing[0].rule, "missing-nvlink");
  EXPECT_EQ(missing[0].place, "node0/gpu1");
}

// Wired by hand: GPU 1 has half the lanes of GPU 0.
TEST(Plausibility, RemarksUnevenNodesAndMixedMemory) {
  ClusterConfig config = sound();
  config.nodes = 1;
  NodeConfig& node = config.node->value;
  node.nvlink.reset();
  node.nics.reset();
  node.gpus = 2;
  node.wiring.emplace();
  node.wiring->parts = {{"socket0", WiringPartKind::kSocket, {}}};
  node.wiring->links = {{"gpu0", "socket0", WiringLinkKind::kPcie, 64_GB_s},
                        {"gpu1", "socket0", WiringLinkKind::kPcie, 32_GB_s}};
  node.pcie = {};
  const auto uneven = find(config);
  ASSERT_EQ(uneven.size(), 1U) << to_text(uneven);
  EXPECT_EQ(uneven[0].rule, "uneven-node");
  EXPECT_EQ(uneven[0].severity, Severity::kRemark);
  EXPECT_THAT(to_json(uneven), HasSubstr("\"rule\": \"uneven-node\""));

  ClusterConfig mixed = sound();
  NodeGroup first{1, *mixed.node};
  NodeGroup second = first;
  second.node.value.device.value.name = "smaller";
  second.node.value.device.value.memory.value = 40_GB;
  mixed.node.reset();
  mixed.groups = {first, second};
  const auto found = find(mixed);
  ASSERT_EQ(found.size(), 1U) << to_text(found);
  EXPECT_EQ(found[0].rule, "mixed-memory");
}

}  // namespace
}  // namespace foreshard
