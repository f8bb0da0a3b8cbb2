/// \file
/// A step plan compiled for the search: nodes with durations still to come. All strategies whose
/// plans have the same form share a shape (schedule, stages, chunks, micro-batches, what happens to
/// parameters and gradients): made once, it serves each way to split a layer.
///
///     shape = PlanShape(plan, classes, ...)
///     step  = shape.walk({time of each shape.symbols()})
///
/// A walk starts every node when all that it waits for is done: the nodes before it on its lane,
/// the plan's dependencies, and where two roles meet (a transfer, a tied parameter, the gradient
/// norm), what both of them wait for. The chain of nodes that ends last is the **critical path**;
/// it is remembered as how often it has each symbol. The longest of the paths met so far is no more
/// than what a walk would find, at a small part of its cost.
///
/// Not modelled: contention between nodes that run at the same time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"

#include "sim/search/internal/peaks.h"
#include "strategies/plan/step_plan.h"

namespace foreshard::search {

/// Stages that hold the same units, chunk by chunk, on the same kinds of device: what one of them
/// does takes the others the same time and room.
struct StageClass {
  std::int32_t first = 0;  ///< The first stage of the class, and the last one.
  std::int32_t last = 0;
  std::vector<BlockCounts> chunks{};   ///< Units of each chunk, by block.
  BlockCounts units{};                 ///< Of all chunks.
  std::int32_t devices = 0;            ///< Places::set.
  std::vector<std::int64_t> before{};  ///< Of each class, the stages before the last one of this.
};
struct StageClasses {
  std::vector<StageClass> all{};
  std::vector<std::int32_t> of_stage{};  ///< Index into `all`.
};
/// \param devices  of each stage.
StageClasses classes_of(const plan::StepPlan& plan, const std::vector<std::int32_t>& devices);

/// Whose duration a node has.
struct Symbol {
  enum class Kind : std::uint8_t {
    kPass,       ///< Of `units`, on the stages of class `role`.
    kGather,     ///< The parameters of a unit of block `block`, for a pass in `direction`: the
                 ///< `other`-th of the groups that can be cut (Parts::cut_groups).
    kReduce,     ///< The gradients of a unit of block `block`: the `other`-th of reduced_over().
    kGatherAll,  ///< Those of all units of class `role`, likewise.
    kReduceAll,
    kCopies,  ///< Of the replicated parameters of class `role`: the `other`-th of their groups.
    kTie,
    kTransfer,  ///< Of kind `other` (Times::transfer_kind).
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
  BlockCounts units{};  ///< Of each block of the plan.
  /// Of a pass of one unit: one of the same block ran before it.
  bool follows = false;
  bool beside = false;  ///< Of a pass: it takes turns with one of another micro-batch.
  auto operator<=>(const Symbol&) const = default;
};

class PlanShape {
 public:
  /// `transfer_kind`: of a transfer from one stage to another.
  /// `blocking_launches`: the host waits for all but transfers as it issues them.
  /// `norm`: the roles meet before the optimizer.
  PlanShape(const plan::StepPlan& plan, const StageClasses& classes,
            const std::function<std::int32_t(std::int32_t, std::int32_t)>& transfer_kind,
            bool blocking_launches, bool norm);

  std::span<const Symbol> symbols() const { return symbols_; }
  std::size_t nodes() const { return symbol_of_.size(); }

  /// The end of the last node. `times` has the duration of each symbol. The critical path is
  /// remembered, if it is longer than those known.
  /// Cost: O(nodes), some nanoseconds each.
  Seconds walk(std::span<const double> times);
  /// The longest of the paths known: at most as long as a walk. Cost: O(symbols x paths).
  Seconds longest_path(std::span<const double> times) const;
  /// Whether the last walks found no path that was longer than those known.
  bool is_settled() const { return known_again_ >= kSettled; }

 private:
  static constexpr std::int32_t kSettled = 8;

  void remember_path(std::size_t last);

  std::vector<Symbol> symbols_;
  // Nodes, those that they wait for before them.
  std::vector<std::int32_t> symbol_of_;
  std::vector<std::int32_t> first_before_;  // into before_; one more entry than there are nodes
  std::vector<std::int32_t> before_;
  std::vector<double> end_;
  std::vector<double> paths_;     // how often each has each symbol, path by path
  std::int32_t known_again_ = 0;  // walks since the last new path
};

/// What a search needs to know of a plan.
struct PlanForm {
  PlanShape shape;
  std::vector<std::vector<Load>> loads_of_stages{};
  std::vector<std::vector<Load>> loads{};  ///< Per class of stages: of all its stages.
};

/// Those of all plans that differ in the number of micro-batches alone.
struct PlanForms {
  /// One; or that of `micro_batches` and that of a period more, which tell those of any number
  /// above: once a pipeline runs full, each further period adds the same.
  std::vector<PlanForm> forms{};
  std::int64_t micro_batches = 0;
  std::int64_t period = 1;
  StageClasses classes{};  ///< Of the stages of each.

  /// A quantity of `count` micro-batches, from that of each form.
  template <class Quantity>
  Quantity of(std::int64_t count, const std::vector<Quantity>& of_forms) const {
    if (of_forms.size() == 1) return of_forms.front();
    const auto periods = static_cast<double>(count - micro_batches) / static_cast<double>(period);
    return of_forms.front() + periods * (of_forms.back() - of_forms.front());
  }
};

}  // namespace foreshard::search
