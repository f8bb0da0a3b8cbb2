#include "strategies/parallelism/layers.h"

#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

namespace foreshard {
namespace {

Model of_pattern(const std::string& pattern) {
  Model model{.name = "m", .hidden = 8, .heads = 2, .vocabulary = 7, .sequence = 8, .source = ""};
  model.layers = static_cast<std::int64_t>(pattern.size());
  model.pattern = pattern;
  model.mamba = Mamba{.heads = 4, .head_dim = 4, .state = 4};
  return model;
}

// Kinds ascend: attention, Mamba, feed-forward layer. Each has a block of its own.
TEST(Layers, OfThreeKindsAreThreeBlocks) {
  const Model model = of_pattern("M-*M");
  Strategy strategy;
  const Layers layers = layers_of(model, strategy);
  ASSERT_EQ(layers.variants.size(), 3U);
  EXPECT_THAT(layers.of_layer, ElementsAre(0, 1, 2, 0));
  std::vector<std::string> names;
  for (const LayerVariant& variant : layers.variants)
    names.push_back(name_of(variant, model, strategy));
  EXPECT_THAT(names, ElementsAre("mamba_layer", "mlp_layer", "attention_layer"));
  strategy.pipeline_parallel = 2;
  EXPECT_THAT(variants_of_stages(model, strategy),
              ElementsAre(ElementsAre(1, 1, 0), ElementsAre(1, 0, 1)));
}

// Llama 4 Maverick's: dense layers, experts, and every fourth layer experts without rotation.
TEST(Layers, WithAndWithoutRotationAreApart) {
  Model model = written_model(
      "name: m, layers: 4, hidden: 8, heads: 2, vocabulary: 7, sequence: 8, positions: rotary, "
      "unrotated_interval: 4, experts: 4, expert_interval: 2");
  const Layers layers = layers_of(model, Strategy{});
  EXPECT_THAT(layers.of_layer, ElementsAre(0, 1, 0, 2));
  EXPECT_EQ(name_of(layers.variants[2], model, Strategy{}), "expert_unrotated_layer");
}

}  // namespace
}  // namespace foreshard
