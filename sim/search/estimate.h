/// \file
/// What a strategy would cost, without simulating it: step time, a lower bound of it, and memory.
///
/// **Estimate.** Blocks are lowered (strategies/program/lower) once for each way to split a layer
/// and timed from their tasks (times.h). With p stages, v chunks each, m micro-batches, t(s) the
/// time of a micro-batch on stage s (forward and backward, all its chunks), x that of a transfer:
///
///     step = ramp + m x cycle + what gradients, optimizer and parameters add
///     ramp = (sum of t(s) but for the slowest stage) / v + 2 (p - 1) x
///     cycle = max t(s) + 2 v x                                 transfers that block
///           = max(t(s), (t(s) + ... + t(p-1) + 2 (p-1-s) x) / (p - s))       1f1b, that overlap
///           = max t(s)                                         interleaved, that overlap
///
/// (1f1b: stage s has p - s micro-batches in flight, which go round through the stages after it.)
/// A pass takes no less than the host needs to launch it.
///
/// **Bound.** For each stage s, the sum of: one forward pass through the pieces before it; all its
/// own passes; one backward pass through the pieces before it; and the optimizer's kernels on the
/// first stage. Each part holds the compute stream of some device, and each must follow the one
/// before: nothing reaches stage s before it has passed the stages before it, s runs its passes on
/// one stream, and what it does last, a backward pass, must still go back to the first stage.
/// A pass counts from its first kernel to its last: of the stage's own passes on its slowest kind
/// of device, which has to do them all; of the others on the fastest kind of theirs, as a rank with
/// the slowest one may have those beside it. Communication counts at the speed of idle links on the
/// fastest group. Engines only add to that: contention, shared SMs, launches, transfers, gradients.
/// So bound <= fluid, always.
///
/// **Memory** of a stage: parameters, gradients and optimizer state as the strategy shards them,
/// activations of as many passes as the schedule's own order has in flight, and the largest sum of
/// what a block needs while it runs with what is kept by then. Each stage is held to the memory of
/// the devices that it runs on.
///
/// Not modelled (fluid does): contention between groups, and SMs that communication takes from
/// kernels beside it. A stage with devices of several kinds is as slow as its slowest.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"

#include "sim/search/internal/places.h"
#include "sim/search/internal/times.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {

struct Estimate {
  Seconds step;
  Seconds bound;           ///< No engine finds less.
  Bytes peak;              ///< Of the stage with the least room.
  Bytes memory;            ///< What the smallest device of that stage has for tensors.
  std::int64_t stage = 0;  ///< That stage.
};

/// Estimates strategies of one model on one cluster, all of the same framework, precision, batch
/// and rank order. One object for each thread.
class Estimator {
 public:
  /// All must outlive it. Rank r runs on device `devices`[r]. `launch_time` as in
  /// lower::LowerOptions.
  Estimator(const Model& model, const ClusterView& cluster, std::vector<std::int32_t> devices,
            const CostModel& cost, Seconds launch_time);
  ~Estimator();

  /// Memory alone: cheaper, nothing is timed.
  /// \pre faults_in(strategy, ...) is empty; there are devices for its ranks.
  /// \return kInvalidInput where a tensor or the schedule cannot be split like that.
  Result<Estimate> memory(const Strategy& strategy);
  /// All of it.
  /// \return also kInfeasible where devices that communicate have no route.
  Result<Estimate> estimate(const Strategy& strategy);

 private:
  struct Split;
  struct InFlight;
  using SplitKey = std::tuple<std::int64_t, bool, std::int64_t, Recompute, std::int64_t>;
  using ScheduleKey = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

  Result<Split*> split_of(const Strategy& strategy);
  Result<const std::vector<InFlight>*> in_flight(const Strategy& strategy);

  const Model& model_;
  Seconds launch_time_;
  Places places_;
  Times times_;
  std::map<SplitKey, Split> splits_;
  std::map<ScheduleKey, std::vector<InFlight>> in_flight_;
};

}  // namespace foreshard::search
