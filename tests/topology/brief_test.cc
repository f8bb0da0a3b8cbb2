// The few lines from which an object can be read again.

#include "base/yaml/describe.h"
#include "tests/test.h"

#include "topology/cluster_config.h"

namespace foreshard::yaml {
namespace {

class Brief : public testing::Test {
 protected:
  std::string of(const ClusterConfig& cluster) { return value_of(brief(cluster, loader_)); }
  ClusterConfig cluster() {
    auto node = value_of(loader_.read_ref<NodeConfig>("dgx-a100-80gb"));
    ClusterConfig cluster;
    cluster.name = "two";
    cluster.nodes = 2;
    cluster.node = Ref<NodeConfig>{std::move(node), "dgx-a100-80gb"};
    return cluster;
  }
  Loader loader_{shipped_options()};
};

TEST_F(Brief, LeavesOutDefaultsAndNamesTheCatalogue) {
  EXPECT_EQ(of(cluster()), "name: two\nnodes: 2\nnode: dgx-a100-80gb\n");
}

TEST_F(Brief, ExtendsWhatWasChanged) {
  ClusterConfig changed = cluster();
  changed.node->value.nics->count = 4;
  changed.node->value.pcie.switches = 2;
  changed.fabric.kind = "rail-fat-tree";
  EXPECT_EQ(of(changed),
            "name: two\nnodes: 2\nnode:\n  extends: dgx-a100-80gb\n  pcie:\n"
            "    switches: 2\n  nics:\n    count: 4\nfabric:\n  kind: rail-fat-tree\n");
}

// A value that the catalogue has and the object has not.
TEST_F(Brief, TakesValuesAway) {
  ClusterConfig changed = cluster();
  changed.node->value.nvlink.reset();
  EXPECT_EQ(of(changed), "name: two\nnodes: 2\nnode:\n  extends: dgx-a100-80gb\n  nvlink: null\n");
}

TEST_F(Brief, ReadsBackAsTheSameObject) {
  ClusterConfig changed = cluster();
  changed.node->value.nics->bandwidth = {1.0 / 3 * 1_GB_s, "", Evidence::kUser};
  changed.node->value.nvlink.reset();
  changed.pxn = false;
  changed.down = {"node1/gpu0"};
  const auto read = loader_.read_text<ClusterConfig>(of(changed), "text");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read->node->value.nics->bandwidth, 1.0 / 3 * 1_GB_s);
  changed.node->name.clear();  // a reference that was changed has no name
  EXPECT_EQ(echo(*read), echo(changed));
}

// `extends` cannot take an entry out of a map: all is written.
TEST_F(Brief, WritesInFullWhatExtendsCannotSay) {
  ClusterConfig changed = cluster();
  changed.node->value.device.value.tensor_peak.erase("bf16");
  const std::string text = of(changed);
  EXPECT_THAT(text, Not(HasSubstr("extends: dgx-a100-80gb")));
  const auto read = value_of(loader_.read_text<ClusterConfig>(text, "text"));
  EXPECT_FALSE(read.node->value.device->tensor_peak.contains("bf16"));
}

TEST_F(Brief, NamesWhatIsNotThere) {
  ClusterConfig changed = cluster();
  changed.node->name = "dgx-a100-80gbb";
  EXPECT_THAT(message_of(brief(changed, loader_)), HasSubstr("dgx-a100-80gbb"));
}

}  // namespace
}  // namespace foreshard::yaml
