// Exchanges of tokens: hidden behind other micro-batches, and once for each node.
#include <cstdio>

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study::exchanges_test {

struct Step {
  Seconds time;
  Seconds exposed;  // exchanges with experts that nothing hides, of the device that finishes last
};

// Four layers of 64 experts over four nodes of H100.
Step step(const std::string& strategy) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "study.yaml",
      "cluster: {nodes: 4, node: dgx-h100, fabric: {kind: rail-fat-tree}}\n"
      "model: {name: m, layers: 4, hidden: 4096, heads: 32, vocabulary: 1024, sequence: 4096,\n"
      "        activation: swiglu, positions: rotary, norm: rms-norm, bias: false, dropout: "
      "false,\n"
      "        tied_embeddings: false, experts: 64, experts_per_token: 8, expert_ffn: 2048}\n"
      "strategy: {framework: megatron-lm, zero_stage: 1, expert_parallel: 32, " +
          strategy + "}\n");
  const auto study = value_of(load_study({.study = file}, shipped_options()));
  const auto run = value_of(run_study(study, {}));
  const sim::Prediction& prediction = run.prediction;
  const Step found{prediction.step, prediction.breakdown.expert};
  std::printf("%s: %s, exposed %s\n", strategy.c_str(), format(found.time).c_str(),
              format(found.exposed).c_str());
  return found;
}

// Sixteen micro-batches, of which fifteen run beside another: what is left to wait for is less than
// half, and the step is shorter by what is hidden, but for kernels that share the GPU with it.
TEST(Exchanges, AreHiddenBesideOtherMicroBatches) {
  const std::string one = "data_parallel: 32, global_batch: 512";
  const Step alone = step(one);
  const Step beside = step(one + ", overlap_experts: true");
  EXPECT_LT(beside.exposed, alone.exposed * 0.5);
  EXPECT_LT(beside.time, alone.time);
  EXPECT_GT(beside.time, alone.time - (alone.exposed - beside.exposed) * 1.01);
}

TEST(Exchanges, OfDeepEpAreShorterOverSeveralNodes) {
  const std::string one = "data_parallel: 32, global_batch: 32";
  EXPECT_LT(step(one + ", token_dispatcher: deepep").exposed, step(one).exposed);
}

// DeepSeek-AI, "DeepSeek-V3 technical report", arXiv 2412.19437, table 1: 2.664 M hours of H800
// for 14.8 T tokens, of which nearly all in batches of 15,360 sequences of 4,096 tokens
// (section 4.2). Not modelled are smaller batches at the beginning, uneven loads of experts, and
// whatever stopped the run.
TEST(DeepSeekV3, FitsAndTakesTheHoursOfItsReport) {
  const auto study = value_of(
      load_study({.study = FORESHARD_SOURCE_DIR "/configs/studies/deepseek-v3-h800-2048.yaml"},
                 shipped_options()));
  const auto run = value_of(run_study(study, {}));
  const sim::Prediction& prediction = run.prediction;
  EXPECT_TRUE(prediction.fits);
  constexpr double kTokens = 14.8e12;
  const double hours = kTokens / prediction.tokens * (prediction.step / 1_s) / 3600 * 2048;
  std::printf("%.3f M hours, %+.1f %%\n", hours / 1e6, 100 * (hours / 2.664e6 - 1));
  EXPECT_NEAR(hours, 2.664e6, 0.15 * 2.664e6);
}

}  // namespace foreshard::study::exchanges_test
