/// \file
/// What a strategy would cost, without simulating it: step time, a lower bound of it, and memory.
///
/// **Estimate.** Blocks are lowered (strategies/program/lower) once for each way to split a layer
/// and timed from their tasks (times.h). The strategy's step plan is compiled to a shape (shape.h),
/// which all strategies of the same form share. The step is the end of a walk through the shape
/// with the times of the blocks, of transfers, and of what gradients, parameters and the optimizer
/// take; a pass takes no less than the slowest host of its stage needs to launch it (maybe early,
/// in a bubble of the pipeline: where hosts bind, the estimate can be half too high). With more
/// than 2 p micro-batches on p stages, two shorter steps are walked: of 2 p micro-batches and of
/// one period more (one micro-batch, or p where chunks are interleaved). Each further period adds
/// their difference. Of schedules other than 1F1B, GPipe and interleaved, the first has 4 p
/// micro-batches, and the period is p.
///
/// **Bound.** For each stage s, the sum of: one forward pass through the pieces before its first;
/// all its own passes; one backward pass through those pieces; and the optimizer's kernels on the
/// first stage. Each part holds the compute stream of some device, and each must follow the one
/// before: nothing reaches stage s before it has passed the stages before it, s runs its passes on
/// one stream, and what it does last, a backward pass, must still go back to the first stage.
/// Between stages, transfers take their time on idle links, there and back; before the first pass
/// and after the last one, so does what gathers parameters and reduces gradients.
/// Where backward passes run in two parts, a stage may end with gradients of weights: the way back
/// is left out, and the optimizer is the stage's own.
/// A pass counts from its first kernel to its last: of the stage's own passes on the kind of device
/// that takes the longest for all of them, as each device has to do all; of the others on the
/// fastest kind of theirs, as a rank with the slowest one may have those beside it. Communication
/// counts at the speed of idle links, in passes on the fastest group; around them, on those of the
/// first rank, whose device has to do all that (of devices of several kinds, on the fastest group).
/// Engines only add to that: contention, launches. So bound <= fluid, always.
///
/// **Multiprocessors.** A kernel runs at the rate 1 - s beside communication that holds the share
/// s of its device's multiprocessors. Of communication of h device-seconds (share x time) on
/// another stream than the chain of kernels and communication that the bound counts, each second
/// is beside a kernel of the chain, which then takes longer by s, or beside its communication:
///
///     bound += max(0, h - s x communication of the chain on other streams)
///
/// This holds within a pass, for what begins behind one of its kernels and must end before
/// another; and where there is one stage, for all that the data stream does in a step. There, if
/// one walk tells the step, the chain may be any path that walks have met, with what passes wait
/// for between them.
///
/// Of passes beside others (Strategy::overlap_experts), the estimate counts the busiest stream of
/// each, and the bound the kernels alone.
///
/// **Memory** of a stage: parameters, gradients and optimizer state as the strategy shards them,
/// and the largest sum of what the plan has live at once (peaks.h). Each stage is held to the
/// memory of the devices that it runs on. Beside the peak the least is known: what there is of the
/// sum however late hosts are.
///
/// Groups of one stage that do the same share links as if they began at once (CostModel::
/// sharing_time). No estimate is below its bound. Not modelled (fluid does): contention between
/// other operations; SMs that communication takes from kernels beside it, but for what the bound
/// has of it; that a host waits for the counts of tokens of its experts. A stage with devices of
/// several kinds is as slow as its slowest.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

struct Family;
class FamilyVisitor;
class SharedForms;  // internal/shared_forms.h

struct Estimate {
  Seconds step;
  Seconds bound;           ///< No engine finds less.
  Bytes peak;              ///< Of the stage with the least room.
  Bytes memory;            ///< What the smallest device of that stage has for tensors.
  std::int64_t stage = 0;  ///< That stage.
  /// The part of its memory that a device needs at least, by this estimate, where that is the most:
  /// where hosts may be late, less than the peak may be there at once.
  double least = 0;
};

/// What a pipeline stage needs of the smallest of its devices.
struct StageMemory {
  Bytes peak;
  Bytes memory;  ///< What the device has for tensors.
};

/// Estimates strategies of one model on one cluster, all of the same framework, precision, batch
/// and optimizer. One object for each thread.
///
/// Cost: where nothing is known, a millisecond for each way to split a layer and some for each form
/// of a plan. Of a strategy whose layout and form were met before, that of a walk (see rank()); one
/// that meets another number of replicas or stages takes some tens of microseconds more. Blocks and
/// plans that were made for thousands of others before are made again.
class Estimator {
 public:
  /// All must outlive it. Rank r runs on device `devices`[r]. `shared`: with other estimators of
  /// the model and its framework. `margin`: the part of each device's memory that counts as not
  /// there.
  Estimator(const Model& model, const ClusterView& cluster, std::vector<std::int32_t> devices,
            const CostModel& cost, std::shared_ptr<SharedForms> shared = {}, double margin = 0);
  ~Estimator();

  /// Memory alone: cheaper, nothing is timed.
  /// \pre faults_in(strategy, ...) is empty; it trains (Mode::kTrain); there are devices for its
  ///     ranks. With batch_shares, all ranks count as if they took the most: on devices of one
  ///     speed, steps and bounds are then those of the ranks that do.
  /// \return kInvalidInput where a tensor or the schedule cannot be split like that.
  Result<Estimate> memory(const Strategy& strategy);
  /// The same, stage by stage.
  Result<std::vector<StageMemory>> memory_of_stages(const Strategy& strategy);
  /// What one micro-batch takes, forward and backward, in a unit of each block (in the order of
  /// LoweredModel::all()) on the devices of each stage; no less than its host needs to launch it.
  Result<std::vector<std::vector<Seconds>>> unit_times(const Strategy& strategy);
  /// All of it.
  /// \return also kInfeasible where devices that communicate have no route.
  Result<Estimate> estimate(const Strategy& strategy);
  /// All of it, the step by the critical paths that this object has met in strategies of the same
  /// form, where they know enough: for ranking many, in some microseconds each. Never less than the
  /// bound; nearly always what `estimate` says, now and then some percent off: less where a path is
  /// not known, more where only the shorter of two forms lacks it. It depends on the strategies
  /// that were estimated before, and on their order.
  Result<Estimate> rank(const Strategy& strategy);
  /// A lower bound of the strategy and all others that split a layer and the batch alike on as many
  /// stages, wherever these are cut (each piece has a layer) and whatever is computed again: what
  /// kernels take on the fastest kind of device. Some microseconds where the split was met before.
  ///
  /// The bound of estimate.h, of the best cut that there could be. Of m micro-batches that take k
  /// in all p stages together, stages of one piece end no earlier than k / (1 - (1 - 1/m)^p): where
  /// each stage, and all that is before it, end at once. Of several pieces, one layer at least is
  /// before each further stage: m k / p + (p - 1) / 2 layers. Where stages cannot share layers so
  /// evenly, because none is cut in two and each piece has one, it is what the best cut leaves.
  /// Where backward passes run in two parts: m k / p.
  Result<Seconds> least_step(const Strategy& strategy);
  /// The same with what communication adds to a pass at least: also alike are replicas, the order
  /// of ranks and ZeRO. Some microseconds where such a layout was met before.
  Result<Seconds> least_step_laid_out(const Strategy& strategy);
  /// The members of a family, each as rank() does, but for how often paths are looked for: about a
  /// microsecond each.
  /// \return the first error that a member meets; those after it are not visited.
  Status family(const Family& family, FamilyVisitor& visitor);

 private:
  class Tables;

  std::unique_ptr<Tables> tables_;
};

}  // namespace foreshard::search
