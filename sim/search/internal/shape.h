/// \file
/// A step plan compiled for the search: a graph of nodes whose durations are filled in later. All
/// strategies whose plans have the same form (schedule, stages, chunks, micro-batches, handling of
/// parameters and gradients) share a shape. It is made once and serves every way to split a layer,
/// every placement of the stages, and every number of layers that recompute.
///
///     shape = PlanShape(plan, classes, ...)
///     step  = shape.walk({time of each shape.works()})
///
/// A walk starts every node when everything that it waits for is done: the node before it on its
/// lane, the plan's dependencies, and, where two roles meet (a transfer, a tied parameter, the
/// gradient norm), the dependencies of both. The chain of nodes that ends last is the **critical
/// path**; it is cached as the number of times that it has each work. The longest of the paths met
/// so far is a lower bound of what a walk would find, at a small part of the cost.
///
/// Not modelled: contention between nodes that run at the same time (times.h has contention between
/// groups).
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

/// A class of equivalent stages: their chunks hold equivalent units in the same order, on the same
/// kinds of device, so that each action takes the same time and memory on all of them.
struct StageClass {
  std::int32_t first = 0;  ///< First and last stage of the class.
  std::int32_t last = 0;
  std::vector<plan::UnitRange> chunks{};  ///< chunk -> units, in the first stage.
  /// chunk -> first unit of its representative: the first chunk of that stage with equivalent units
  /// in the same order, whose units stand for the units of all such chunks of the class.
  std::vector<std::int32_t> first_like{};
  std::int32_t devices = 0;  ///< Number of a set of device kinds (RankDevices::set).
  /// class -> how many of its stages come before the last stage of this class.
  std::vector<std::int64_t> before{};

  BlockCounts units(const Labels& labels) const;
};
struct StageClasses {
  std::vector<StageClass> all{};
  std::vector<std::int32_t> of_stage{};  ///< Index into `all`.
};
/// Units are alike if they are of the same block of the plan.
/// \param devices  one set of device kinds per stage (RankDevices::set).
StageClasses classes_of(const plan::StepPlan& plan, const std::vector<std::int32_t>& devices);

/// The tasks of an action's block that a node stands for.
enum class Segment : std::uint8_t {
  kAll,
  kAhead,   ///< Tasks that are a node of their own: see is_ahead() in layout.h.
  kBehind,  ///< All other tasks.
};

/// What a node does, as far as its duration depends on it.
struct TimedAction {
  plan::ActionKind kind = plan::ActionKind::kPass;  ///< A transfer is of kind kReceive.
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;  ///< Used for passes.
  Segment segment = Segment::kAll;
  /// The class whose stages it runs on; -1: its duration does not depend on that, because it works
  /// on one unit, or because several stages take part.
  std::int32_t role = -1;
  std::int32_t block = -1;  ///< The block of its one unit; -1: it has all units of class `role`.
  /// Place of its bucket's group: of a gather among those that are sharded
  /// (PlannedModel::cut_groups), else in reduced_over(). Place of its entry among the copies of the
  /// role. StrategyLayout::transfer_kind of a transfer.
  std::int32_t other = -1;
  BlockCounts units{};  ///< Of a pass: block -> number of units.
  /// For a pass of one unit: whether a pass of one unit of the same block ran right before it.
  bool follows = false;
  bool beside = false;  ///< Whether a pass alternates with a pass of another micro-batch.
  bool operator==(const TimedAction&) const = default;
};

/// What a node does, before the blocks of its units are filled in.
struct Work {
  plan::ActionKind kind = plan::ActionKind::kPass;
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;
  Segment segment = Segment::kAll;
  std::int32_t role = -1;
  std::int32_t other = -1;
  plan::UnitRange units{};  ///< The representative units of a pass, or the unit of another action.
  /// For a pass of one unit: the unit of the matching single-unit pass right before it (same
  /// direction, part, micro-batch and chunk); -1: none.
  std::int32_t behind = -1;
  bool beside = false;
  std::int32_t to = -1;  ///< Destination stage of a transfer, whose source is stage `other`.
  auto operator<=>(const Work&) const = default;
};
/// Kinds of transfers (StrategyLayout::transfer_kind): for each stage, the kind of the transfer to
/// the next stage and of the one back. The last stage's next one is the first.
using TransferKinds = std::vector<std::int32_t>;
TimedAction timed_action_of(const Work& work, const Labels& labels, const TransferKinds& transfers);

/// Properties of a strategy that its plan does not have.
struct ExecutionTraits {
  /// The host waits for each action that it issues, except transfers.
  bool blocking_launches = false;
  bool norm = false;          ///< All roles wait for the gradient norm before the optimizer.
  bool copies_ahead = false;  ///< Same as StrategyLayout::copies_ahead.
};

/// The compiled plan. Copies share the graph; each copy caches the critical paths of its own walks.
class PlanShape {
 public:
  PlanShape(const plan::StepPlan& plan, const StageClasses& classes, ExecutionTraits outside);

  std::span<const Work> works() const { return graph_->works; }
  std::size_t nodes() const { return graph_->work_of.size(); }
  std::size_t paths() const { return paths_.size() / graph_->works.size(); }
  /// work -> how often path `i` has it.
  std::span<const double> path(std::size_t i) const {
    return std::span(paths_).subspan(i * graph_->works.size(), graph_->works.size());
  }

  /// The end of the last node. `times`: work -> duration. The critical path is added to the known
  /// paths if it is longer than all of them.
  /// Cost: O(nodes), some nanoseconds each.
  Seconds walk(std::span<const double> times);
  /// work -> number of nodes that have it.
  std::vector<double> counts() const;
  /// The longest chain of nodes before the first pass, plus the longest chain after the last pass.
  /// With several stages, callers give nodes of stages other than the first no time, and the first
  /// stage's passes count. \pre passes do not run in parts
  Seconds around_passes(std::span<const double> times) const;
  /// The longest known path: at most as long as a walk. Cost: O(works x paths).
  Seconds longest_path(std::span<const double> times) const;

 private:
  // Nodes in an order in which each comes after the nodes that it waits for.
  struct Graph {
    std::vector<Work> works{};
    std::vector<std::int32_t> work_of{};
    std::vector<std::int32_t> first_before{};  // index into `before`; one entry more than nodes
    std::vector<std::int32_t> before{};
  };

  // The nodes that a node waits for.
  std::span<const std::int32_t> before(std::size_t node) const;
  void remember_path(std::size_t last);

  std::shared_ptr<const Graph> graph_;  // shared by all copies
  std::vector<double> end_;             // node -> end in the last walk
  std::vector<double> paths_;           // path by path: how often it has each work
};

}  // namespace foreshard::search
