// config.json of state-space models and hybrids.

#include "tests/strategies/shipped_hf_types.h"
#include "tests/test.h"

namespace foreshard {
namespace {

Model hybrid_of(const std::string& json) {
  return value_of(read_shipped(json, "mine", std::nullopt)).model;
}

std::string hybrid_fault(const std::string& json) {
  return message_of(read_shipped(json, "mine", std::nullopt), "no fault");
}

// Layers of one branch each: their letters, and what the letters need.
TEST(HfMamba, PatternsAndSizes) {
  const Model nano = hybrid_of(
      R"({"model_type": "nemotron_h", "hybrid_override_pattern": "MEM*", "num_hidden_layers": 4,
          "mamba_num_heads": 64, "n_routed_experts": 128, "num_experts_per_tok": 6})");
  EXPECT_EQ(nano.pattern, "MEM*");
  EXPECT_EQ(nano.mamba, (Mamba{.heads = 64, .groups = 8, .chunk = 128}));
  EXPECT_EQ(nano.activation, Activation::kSquaredRelu);
  EXPECT_EQ(nano.positions, Positions::kNone);
  EXPECT_TRUE(nano.experts == 128 && nano.router == Router::kSigmoid && nano.ffn == 0);
  const Model listed = hybrid_of(
      R"({"model_type": "nemotron_h", "layers_block_type": ["mamba", "mlp"], "n_groups": 4})");
  EXPECT_EQ(listed.pattern, "M-");
  EXPECT_TRUE(listed.layers == 2 && listed.heads == 0 && listed.mamba->groups == 4);
  const Model mamba = hybrid_of(R"({"model_type": "mamba2", "num_hidden_layers": 3})");
  EXPECT_EQ(mamba.pattern, "MMM");
  EXPECT_EQ(mamba.mamba, (Mamba{.heads = 128, .groups = 8}));

  EXPECT_THAT(hybrid_fault(R"({"model_type": "nemotron_h"})"),
              HasSubstr("neither 'hybrid_override_pattern' nor 'layers_block_type'"));
  const std::string start = R"({"model_type": "nemotron_h", "num_hidden_layers": 2, )";
  EXPECT_THAT(hybrid_fault(start + R"("hybrid_override_pattern": "MX"})"),
              HasSubstr("'X' for layer 1"));
  EXPECT_THAT(hybrid_fault(start + R"("hybrid_override_pattern": "M*M"})"),
              HasSubstr("3 letters for 2 layers"));
  EXPECT_THAT(hybrid_fault(start + R"("hybrid_override_pattern": "M*", "n_groups": 3})"),
              HasSubstr("do not form 3 groups ('n_groups')"));
  EXPECT_THAT(hybrid_fault(start + R"("hybrid_override_pattern": "M*", "use_bias": true})"),
              HasSubstr("'use_bias' is true"));
  EXPECT_THAT(hybrid_fault(start + R"("hybrid_override_pattern": "ME", "moe_latent_size": 1024})"),
              HasSubstr("'moe_latent_size'"));
  EXPECT_THAT(hybrid_fault(R"({"model_type": "mamba", "state_size": 16})"),
              HasSubstr("state-space layers ('state_size')"));
}

}  // namespace
}  // namespace foreshard
