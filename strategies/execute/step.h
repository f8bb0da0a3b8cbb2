/// \file
/// A whole training step of a transformer carried out on arrays in memory, rank by rank, as
/// lowering describes it (R4.7): the same graphs, the same conversions, the order of the pipeline
/// schedule, transfers between stages, gradients over micro-batches and data-parallel ranks, ZeRO
/// shards, clipping by the global norm, Adam. A serial run is the same on one rank:
///
///     const auto sharded = execute_step(model, strategy);
///     const auto serial = execute_step(model, serial_of(strategy));
///     const Comparison c = compare(*serial, *sharded, 1e-10);    // c.faults is empty
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/parallelism/strategy.h"

namespace foreshard::execute {

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), in the middle of training: the
/// moments are not zero.
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
  std::uint64_t seed = 1;  ///< Of parameters, tokens and dropout.
  double dropout = 0.2;    ///< Where the model has dropout.
  double clip = 0.5;       ///< Largest gradient norm; where the framework clips.
  AdamOptions adam{};
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

/// \pre faults_in(strategy, model, ...) is empty; strategy.mode is kTrain.
/// \return kInvalidInput where a tensor cannot be split as the strategy wants, where the schedule
///     does not do this shape, or never ends; or where a sharded graph reads what no operator made.
Result<StepResult> execute_step(const Model& model, const Strategy& strategy,
                                const StepOptions& options = {});

/// The same training on one rank: micro-batches as large as those of all replicas, no
/// recomputation, the vocabulary padded alike.
Strategy serial_of(const Strategy& strategy);

struct Comparison {
  std::int64_t tensors = 0;   ///< Logical tensors compared.
  std::int64_t elements = 0;  ///< Values, copies too.
  /// Largest difference, relative to the largest value of the serial tensor. What is below 1e-15 of
  /// the largest gradient (moment, parameter) of all is rounding, and counts as none.
  double worst = 0;
  /// Of each tensor that differs the worst value, with rank and index: losses first, then
  /// gradients; at most 20.
  std::vector<std::string> faults{};
};

/// Every value that a rank of the sharded run holds against the serial run's, and whether every
/// value of the serial run is held by some rank. A relative difference, as in Comparison::worst,
/// beyond `tolerance`, or no number, is a fault.
Comparison compare(const StepResult& serial, const StepResult& sharded, double tolerance);

}  // namespace foreshard::execute
