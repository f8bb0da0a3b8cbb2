// What a row does not say: shapes of unknown models, stages of layers that do not divide, and who
// shares the optimizer.

#include "tests/evidence/rows.h"
#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

using study::choices_of;

// 126 layers on 16 ranks, as Llama 3 405B has: chunks of one or two layers, of which the first and
// the last have one less. 2,048 sequences on 128 ranks leave 16 micro-batches.
TEST_F(SettingOf, LayersThatDoNotDivideAreInterleavedToo) {
  TrainingRow row = full_row(
      "model_name=Llama-3.1-405B | layers=126 | num_gpus=2048 | tp=1 | pp=16 | dp=128 | mbs=1 | "
      "gbs=2048 | vpp=");
  const Setting setting = of(row);
  EXPECT_THAT(setting.open, ElementsAre(study::OpenSetting::kVirtualStages));
  const auto choices = choices_of(setting.strategy, setting.model, setting.open);
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[1][0].virtual_stages, 8);
  EXPECT_EQ(choices[2][0].virtual_stages, 4);
  const auto& split = choices[2][0].layers_per_stage;
  ASSERT_EQ(split.size(), 64u);
  EXPECT_EQ(split.front(), 1);
  EXPECT_EQ(split[1], 2);
  EXPECT_EQ(split.back(), 1);
}

// The optimizer is cut over ranks of one context, too, also where there is one data-parallel rank.
TEST_F(SettingOf, RanksOfOneContextShareTheOptimizer) {
  TrainingRow row = full_row("num_gpus=16 | pp=1 | dp=1 | tp=2 | cp=8 | gbs=4");
  EXPECT_EQ(of(row).strategy.zero_stage, 1);
  EXPECT_EQ(of(row).strategy.shards(), 8);
  row.num_gpus = 2;
  row.cp = "1";
  EXPECT_EQ(of(row).strategy.zero_stage, 0);
}

// 32 layers of 4,096 with 11,008 wide feed-forward parts and 32,000 words are Llama's 6.7 billion
// parameters; with 16,384 and 50,257 words GPT-2's.
TEST_F(SettingOf, AnUnknownNameHasTheShapeOfItsColumns) {
  TrainingRow row =
      full_row("model_name=Aurora-7B | layers=32 | hidden=4096 | ffn=11008 | vocab=32000");
  const Setting llama = of(row);
  EXPECT_EQ(llama.model.activation, Activation::kSwiglu);
  EXPECT_EQ(llama.model.positions, Positions::kRotary);
  EXPECT_THAT(llama.assumed, ElementsAre("architecture"));
  row.ffn = 16384;
  row.vocab = 50257;
  EXPECT_EQ(of(row).model.activation, Activation::kGelu);
  row.model_name = "Aurora (GELU MLP, RoPE, untied)";
  EXPECT_EQ(of(row).model.positions, Positions::kRotary);
  EXPECT_FALSE(of(row).model.tied_embeddings);
  // Three matrices of 16,384 make 9.0 billion parameters.
  row.model_name = "Aurora-9B";
  row.parameters = 9.0;
  EXPECT_EQ(of(row).model.activation, Activation::kSwiglu);
  row.parameters = 30;
  EXPECT_THAT(refusal(row), HasSubstr("the nearest shape has 9.0 billion parameters, not 30.0"));
  row.parameters = {};
  row.vocab = {};
  EXPECT_THAT(refusal(row), HasSubstr("of no family that is known, and column 'vocab' is empty"));
}

}  // namespace
}  // namespace foreshard::accuracy
