// State-space layers beside attention, feed-forward layers and experts: sharded as serial.
#include <array>

#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_models.h"

namespace foreshard::execute {
namespace {

// Tensor, sequence, pipeline, data parallelism and ZeRO, one at a time, then together.
std::vector<Strategy> strategies() {
  std::vector<Strategy> list{tiny_strategy(2, 1, 1), tiny_strategy(4, 1, 1), tiny_strategy(1, 2, 1),
                             tiny_strategy(1, 4, 1), tiny_strategy(1, 1, 2), tiny_strategy(1, 1, 4),
                             tiny_strategy(2, 2, 2), tiny_strategy(4, 2, 2)};
  list[1].sequence_parallel = true;
  list[3].schedule = "gpipe";
  list[4].zero_stage = 1;
  list[5].zero_stage = 3;
  list[6].sequence_parallel = true;
  list[6].zero_stage = 2;
  list[7].zero_stage = 3;
  return list;
}

TEST(SerialIsSharded, WithStateSpaces) {
  Summary summary;
  std::size_t turn = 0;
  for (const Model& model : {tiny_hybrid(false), tiny_hybrid(true), tiny_mamba()}) {
    for (Strategy s : strategies()) {
      s.recompute = std::array{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[turn % 3];
      if (s.recompute == Recompute::kSelective)
        s.recompute_parts = {LayerPart::kMamba, LayerPart::kNorm};
      s.framework.value.fused_gradient_accumulation = turn % 2 == 0;
      s.framework.value.gradient_reduction =
          turn % 4 < 2 ? GradientReduction::kOverlapped : GradientReduction::kAfterBackward;
      if (model.experts > 0) {
        s.capacity_factor = 2;  // of 4 experts for 2: no token is dropped, whoever shares them
        if (s.data_parallel > 1) s.expert_parallel = 2;
      }
      expect_serial_is_sharded(model, s, summary);
      ++turn;
    }
  }
  EXPECT_EQ(summary.strategies, 24);
  print(summary);
}

// That the step left of element `index`.
double gradient_of(const StepResult& result, const std::string& parameter, std::int64_t index) {
  for (const Held& held : result.held)
    for (std::size_t i = 0; held.tensor == parameter + ".gradient" && i < held.indices.size(); ++i)
      if (held.indices[i] == index) return held.values[i];
  ADD_FAILURE() << "no gradient of " << parameter;
  return 0;
}

// The slope of the loss along each parameter, from its gradient and by differences, of models
// without experts: what is before a router changes which are chosen.
TEST(SerialStep, GradientsOfStateSpacesAreSlopesOfTheLoss) {
  for (const Model& model : {tiny_hybrid(false), tiny_mamba()}) {
    const Strategy strategy = tiny_strategy(1, 1, 1, 2);
    const StepResult base = executed(model, strategy);
    for (const char* name :
         {"mamba_in.weight", "mamba_taps", "mamba_taps.bias", "mamba_a_log", "mamba_steps.bias",
          "mamba_d", "mamba_norm.weight", "mamba_out.weight", "mamba_in_norm.weight"}) {
      for (const std::int64_t index : {0, 7}) {
        constexpr double kStep = 1e-4;
        const std::string full = std::string("layers.0.") + name;
        const auto loss = [&](double amount) {
          return executed(model, strategy, {.nudge = {full, index, amount}}).loss;
        };
        const double slope =
            (8 * (loss(kStep) - loss(-kStep)) - (loss(2 * kStep) - loss(-2 * kStep))) /
            (12 * kStep);
        EXPECT_NEAR(slope, gradient_of(base, full, index), 2e-9)
            << model.name << ", " << full << " [" << index << "]";
      }
    }
  }
}

}  // namespace
}  // namespace foreshard::execute
