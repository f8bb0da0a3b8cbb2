/// \file
/// A plan under construction, and the planners that make it. Each planner adds one concern (the
/// passes of the schedule, reductions, gathers, transfers ...) to the plan so far, and its
/// declaration says which earlier planners it needs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

/// Names an action of one DraftRole. It stays valid wherever the action is moved.
using ActionRef = std::int32_t;
inline constexpr ActionRef kNone = -1;

/// The actions of one slot or, without `slot`, of the start or the end of the step.
struct Section {
  std::optional<PassSlot> slot{};
  std::vector<ActionRef> actions{};  ///< Actions, in the order of issue.
};

/// A role under construction: actions can still be inserted before and after others.
class DraftRole {
 public:
  Role role{};
  Section start{};
  std::vector<Section> slots{};
  Section end{};

  Action& operator[](ActionRef ref) { return actions_[static_cast<std::size_t>(ref)]; }
  const Action& operator[](ActionRef ref) const { return actions_[static_cast<std::size_t>(ref)]; }
  /// A new action. `after` holds references; kNone among them is dropped.
  ActionRef make(Action action);
  /// Makes `ref` wait for `earlier` too, unless that is kNone.
  void wait(ActionRef ref, ActionRef earlier);

  /// Splits each pass of the section into one pass for each of its units. Actions that waited for
  /// the pass wait for the last of these; the first of these waits for what the pass waited for.
  void split_passes(Section& section);
  bool is_pass(ActionRef ref) const { return (*this)[ref].kind == ActionKind::kPass; }
  /// The last pass of the section; kNone if it has none.
  ActionRef last_pass(const Section& section) const;
  ActionRef first_pass(const Section& section) const;
  /// The last pass of the step.
  ActionRef last_pass() const;
  ActionRef optimizer() const;  ///< The optimizer's step; kNone where nothing is trained.

  /// All units that the role holds.
  std::vector<UnitRange> all_units() const;

  /// The role with its actions numbered in the order of issue.
  Role finish() &&;

 private:
  std::deque<Action> actions_;
};

struct Draft {
  const Strategy& strategy;
  StepPlan plan{};
  std::vector<DraftRole> roles{};

  std::int32_t add(Bucket bucket) { return added(plan.buckets, std::move(bucket)); }
  std::int32_t add(Crossing crossing) { return added(plan.crossings, crossing); }
  std::int32_t add(GradientCopies copies) { return added(plan.copies, std::move(copies)); }
  bool trains() const { return strategy.mode == Mode::kTrain; }

 private:
  template <class T>
  static std::int32_t added(std::vector<T>& list, T item) {
    list.push_back(std::move(item));
    return static_cast<std::int32_t>(list.size()) - 1;
  }
};

struct Planner {
  std::string_view name;
  Status (*add)(Draft& draft);
};

/// The planners of `make_plan`, in the order in which they work.
std::span<const Planner> planners();

/// `make_plan` with other planners.
Result<StepPlan> make_plan(PlannedModel parts, const Strategy& strategy,
                           std::span<const Planner> planners);

/// Assigns pieces to the chunks of roles, as the schedule places them (schedule::piece_of), and
/// counts the parameters of each role. Needs nothing.
Status plan_places(Draft& draft);

/// The passes of each role, in the order of the schedule. A slot has one pass; it has several where
/// leading units have no backward pass, or where a backward pass runs in two parts and only some of
/// its units split. Activations are kept from the forward to the backward pass. Without training
/// there are no backward passes. Needs places.
Status plan_passes(Draft& draft);

/// Reductions of gradients over the ranks that hold copies of the parameters: after each unit's
/// backward pass, in the last or in every micro-batch, or all at once at the end of the step.
///
/// Where ranks keep only shards of the gradients, at most two whole gradients exist at a time: a
/// pass waits until the reduction before the last is done. (PyTorch:
/// torch/distributed/fsdp/_fully_shard, FSDPCommContext::reduce_scatter_state;
/// _post_backward_final_callback ends a backward pass when all is reduced.) Needs passes.
Status plan_reductions(Draft& draft);

/// The end of a training step: gradients of copies are added up, then the optimizer steps. Needs
/// reductions.
Status plan_step_end(Draft& draft);

/// Gathers of parameters that ranks hold in shards. They run at one of three times: at the start of
/// the step, where each unit's first pass waits for the unit's gather; after the optimizer; or
/// before each pass, which frees the whole parameters again.
///
/// In the last case at most two units are whole at a time: a gather waits for the pass before the
/// one that runs beside it, and the framework decides where the host issues the gather (Prefetch).
/// Units are prefetched in the order of the passes, embedding and head included, up to the end of a
/// slot. The model's last unit stays whole where its backward pass follows its forward pass at
/// once. (PyTorch: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _backward_prefetch,
/// which goes through post_forward_order backwards; pytorch/torchtitan, apply_fsdp, which does not
/// reshard the last unit after its forward pass by default; DeepSpeed: stage3_max_reuse_distance.)
/// Needs reductions (a gather may be issued before one) and the step end.
/// Not modelled: units that stay whole from micro-batch to micro-batch of a pipeline, as
/// torchtitan's do by default; that FSDP2 does not copy out again what stays whole.
Status plan_gathers(Draft& draft);

/// Copies between the device and the memory of its host.
///
/// The activations of the first N of a chunk's L layers are copied to the host after their forward
/// pass, and fetched before their backward pass. The device has room for the activations of
/// w = max(1, L - N) layers: the forward pass of the layer w places later waits for the copy, and a
/// layer is fetched as soon as the backward pass of the layer w places later is done. (Transformer
/// Engine: cpu_offload.py, OffloadSynchronizer: finish_offload_map and start_reload_map.)
///
/// Where the CPU takes the optimizer's step, gradients go to the host after their reduction, and
/// the step waits for them. (Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model
/// Training", USENIX ATC 2021.) Needs reductions, the step end and gathers.
Status plan_offloads(Draft& draft);

/// Transfers between the pieces of a pipeline, and where the host waits for them. A blocking send
/// delays the next pass. A blocking receive waits for the last pass of the slot before; in a ring
/// of stages (an interleaved pipeline), of the slot before that: Megatron-LM posts the receives of
/// the next forward and the next backward pass together, and a host that also waited for its sends
/// would never get to issue the receive. Hosts of a ring that wait inside passes
/// (Block::host_waits) would come to the receive too late: they issue it behind the send of the
/// slot before the last, as PyTorch does, which posts a receive in the time step of its send
/// (torch/distributed/pipelining, PipelineScheduleMulti). Where they wait for receives, too, or
/// with pipeline_scatter_gather, no pass waits for sends and no host for receives. Schedules that
/// may not block post their transfers ahead of use (schedule::Schedule::may_block). Needs
/// everything else.
Status plan_transfers(Draft& draft);

}  // namespace foreshard::plan
