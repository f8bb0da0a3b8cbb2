#include "strategies/parallelism/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foreshard {
namespace strategy_test {

Model plain_model() {
  return {.name = "m",
          .layers = 10,
          .hidden = 48,
          .heads = 12,
          .vocabulary = 100,
          .sequence = 30,
          .source = ""};
}

// "key: message | help", one per fault.
std::vector<std::string> faults(const Strategy& strategy, const Model& of, std::int64_t devices) {
  std::vector<std::string> lines;
  for (const StrategyFault& fault : faults_in(strategy, of, devices))
    lines.push_back(fault.key + ": " + fault.message + " | " + fault.help);
  return lines;
}

std::string only(const Strategy& strategy, const Model& of = plain_model()) {
  const auto all = faults(strategy, of, strategy.devices());
  EXPECT_LE(all.size(), 1u);
  return all.empty() ? "sound" : all.front();
}

Strategy strategy() {
  Strategy sound;
  sound.global_batch = 24;
  return sound;
}

TEST(Strategy, CudaGraphsLaunchWhatLayersHave) {
  Strategy s = strategy();
  s.cuda_graphs = {Capture::kAttention, Capture::kMlp};
  EXPECT_EQ(only(s), "sound");
  s.cuda_graphs = {Capture::kRouter};
  EXPECT_EQ(only(s), "cuda_graphs: model 'm' has no experts to capture | leave out 'router'");
  s.cuda_graphs = {Capture::kStep, Capture::kAttention};
  EXPECT_EQ(only(s), "cuda_graphs: 'step' has all the other parts | leave them out");
  s.cuda_graphs = {Capture::kMlp, Capture::kMlp};
  EXPECT_EQ(only(s), "cuda_graphs: names a part twice | name it once");
}

TEST(Strategy, RanksNeedADeviceEach) {
  Strategy s = strategy();
  s.tensor_parallel = 2;
  s.pipeline_parallel = 5;
  s.data_parallel = 2;
  EXPECT_EQ(faults(s, plain_model(), 20), std::vector<std::string>{});
  EXPECT_EQ(faults(s, plain_model(), 24), std::vector<std::string>{});  // four are idle
  const std::string message =
      "data_parallel: tensor_parallel 2 x pipeline_parallel 5 x data_parallel 2 = 20 ranks, but "
      "there are ";
  EXPECT_EQ(faults(s, plain_model(), 10),
            std::vector<std::string>{message + "10 devices for them | "
                                               "data_parallel: 1 would use them all"});
  EXPECT_EQ(faults(s, plain_model(), 19),
            std::vector<std::string>{message + "19 devices for them | "
                                               "data_parallel: 1 would use 10 of them"});
  EXPECT_EQ(faults(s, plain_model(), 9),
            std::vector<std::string>{message +
                                     "9 devices for them | tensor_parallel x pipeline_parallel = "
                                     "10 is too much already; tensor_parallel: 2, "
                                     "pipeline_parallel: 1, data_parallel: 4 would use 8 of them"});
  EXPECT_EQ(faults(s, plain_model(), 0),
            std::vector<std::string>{
                message + "0 devices for them | no device works: take some out of the cluster's "
                          "down"});
}

// 24 sequences on 7 devices: 7 and 5 replicas could not share them, 6 can. A remedy is one.
TEST(Strategy, RemediesAreValid) {
  using testing::ElementsAre;
  using testing::EndsWith;
  Strategy s = strategy();
  s.data_parallel = 32;
  EXPECT_THAT(faults(s, plain_model(), 7),
              ElementsAre(EndsWith(" = 32 ranks, but there are 7 devices for them | "
                                   "data_parallel: 6 would use 6 of them"),
                          EndsWith(" x micro_batch 1 = 32 | data_parallel: 6 shares them evenly")));
  s.data_parallel = 6;
  EXPECT_THAT(faults(s, plain_model(), 7), ElementsAre());
  s.data_parallel = 32;
  s.micro_batch = 5;
  EXPECT_THAT(faults(s, plain_model(), 2),
              ElementsAre(EndsWith("data_parallel: 2 with global_batch: 20 would use them all"),
                          EndsWith(" x micro_batch 5 = 160 | use strategy.global_batch=20 or 30")));
  s.data_parallel = 2;
  s.global_batch = 20;
  EXPECT_THAT(faults(s, plain_model(), 2), ElementsAre());
}

TEST(Strategy, HeadsMustDivide) {
  Strategy s = strategy();
  s.tensor_parallel = 8;
  EXPECT_EQ(only(s),
            "tensor_parallel: 12 attention heads cannot be split 8 ways | use one of 1, 2, 3, 4, "
            "6, 12");
  Model grouped = plain_model();
  grouped.kv_heads = 3;
  s.tensor_parallel = 6;
  EXPECT_EQ(only(s, grouped),
            "tensor_parallel: 3 key/value heads cannot be split 6 ways | use one of 1, 3");
  Model narrow = plain_model();
  narrow.ffn = 50;
  s.tensor_parallel = 4;
  EXPECT_EQ(only(s, narrow),
            "tensor_parallel: the feed-forward width 50 cannot be split 4 ways | use one of 1, 2");
}

TEST(Strategy, SequencesMustDivideForSequenceParallelism) {
  Strategy s = strategy();
  s.tensor_parallel = 4;
  EXPECT_EQ(only(s), "sound");
  s.sequence_parallel = true;
  EXPECT_EQ(only(s),
            "sequence_parallel: a sequence of 30 tokens cannot be split 4 ways | set "
            "sequence_parallel: false or another tensor_parallel");
}

TEST(Strategy, LayersMustDivideOrBeGiven) {
  Strategy s = strategy();
  s.pipeline_parallel = 4;
  EXPECT_EQ(only(s),
            "pipeline_parallel: 10 layers do not divide into 4 equal stages | give them: "
            "layers_per_stage: [3, 3, 2, 2]");
  s.layers_per_stage = {3, 3, 2, 2};
  EXPECT_EQ(only(s), "sound");
  EXPECT_EQ(layers_of_stages(s, plain_model().layers), s.layers_per_stage);
  s.layers_per_stage = {0, 5, 5, 0};
  EXPECT_EQ(only(s), "sound");
  s.layers_per_stage = {3, 3, 3, 2};
  EXPECT_EQ(only(s),
            "layers_per_stage: the stages have 11 layers together, the model has 10 | "
            "layers_per_stage: [3, 3, 2, 2]");
  s.layers_per_stage = {5, 5};
  EXPECT_EQ(only(s),
            "layers_per_stage: 2 entries for 4 stages (pipeline_parallel x virtual_stages) | "
            "layers_per_stage: [3, 3, 2, 2]");
  s.layers_per_stage = {12, -2, 0, 0};
  EXPECT_EQ(only(s), "layers_per_stage: a stage cannot have a negative number of layers | ");
}

TEST(Strategy, ChunksNeedAnInterleavedPipeline) {
  Strategy s = strategy();
  s.virtual_stages = 2;
  s.pipeline_parallel = 5;
  EXPECT_EQ(only(s),
            "virtual_stages: schedule '1f1b' has one stage per rank, not 2 | set schedule: "
            "interleaved");
  s.schedule = "interleaved";
  EXPECT_EQ(only(s), "sound");
  s.pipeline_parallel = 2;
  EXPECT_EQ(only(s),
            "pipeline_parallel: 10 layers do not divide into 4 equal stages | give them: "
            "layers_per_stage: [3, 3, 2, 2]");
  s.pipeline_parallel = 1;
  EXPECT_EQ(only(s),
            "virtual_stages: a pipeline of one rank cannot be interleaved | set virtual_stages: 1 "
            "or pipeline_parallel > 1");
}

TEST(Strategy, BatchMustDivide) {
  Strategy s = strategy();
  s.data_parallel = 5;
  s.micro_batch = 2;
  EXPECT_EQ(only(s),
            "global_batch: 24 sequences do not divide into data_parallel 5 x micro_batch 2 = 10 | "
            "use strategy.global_batch=20 or 30");
  s.micro_batch = 8;
  EXPECT_EQ(only(s),
            "global_batch: 24 sequences do not divide into data_parallel 5 x micro_batch 8 = 40 | "
            "use strategy.global_batch=40");
}

TEST(Strategy, RankOrderNamesEveryAxisOnce) {
  Strategy s = strategy();
  s.rank_order = {"tensor", "tensor", "data"};
  EXPECT_EQ(only(s),
            "rank_order: names each of tensor, data and pipeline once | rank_order: [tensor, data, "
            "pipeline]");
}

TEST(Strategy, TellsAllFaultsAtOnce) {
  Strategy s = strategy();
  s.tensor_parallel = 5;
  s.pipeline_parallel = 3;
  s.data_parallel = 7;
  std::vector<std::string> keys;
  for (const StrategyFault& fault : faults_in(s, plain_model(), 64)) keys.push_back(fault.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"data_parallel", "tensor_parallel", "tensor_parallel",
                                            "pipeline_parallel", "global_batch"}));
}

TEST(Strategy, EqualStagesByDefault) {
  Strategy s = strategy();
  s.pipeline_parallel = 5;
  EXPECT_EQ(layers_of_stages(s, plain_model().layers), (std::vector<std::int64_t>{2, 2, 2, 2, 2}));
  EXPECT_EQ(s.micro_batches(), 24);
}

}  // namespace strategy_test
}  // namespace foreshard
