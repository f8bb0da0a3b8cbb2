// Serial = sharded for encoders, alone and before a decoder (step_test.cc has the decoders).

#include "tests/seeds.h"
#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_encoders.h"
#include "tests/test.h"

namespace foreshard::execute {
namespace {

// Whether a parameter is of a layer like one before it.
bool is_of_later_layer(const Model& model, const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return false;
  const std::int64_t layer = std::stoll(name.substr(kLayers.size()));
  for (std::int64_t before = 0; before < layer; ++before)
    if (model.kind_of_layer(before) == model.kind_of_layer(layer)) return true;
  return false;
}

// One element of each parameter: the loss, which is that of both heads where there are two, changes
// as its gradient says. The difference is as in step_test.cc.
TEST(SerialEncoderStep, GradientsAreThoseOfTheLoss) {
  constexpr double kStep = 1e-4;
  int first = 0;  // every third parameter is nudged, other ones in each model
  for (const Model& model : tiny_encoders()) {
    const Strategy strategy = tiny_strategy(1, 1, 1, 2);
    const StepResult base = executed(model, strategy);
    ASSERT_FALSE(base.held.empty()) << model.name;
    std::map<std::string, std::pair<std::int64_t, double>> parameters;
    for (const Held& held : base.held) {
      if (!held.tensor.ends_with(".gradient") || is_of_later_layer(model, held.tensor)) continue;
      const std::size_t middle = held.indices.size() / 2;
      parameters[held.tensor.substr(0, held.tensor.rfind('.'))] = {held.indices[middle],
                                                                   held.values[middle]};
    }
    EXPECT_GE(parameters.size(), 15U);
    int turn = first++;
    for (const auto& [name, at] : parameters) {
      if (turn++ % seeds(3, 1) != 0) continue;
      const auto loss = [&, index = at.first, parameter = name](double amount) {
        return executed(model, strategy, {.nudge = {parameter, index, amount}}).loss;
      };
      const double slope =
          (8 * (loss(kStep) - loss(-kStep)) - (loss(2 * kStep) - loss(-2 * kStep))) / (12 * kStep);
      EXPECT_NEAR(slope, at.second, 2e-9) << model.name << ", " << name;
    }
  }
}

// Without a mask, what comes behind a token changes what is made of it.
TEST(SerialEncoderStep, TokensSeeThoseBehindThem) {
  const Strategy strategy = tiny_strategy(1, 1, 1, 2);
  Model model = tiny_gpt();
  model.dropout = false;
  const double causal = executed(model, strategy).loss;
  model.causal = false;
  const double both = executed(model, strategy).loss;
  EXPECT_NE(causal, both);
  const Model encoder = model;
  Strategy unfused = strategy;
  unfused.framework.value.attention = AttentionImplementation::kUnfused;
  EXPECT_THAT(compare(executed(encoder, strategy), executed(encoder, unfused), kTolerance).faults,
              IsEmpty());
}

struct Ranks {
  std::int64_t tensor;
  std::int64_t pipeline;
  std::int64_t data;
  std::int64_t context = 1;
};

// Tensor-parallel ranks with and without sequence parallelism, ZeRO's stages, and what is computed
// again, each in turn (by default half of the cases); of encoders alone, pipelines and parts of
// sequences too.
TEST(EncoderSerialIsSharded, ForEveryDimensionOfParallelism) {
  Summary summary;
  std::size_t turn = 0;
  for (const Model& model : tiny_encoders()) {
    for (const Ranks& ranks : {Ranks{2, 1, 1}, Ranks{1, 1, 2}, Ranks{2, 1, 2}, Ranks{2, 1, 3},
                               Ranks{1, 2, 1}, Ranks{2, 2, 2}}) {
      if (model.encoder && ranks.pipeline > 1) continue;
      for (std::size_t each = 0; each < 4; ++each, ++turn) {
        if (turn % 7 >= seeds(3U, 7U)) continue;
        Strategy s = tiny_strategy(ranks.tensor, ranks.pipeline, ranks.data);
        s.sequence_parallel = ranks.tensor > 1 && each % 2 == 0;
        s.zero_stage = static_cast<std::int64_t>(ranks.data > 1 ? each : 0);
        s.recompute =
            std::array{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[turn % 3];
        s.framework.value.fused_gradient_accumulation = turn % 2 == 0;
        s.framework.value.gradient_reduction =
            turn % 5 < 2 ? GradientReduction::kAfterBackward : GradientReduction::kOverlapped;
        expect_serial_is_sharded(model, s, summary, {turn, turn + 1});
      }
    }
  }
  print(summary);
}

TEST(EncoderSerialIsSharded, WithPartsOfSequences) {
  Summary summary;
  Model model = tiny_bert();
  model.pooler = false;
  model.classes = 0;
  for (const ContextExchange how : {ContextExchange::kAllGather, ContextExchange::kAllToAll}) {
    Strategy s = tiny_strategy(2, 1, 2);
    s.context_parallel = 2;
    s.context_exchange = how;
    expect_serial_is_sharded(model, s, summary);
  }
  print(summary);
}

}  // namespace
}  // namespace foreshard::execute
