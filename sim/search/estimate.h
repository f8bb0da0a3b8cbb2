/// \file
/// Estimates of a strategy without simulating it: step time, a lower bound of it, and memory.
///
/// **Estimate.** Blocks are lowered (strategies/program/lower) once for each way to split a layer
/// and timed from their tasks (times.h). The strategy's step plan is compiled to a shape (shape.h),
/// which all strategies of the same form share. The step is the end of a walk through the shape
/// with the times of blocks, transfers, gradient reductions, parameter gathers and the optimizer. A
/// pass takes no less than the slowest host of its stage needs to launch it. A host may launch
/// early, in a bubble of the pipeline: where hosts are the bottleneck, the estimate can be half too
/// high. With more than 2 p micro-batches on p stages, two shorter steps are walked: one of 2 p
/// micro-batches, and one of a period more (one micro-batch, or p where chunks are interleaved).
/// Each further period adds their difference. With schedules other than 1F1B, GPipe and
/// interleaved, the first walk has 4 p micro-batches, and the period is p.
///
/// **Bound.** The largest, over the stages s, of this sum: one forward pass through the pieces
/// before the first piece of s; all passes of s; one backward pass through the pieces before; and
/// the optimizer's kernels on the first stage. Each part occupies the compute stream of some device
/// and must follow the part before: a micro-batch reaches stage s only through the stages before
/// it, s runs its passes on one stream, and the gradients of its last pass, a backward pass, must
/// still go back to the first stage. The sum also has transfers between stages, there and back,
/// and, before the first pass and after the last one, gathers of parameters and reductions of
/// gradients; all of these at the speed of idle links.
///
/// Where backward passes run in two parts, a stage may end with gradients of weights. The sum then
/// leaves out the way back to the first stage, and has the optimizer of stage s.
///
/// A pass counts from its first kernel to its last. Passes of stage s count on the kind of device
/// that takes the longest for all of them together, because each device of the stage has to run
/// all. Passes of other stages count on the fastest kind of device there, because a rank on the
/// slowest device may have neighbours on faster ones. Communication counts at the speed of idle
/// links: within passes, in the fastest group; before and after them, in the groups of the first
/// rank, whose device takes part in all of it (where devices are of several kinds, in the fastest
/// group). Engines only add to that: contention, launches. So bound <= fluid, always.
///
/// **Multiprocessors.** A kernel runs at the rate 1 - s beside communication that holds the share s
/// of its device's multiprocessors. The bound counts a chain of kernels and communication. Other
/// communication, of h device-seconds (share x time) and on another stream, runs beside it: each
/// second of it is beside a kernel of the chain, which then takes longer by s, or beside
/// communication of the chain:
///
///     bound += max(0, h - s x communication of the chain on other streams)
///
/// This holds within a pass, for communication that begins after one of its kernels and must end
/// before another. With one stage it also holds for everything that the data stream does in a step.
/// If one walk then gives the whole step (no second, longer one), the chain may be any path that
/// walks have met, with what passes wait for on it.
///
/// Where passes run beside others (Strategy::overlap_experts), the estimate counts the busiest
/// stream of each pass, and the bound only its kernels.
///
/// **Memory** of a stage: parameters, gradients and optimizer state as the strategy shards them,
/// and the largest sum of buffers that the plan has live at once (peaks.h). Each stage is compared
/// with the memory of the devices that it runs on. The peak assumes that hosts are never late;
/// Estimate::least counts only what is live at once however late they are.
///
/// Groups of one stage that run the same operation share links as if they began at once
/// (CostModel::sharing_time). No estimate is below its bound. A stage with devices of several kinds
/// is as slow as its slowest. Not modelled (fluid does): contention between other operations;
/// multiprocessors that communication takes from kernels beside it, except as far as the bound has
/// it; hosts that wait for the token counts of their experts.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

struct Family;
class FamilyVisitor;
class SharedPlanForms;  // internal/forms.h

struct Estimate {
  Seconds step;
  Seconds bound;           ///< Lower bound of the step: no engine finds less.
  Bytes peak;              ///< Peak memory of `stage`.
  Bytes memory;            ///< Memory for tensors on the smallest device of `stage`.
  std::int64_t stage = 0;  ///< The stage with the least room.
  /// The part of its memory that a device needs at least, by this estimate; the largest over all
  /// stages. It may be less than the peak, because fewer buffers are live at once where hosts are
  /// late.
  double least = 0;
};

/// Memory of a pipeline stage, on the smallest of its devices.
struct StageMemory {
  Bytes peak;
  Bytes memory;  ///< Memory that the device has for tensors.
};

/// Whether estimates can tell apart as many kinds of layers as the model has.
bool can_estimate(const Model& model, const Strategy& strategy);

/// Estimates strategies of one model on one cluster, all of the same framework, precision, batch
/// and optimizer. Use one object per thread.
///
/// Cost: about 1 ms for each new way to split a layer, and a few ms for each new form of a plan. A
/// strategy whose layout and form were met before takes a walk (see rank()); a new number of
/// replicas or stages takes some tens of microseconds more. The caches of blocks and plans are
/// cleared after some thousands of entries, which are then made again.
class Estimator {
 public:
  /// All must outlive it. Rank r runs on device `devices`[r]. `shared`: forms of plans, shared with
  /// other estimators of the same model and framework. `margin`: the part of each device's memory
  /// that is kept free. `clocked`: the devices of whose slowest `cluster` has the clocks
  /// (clock_spread.h). Bounds of strategies on fewer devices are those at the clocks of the devices
  /// that they use. Empty: the clocks do not depend on the devices.
  Estimator(const Model& model, const ClusterView& cluster, std::vector<std::int32_t> devices,
            const CostModel& cost, std::shared_ptr<SharedPlanForms> shared = {}, double margin = 0,
            std::span<const std::int32_t> clocked = {});
  ~Estimator();

  /// Only the memory, which is cheaper because nothing is timed.
  /// \pre faults_in(strategy, ...) is empty; it trains (Mode::kTrain); there are devices for its
  ///     ranks. With batch_shares, all ranks count as if they took the largest share: on devices of
  ///     one speed, steps and bounds are then right for the ranks that do.
  /// \return kInvalidInput where a tensor or the schedule cannot be split like that.
  Result<Estimate> memory(const Strategy& strategy);
  /// The memory of each stage.
  Result<std::vector<StageMemory>> memory_of_stages(const Strategy& strategy);
  /// stage -> block -> time of one micro-batch in a unit of that block, forward and backward, on
  /// the stage's devices; blocks in the order of LoweredModel::all(). A time is no less than the
  /// host needs to launch the unit.
  Result<std::vector<std::vector<Seconds>>> unit_times(const Strategy& strategy);
  /// The whole estimate: memory, step and lower bound.
  /// \return also kInfeasible where devices that communicate have no route.
  Result<Estimate> estimate(const Strategy& strategy);
  /// The whole estimate for ranking many strategies, in some microseconds each: the step comes from
  /// the critical paths that this object has met in strategies of the same form, where it knows
  /// enough of them. It is never below the bound and nearly always equals `estimate`. Now and then
  /// it is some percent off: less where a path is not known, more where only the shorter of two
  /// forms lacks it. It depends on the strategies that were estimated before, and on their order.
  Result<Estimate> rank(const Strategy& strategy);
  /// A lower bound of the step of this strategy and of all others with the same split of a layer
  /// and of the batch and as many stages, wherever the stages are cut (each piece has a layer) and
  /// whatever is recomputed: the kernels alone, on the fastest kind of device. Takes some
  /// microseconds where the split was met before.
  ///
  /// It is the bound of the file's comment for the best possible cut. Let one micro-batch take k in
  /// all p stages together, and let there be m micro-batches. If each stage has one piece, the step
  /// takes at least k / (1 - (1 - 1/m)^p), where all stages set the same bound. If stages have
  /// several pieces, each further stage has at least one more layer before it: m k / p plus (p - 1)
  /// / 2 layers. Where layers cannot be divided so evenly, because none is cut in two and each
  /// piece has at least one, the bound is what the best cut gives. Where backward passes run in two
  /// parts: m k / p.
  Result<Seconds> least_step(const Strategy& strategy);
  /// The same lower bound with the least that communication adds to a pass. It holds for strategies
  /// that also have the same replicas, order of ranks and ZeRO. Takes some microseconds where such
  /// a layout was met before.
  Result<Seconds> least_step_laid_out(const Strategy& strategy);
  /// Estimates the members of a family as rank() does, but looks for new critical paths less often:
  /// about a microsecond each.
  /// \return the first error that a member meets; those after it are not visited.
  Status family(const Family& family, FamilyVisitor& visitor);

 private:
  class Tables;

  std::unique_ptr<Tables> tables_;
};

}  // namespace foreshard::search
