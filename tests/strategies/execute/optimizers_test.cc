// One step of every optimizer, serial = sharded.

#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_models.h"
#include "tests/test.h"

namespace foreshard::execute {
namespace {

Model tiny_experts() {
  Model model = tiny_llama();
  model.name = "tiny experts";
  model.experts = 4;
  model.experts_per_token = 2;
  return model;
}

// Tensors whole, halved and quartered, by every ZeRO stage, over pipelines and sets of shards.
TEST(SerialIsSharded, ForEveryOptimizer) {
  Summary summary;
  for (const OptimizerRule& rule : optimizer_rules()) {
    for (const std::int64_t zero : {0, 1, 2, 3}) {
      for (const auto& [tensor, pipeline, data] :
           {std::tuple(1, 1, 4), std::tuple(2, 1, 2), std::tuple(2, 2, 2)}) {
        Strategy strategy = tiny_strategy(tensor, pipeline, data, 2);
        strategy.optimizer.rule = rule.name;
        strategy.zero_stage = zero;
        for (Model model : {tiny_gpt(), tiny_llama()}) {
          // No block of moments lies across the ends of two shards; else results depend on them.
          if (rule.has_blocks) model.vocabulary = 24;
          if (model.tied_embeddings && zero >= 2 && pipeline > 1) continue;
          SCOPED_TRACE(std::string(rule.name));
          expect_serial_is_sharded(model, strategy, summary);
        }
      }
    }
    Strategy strategy = tiny_strategy(1, 1, 4, 2);
    strategy.optimizer.rule = rule.name;
    strategy.zero_stage = 1;
    strategy.shard_replicas = 2;
    expect_serial_is_sharded(tiny_llama(), strategy, summary);
    strategy.shard_replicas = 1;
    strategy.expert_parallel = 2;
    for (const std::int64_t zero : {0, 1}) {
      strategy.zero_stage = zero;
      expect_serial_is_sharded(tiny_experts(), strategy, summary);
    }
  }
  print(summary);
}

// What each does differs from what the others do.
TEST(SerialStep, OptimizersDiffer) {
  std::map<std::string, double> after;
  for (const OptimizerRule& rule : optimizer_rules()) {
    Strategy strategy = tiny_strategy(1, 1, 1, 2);
    strategy.optimizer.rule = rule.name;
    const StepResult result = executed(tiny_gpt(), strategy);
    const std::string moment =
        rule.name == "adam-8bit" ? "layers.0.qkv.weight.first_moment" : "layers.0.qkv.weight";
    for (const Held& held : result.held)
      if (held.tensor == moment) after[std::string(rule.name)] = held.values[3];
  }
  for (const auto& [a, first] : after)
    for (const auto& [b, second] : after)
      if (a != b) {
        EXPECT_NE(first, second) << a << ", " << b;
      }
}

}  // namespace
}  // namespace foreshard::execute
