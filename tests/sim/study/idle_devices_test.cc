// What a job does not use changes nothing of its step; what it is told to train counts real tokens.

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study {
namespace {

sim::Prediction prediction_of(const std::string& text) {
  const TemporaryFolder folder;
  const auto study =
      value_of(load_study({.study = folder.write("study.yaml", text)}, shipped_options()));
  return value_of(run_study(study, {})).prediction;
}

std::string cluster_of_groups(const std::string& groups) {
  return "cluster: {name: mine, groups: [" + groups + "], fabric: {kind: single-switch}}\n";
}

// 16 ranks on two nodes of eight, and beside them idle nodes: more of the same, slower ones of
// another kind, ones without fp8, ones whose links nobody measured.
TEST(IdleDevices, ChangeNothingOfTheStep) {
  const std::string used = "{nodes: 2, node: dgx-h100}";
  const std::string fp8 = ", quantization: fp8-current, framework: megatron-lm";
  for (const std::string& job :
       {std::string("strategy: {data_parallel: 16, zero_stage: 3, global_batch: 16, framework: "
                    "pytorch-fsdp}\n"),
        std::string("strategy: {tensor_parallel: 8, pipeline_parallel: 2, global_batch: 8, "
                    "micro_batch: 1") +
            fp8 + "}\n",
        std::string("strategy: {data_parallel: 16, zero_stage: 1, global_batch: 16}\n"
                    "disturbances: {stragglers: [{fraction: 0.1, speed: 0.8}]}\n")}) {
    const std::string model = "model: {extends: llama3-8b, layers: 4, sequence: 2048}\n";
    const sim::Prediction alone = prediction_of(cluster_of_groups(used) + model + job);
    for (const std::string& idle :
         {std::string("{nodes: 1000, node: dgx-h100}"),
          std::string("{nodes: 3, node: dgx-a100-80gb}"),
          std::string("{nodes: 1, node: {device: H100-SXM, gpus: 8, nvlink: {bandwidth: 100 GB/s}, "
                      "nics: {count: 8, bandwidth: 100 Gbit/s}}}")}) {
      SCOPED_TRACE(job + idle);
      const sim::Prediction beside =
          prediction_of(cluster_of_groups(used + ", " + idle) + model + job);
      EXPECT_EQ(beside.step, alone.step);
      EXPECT_EQ(beside.low, alone.low);
      EXPECT_EQ(beside.high, alone.high);
      EXPECT_EQ(beside.mfu, alone.mfu);
      EXPECT_EQ(beside.breakdown.compute, alone.breakdown.compute);
      EXPECT_EQ(beside.breakdown.total(), alone.breakdown.total());
      EXPECT_EQ(beside.memory_capacity, alone.memory_capacity);
      ASSERT_EQ(beside.classes.size(), alone.classes.size());
      for (std::size_t c = 0; c < alone.classes.size(); ++c)
        EXPECT_EQ(beside.classes[c].memory.peak, alone.classes[c].memory.peak);
    }
  }
}

// Samples of 512, 2,048 and 8,192 tokens have 2,508.8 on average. Padded to 8,192, a step of 64 has
// 160,563.2 real ones; packed, all are real, and 64 sequences hold 208.98 samples.
TEST(Totals, CountTokensThatBelongToSamples) {
  const auto study = [](const std::string& layout, const std::string& train) {
    return "cluster: {name: one, nodes: 1, node: dgx-h100}\n"
           "model: {extends: llama3-8b, layers: 2, samples: {lengths: [512, 2048, 8192], shares: "
           "[0.5, 0.3, 0.2], layout: " +
           layout +
           "}}\n"
           "strategy: {data_parallel: 8, micro_batch: 1, global_batch: 64, framework: "
           "pytorch-fsdp}\ntrain: " +
           train + "\n";
  };
  const auto steps = [&](const std::string& layout, const std::string& train) {
    const sim::Prediction prediction = prediction_of(study(layout, train));
    EXPECT_TRUE(prediction.training);
    return prediction.training ? prediction.training->steps : 0;
  };
  const sim::Prediction padded = prediction_of(study("padded", "1B tokens"));
  EXPECT_DOUBLE_EQ(padded.tokens, 64 * 2508.8);
  EXPECT_EQ(padded.samples, 64);
  EXPECT_EQ(steps("padded", "1B tokens"), 6229);  // 1e9 / 160,563.2 = 6,228.08
  EXPECT_EQ(steps("padded", "64k samples"), 1000);
  const sim::Prediction packed = prediction_of(study("packed", "1B tokens"));
  EXPECT_EQ(packed.tokens, 64 * 8192);
  EXPECT_DOUBLE_EQ(packed.samples, 64 * 8192 / 2508.8);
  EXPECT_EQ(steps("packed", "1B tokens"), 1908);  // 1e9 / 524,288 = 1,907.3
  EXPECT_EQ(steps("packed", "64k sequences"), 1000);
  EXPECT_EQ(steps("packed", "64k samples"), 307);  // 64,000 / 208.98 = 306.25
}

}  // namespace
}  // namespace foreshard::study
