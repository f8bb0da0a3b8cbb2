// Recomputation and stages in Megatron's options: read and written by hand.
#include "tests/strategies/launch/launches.h"
#include "tests/test.h"

#include "strategies/launch/abilities.h"
#include "strategies/launch/internal/megatron.h"

namespace foreshard::launch {
namespace {

constexpr const char* k80Layers =
    "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --seq-length 4096 "
    "--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 4 "
    "--pipeline-model-parallel-size 4 --bf16 ";

// 20 layers a stage: 12 of them are some, 20 and more are all. In chunks of 10, 12 are all.
TEST(MegatronRecomputation, OfSomeLayersOfAStage) {
  const auto read = [](const std::string& options) { return strategy_of(k80Layers + options, 64); };
  const std::string block = "--recompute-granularity full --recompute-method block ";
  EXPECT_THAT(read(block + "--recompute-num-layers 12"),
              AllOf(HasSubstr("recompute: full"), HasSubstr("recompute_layers: 12")));
  EXPECT_THAT(read(block + "--recompute-num-layers 20"),
              AllOf(HasSubstr("recompute: full"), Not(HasSubstr("recompute_layers"))));
  EXPECT_THAT(read(block + "--recompute-num-layers 12 --num-virtual-stages-per-pipeline-rank 2"),
              Not(HasSubstr("recompute_layers")));
}

TEST(MegatronRecomputation, IsWrittenByBlocksAndModules) {
  Strategy strategy;
  strategy.pipeline_parallel = 4;
  strategy.recompute = Recompute::kFull;
  strategy.recompute_layers = 14;
  EXPECT_THAT(export_launch("megatron", strategy, nullptr)->text,
              AllOf(HasSubstr("--recompute-granularity full"),
                    HasSubstr("--recompute-method block"), HasSubstr("--recompute-num-layers 14")));
  strategy.recompute = Recompute::kSelective;
  strategy.recompute_layers = 0;
  strategy.recompute_parts = {LayerPart::kNorm, LayerPart::kCoreAttention};
  EXPECT_THAT(export_launch("megatron", strategy, nullptr)->text,
              AllOf(HasSubstr("--recompute-granularity selective"),
                    HasSubstr("--recompute-modules core_attn layernorm")));
  strategy.recompute_parts = {LayerPart::kRope};
  EXPECT_THAT(export_launch("megatron", strategy, nullptr).error().message,
              HasSubstr("strategy.recompute_parts: megatron cannot say 'rope': modules are "
                        "recomputed: core_attn, layernorm, mlp, moe, moe_act, shared_experts"));
}

TEST(RecomputeModules, AreTheFewestOfTheirParts) {
  const std::vector<LayerPart> moe{LayerPart::kRouting, LayerPart::kExpertsUp,
                                   LayerPart::kExpertActivation, LayerPart::kExpertsDown};
  EXPECT_THAT(*modules_of_parts(moe), ElementsAre("moe"));
  EXPECT_THAT(*modules_of_parts(std::vector{LayerPart::kExpertActivation}), ElementsAre("moe_act"));
  EXPECT_FALSE(modules_of_parts(std::vector{LayerPart::kActivation}));
  const std::vector<std::string> names{"layernorm", "mlp"};
  EXPECT_THAT(*parts_of_modules(names), ElementsAre(LayerPart::kNorm, LayerPart::kMlpUp,
                                                    LayerPart::kActivation, LayerPart::kMlpDown));
}

// The examples of Megatron's own documentation of the layout.
TEST(MegatronLayout, HasTheLayersOfEachStage) {
  const auto read = [](const std::string& text) { return internal::read_layout(text)->layers; };
  EXPECT_THAT(read("E|(tt|)*2,(t|)*4,mL"), ElementsAre(0, 2, 2, 1, 1, 1, 1, 0));
  EXPECT_THAT(read("Et*3|t*3L"), ElementsAre(3, 3));
  EXPECT_THAT(read("Ettt|(tt|)*2,m|L"), ElementsAre(3, 2, 2, 0, 0));
  EXPECT_TRUE(internal::read_layout("Ettt|(tt|)*2,m|L")->predictions_apart);
  EXPECT_FALSE(internal::read_layout("Et|tmL")->predictions_apart);
  EXPECT_EQ(internal::written_layout({1, 2, 0}, 1), "Et|t*2|mL");
  for (const char* wrong : {"t|tL", "Et|t", "Et|(tt", "Ex|L", "Et*|L", "E(t|)L", "Et*99999999|L"})
    EXPECT_FALSE(internal::read_layout(wrong)) << wrong;
}

// 6 layers in 2 x 2 stages, of which the ends have fewer.
TEST(MegatronLayout, SaysUnevenChunks) {
  Strategy strategy;
  strategy.pipeline_parallel = 2;
  strategy.virtual_stages = 2;
  strategy.schedule = "interleaved";
  strategy.layers_per_stage = {1, 2, 2, 1};
  strategy.global_batch = 4;
  const auto written = value_of(export_launch("megatron", strategy, nullptr));
  EXPECT_THAT(written.text, AllOf(HasSubstr("--pipeline-model-parallel-layout 'Et|t*2|t*2|tL'"),
                                  Not(HasSubstr("virtual"))));
  const auto back = value_of(import_text(written.text, 2));
  const auto read = loaded<Strategy>(back.strategy);
  EXPECT_EQ(read.layers_per_stage, strategy.layers_per_stage);
  EXPECT_EQ(read.virtual_stages, 2);
  EXPECT_EQ(read.schedule, "interleaved");
}

}  // namespace
}  // namespace foreshard::launch
