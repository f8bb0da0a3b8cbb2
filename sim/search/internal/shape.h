/// \file
/// A step plan compiled for the search: nodes with durations still to come. All strategies whose
/// plans have the same form share a shape (schedule, stages, chunks, micro-batches, what happens to
/// parameters and gradients): made once, it serves each way to split a layer, any place of the
/// stages, and any number of layers that are recomputed.
///
///     shape = PlanShape(plan, classes, ...)
///     step  = shape.walk({time of each shape.works()})
///
/// A walk starts every node when all that it waits for is done: the nodes before it on its lane,
/// the plan's dependencies, and where two roles meet (a transfer, a tied parameter, the gradient
/// norm), what both of them wait for. The chain of nodes that ends last is the **critical path**;
/// it is remembered as how often it has each work. The longest of the paths met so far is no more
/// than what a walk would find, at a small part of its cost.
///
/// Not modelled: contention between nodes that run at the same time (times.h has that of groups).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"

#include "sim/search/internal/peaks.h"
#include "strategies/plan/step_plan.h"

namespace foreshard::search {

/// Stages that hold like units in the same order, chunk by chunk, on the same kinds of device: what
/// one of them does takes the others the same time and room.
struct StageClass {
  std::int32_t first = 0;  ///< The first stage of the class, and the last one.
  std::int32_t last = 0;
  std::vector<plan::Run> chunks{};  ///< The units of each, of the first stage.
  /// Of each chunk, the first unit of the first one of that stage that holds like units in the same
  /// order: they stand for those of all such chunks of the class.
  std::vector<std::int32_t> first_like{};
  std::int32_t devices = 0;            ///< Places::set.
  std::vector<std::int64_t> before{};  ///< Of each class, the stages before the last one of this.

  BlockCounts units(const Labels& labels) const;
};
struct StageClasses {
  std::vector<StageClass> all{};
  std::vector<std::int32_t> of_stage{};  ///< Index into `all`.
};
/// Units are alike if they are of the same block of the plan.
/// \param devices  of each stage.
StageClasses classes_of(const plan::StepPlan& plan, const std::vector<std::int32_t>& devices);

/// Whose duration a node has.
struct Symbol {
  enum class Kind : std::uint8_t {
    kPass,       ///< Of `units`, on the stages of class `role`.
    kGather,     ///< The parameters of a unit of block `block`, for a pass in `direction`: the
                 ///< `other`-th of the groups that can be cut (Parts::cut_groups).
    kFromHost,   ///< What a rank holds of these parameters, ahead of the gather.
    kReduce,     ///< The gradients of a unit of block `block`: the `other`-th of reduced_over().
    kGatherAll,  ///< Those of all units of class `role`, likewise.
    kReduceAll,
    kCopies,  ///< Of the replicated parameters of class `role`: the `other`-th of their groups.
    kTie,
    kTransfer,             ///< Of kind `other` (Layout::transfer_kind).
    kOffload,              ///< Activations of a unit of block `block`, to the host.
    kFetch,                ///< ... and from it.
    kOffloadGradients,     ///< As kReduce: what that leaves to one rank.
    kOffloadAllGradients,  ///< As kReduceAll, likewise.
    kSync,
    kNorm,
    kOptimizer,  ///< Of class `role`.
  };
  Kind kind = Kind::kPass;
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;  ///< Of passes.
  std::int32_t role = -1;
  std::int32_t block = -1;
  std::int32_t other = -1;
  BlockCounts units{};  ///< Of each block.
  /// Of a pass of one unit: one of the same block ran before it.
  bool follows = false;
  bool beside = false;  ///< Of a pass: it takes turns with one of another micro-batch.
  bool operator==(const Symbol&) const = default;
};

/// What a node does, whatever the blocks of its units are.
struct Work {
  Symbol::Kind kind = Symbol::Kind::kPass;
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;
  std::int32_t role = -1;
  std::int32_t other = -1;
  plan::Run units{};  ///< Of passes, and of the bucket of one unit: those that stand for its own.
  /// Of a pass of one unit, the one that ran before it, alone and likewise; -1: none.
  std::int32_t behind = -1;
  bool beside = false;
  std::int32_t to = -1;  ///< Of a transfer, which is from stage `other`.
  auto operator<=>(const Work&) const = default;
};
/// Of a transfer from each stage to the next one, which is the first for the last one, and back: a
/// kind (Layout::transfer_kind).
using TransferKinds = std::vector<std::int32_t>;
Symbol symbol_of(const Work& work, const Labels& labels, const TransferKinds& transfers);

/// What a strategy has that its plan does not tell.
struct OutsideThePlan {
  bool blocking_launches = false;  ///< The host waits for all but transfers as it issues them.
  bool norm = false;               ///< The roles meet before the optimizer.
  bool copies_ahead = false;       ///< Layout::copies_ahead.
};

/// Copies share what was compiled. Each remembers the paths of its own walks.
class PlanShape {
 public:
  PlanShape(const plan::StepPlan& plan, const StageClasses& classes, OutsideThePlan outside);

  std::span<const Work> works() const { return graph_->works; }
  std::size_t nodes() const { return graph_->work_of.size(); }
  std::size_t paths() const { return paths_.size() / graph_->works.size(); }
  /// How often path `i` has each work.
  std::span<const double> path(std::size_t i) const {
    return std::span(paths_).subspan(i * graph_->works.size(), graph_->works.size());
  }

  /// The end of the last node. `times` has the duration of each work. The critical path is
  /// remembered, if it is longer than those known.
  /// Cost: O(nodes), some nanoseconds each.
  Seconds walk(std::span<const double> times);
  /// How many nodes have each work.
  std::vector<double> counts() const;
  /// What nodes take, of those that the first pass waits for and of those that wait for the last
  /// one; with several stages, those of which the first one's first and last pass wait so, where
  /// nodes of others have no time. \pre passes do not run in parts
  Seconds around_passes(std::span<const double> times) const;
  /// The longest of the paths known: at most as long as a walk. Cost: O(works x paths).
  Seconds longest_path(std::span<const double> times) const;

 private:
  // Nodes, those that they wait for before them.
  struct Graph {
    std::vector<Work> works{};
    std::vector<std::int32_t> work_of{};
    std::vector<std::int32_t> first_before{};  // into before; one more entry than there are nodes
    std::vector<std::int32_t> before{};
  };

  // What a node waits for.
  std::span<const std::int32_t> before(std::size_t node) const;
  void remember_path(std::size_t last);

  std::shared_ptr<const Graph> graph_;  // of all copies
  std::vector<double> end_;             // of the last walk
  std::vector<double> paths_;           // how often each has each work, path by path
};

}  // namespace foreshard::search
