/// \file
/// A step plan of a transformer carried out on arrays in memory, rank by rank (R4.7): its actions
/// in an order drawn among all that lanes and dependencies allow (plan::Walk), every pass with the
/// graphs and the conversions that lowering emits for it, the optimizer with clipping by the global
/// norm.
/// How a step runs is the plan's alone: a dependency that it lacks shows as a wrong number, since
/// every action works on what lies in its buffers at the time, and what is not there is NaN.
///
///     const auto sharded = execute_step(model, strategy, {.order = 7});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"

namespace foreshard::execute {

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), in the middle of training: the
/// moments are not zero. Other optimizers take what they have of these.
struct AdamOptions {
  double learning_rate = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  std::int64_t step = 10;
};

/// One element of a parameter is larger by `amount` before the step: for finite differences.
struct Nudge {
  std::string parameter{};
  std::int64_t index = 0;
  double amount = 0;
};

struct StepOptions {
  std::uint64_t seed = 1;   ///< Of parameters, tokens and dropout.
  std::uint64_t order = 1;  ///< Of the order of actions.
  double dropout = 0.2;     ///< Where the model has dropout.
  double clip = 0.5;        ///< Largest gradient norm; where the framework clips.
  AdamOptions adam{};
  std::int64_t moment_block = 2;  ///< Of 8-bit moments; a divisor of what a rank has of a row.
  Nudge nudge{};
};

/// Values of a logical tensor that one rank holds.
struct Held {
  std::string tensor;
  std::int32_t rank = 0;
  std::vector<std::int64_t> indices{};  ///< Row-major, into the logical tensor.
  std::vector<double> values{};
};

struct StepResult {
  double loss = 0;  ///< Mean over the tokens of the step.
  double gradient_norm = 0;
  /// Everything that can be compared: "loss.<micro-batch>" per token; "<parameter>" after the step,
  /// "<parameter>.gradient" (reduced, before clipping), and its two moments after the step. What
  /// several ranks hold copies of is there from each.
  std::vector<Held> held{};
};

/// Carries out the plan that lowering follows (lower::plan_of).
/// \pre faults_in(strategy, model, ...) is empty; strategy.mode is kTrain.
/// \return kInvalidInput where a tensor cannot be split as the strategy wants, where the schedule
///     does not do this shape, or never ends; or where a sharded graph reads what no operator made.
Result<StepResult> execute_step(const Model& model, const Strategy& strategy,
                                const StepOptions& options = {});
/// ... or another plan of what lower::parts_of makes of the two.
Result<StepResult> execute_step(const Model& model, const Strategy& strategy,
                                const plan::StepPlan& plan, const StepOptions& options = {});

}  // namespace foreshard::execute
