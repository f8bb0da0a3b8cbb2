#include "base/text.h"

#include <rapidcheck.h>

#include "tests/test.h"

namespace foreshard {
namespace {

TEST(Text, LowersAsciiLettersAlone) {
  EXPECT_EQ(lower_case("H100-SXM \u00c4"), "h100-sxm \u00c4");
  EXPECT_EQ(lower_case(""), "");
}

TEST(Text, ContainsAPart) {
  EXPECT_TRUE(contains("pytorch fp8", "fp8"));
  EXPECT_TRUE(contains("fp8", ""));
  EXPECT_FALSE(contains("fp16", "fp8"));
}

// kitten -> sitten -> sittin -> sitting; a swap of neighbours counts once.
TEST(Text, CountsEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ndoes", "nodes"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
}

TEST(Text, DistanceIsSymmetricAndBounded) {
  EXPECT_TRUE(rc::check([](const std::string& a, const std::string& b) {
    const std::size_t distance = edit_distance(a, b);
    RC_ASSERT(distance == edit_distance(b, a));
    RC_ASSERT(distance <= std::max(a.size(), b.size()));
    RC_ASSERT((distance == 0) == (a == b));
  }));
}

TEST(Text, SuggestsWhatWasMeantAndNothingFarFetched) {
  EXPECT_EQ(nearest_name("ndoes", {"name", "nodes", "nics"}), "nodes");
  EXPECT_EQ(nearest_name("h100-sxm", {"A100-SXM", "H100-SXM"}), "H100-SXM");
  EXPECT_EQ(nearest_name("dgx-a100", {"dgx-h100", "dgx-a100-80gb"}), "dgx-a100-80gb");
  EXPECT_EQ(nearest_name("h100", {"H100-SXM-96GB", "H100-SXM", "h1000"}), "H100-SXM");
  EXPECT_EQ(nearest_name("tp", {"tensor_parallel", "pipeline_parallel"}), "tensor_parallel");
  EXPECT_EQ(nearest_name("mbs", {"global_batch", "micro_batch"}), "micro_batch");
  EXPECT_EQ(nearest_name("pp_size", {"tensor_parallel", "pipeline_parallel"}), "pipeline_parallel");
  EXPECT_EQ(
      nearest_name("expert_tensor_parallel_size", {"tensor_parallel", "expert_tensor_parallel"}),
      "expert_tensor_parallel");
  EXPECT_EQ(nearest_name("tensor_model_parallel_size", {"precision", "tensor_parallel"}),
            "tensor_parallel");
  EXPECT_EQ(nearest_name("vpp", {"tensor_parallel", "virtual_stages"}), "virtual_stages");
  EXPECT_EQ(nearest_name("seqlen", {"samples", "sequence"}), "sequence");
  EXPECT_EQ(nearest_name("num_hidden_layers", {"hidden", "layers"}), "layers");
  EXPECT_EQ(nearest_name("vpp", {"tensor_parallel", "nodes"}), std::nullopt);
  EXPECT_EQ(nearest_name("banana", {"nodes", "nics"}), std::nullopt);
  EXPECT_EQ(nearest_name("", {"a"}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), {"x"}), std::nullopt);
}

TEST(Text, ListsWords) {
  EXPECT_EQ(join({"a", "b"}), "a, b");
  EXPECT_EQ(quoted_choice({"a"}), "'a'");
  EXPECT_EQ(quoted_choice({"a", "b", "c"}), "'a', 'b' or 'c'");
  EXPECT_EQ(quoted_choice({"a", "b", "c"}, 2), "'a', 'b', ... (1 more)");
}

TEST(Plural, FollowsTheCount) {
  EXPECT_EQ(plural(1, "class"), "class");
  EXPECT_EQ(plural(2, "class"), "classes");
  EXPECT_EQ(plural(0, "device"), "devices");
  EXPECT_EQ(plural(3, "switch"), "switches");
  EXPECT_EQ(plural(2, "mesh"), "meshes");
  EXPECT_EQ(plural(1, "strategy"), "strategy");
  EXPECT_EQ(plural(2, "strategy"), "strategies");
  EXPECT_EQ(plural(2, "day"), "days");
}

}  // namespace
}  // namespace foreshard
