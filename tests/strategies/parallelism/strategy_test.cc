#include "strategies/parallelism/strategy.h"

#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

namespace foreshard::strategy_test {

Model plain_model() {
  return written_model("name: m, layers: 10, hidden: 48, heads: 12, vocabulary: 100, sequence: 30");
}

// "key: message | help", one per fault.
std::vector<std::string> faults(const Strategy& strategy, const Model& of, std::int64_t devices) {
  std::vector<std::string> lines;
  for (const StrategyFault& fault : faults_in(strategy, of, devices))
    lines.push_back(fault.key + ": " + fault.message + " | " + fault.help);
  return lines;
}

Strategy strategy() {
  Strategy sound;
  sound.global_batch = 24;
  return sound;
}

// 24 sequences on 7 devices: 7 and 5 replicas could not share them, 6 can. A remedy is one.
TEST(Strategy, RemediesAreValid) {
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

TEST(Strategy, StagesMayBeGiven) {
  Strategy s = strategy();
  s.pipeline_parallel = 4;
  s.layers_per_stage = {3, 3, 2, 2};
  EXPECT_EQ(layers_of_stages(s, plain_model().layers), s.layers_per_stage);
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

}  // namespace foreshard::strategy_test
