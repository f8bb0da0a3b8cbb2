/// \file
/// The step plan: what every role (pipeline stage) does in one training step, in the order in which
/// its host issues it, as data. `make_plan` builds it from a sharded model and a strategy; lowering
/// turns it into the Program. Lowering reads from the strategy itself only what a single action
/// consists of: its kernels, and that a gather of parameters one by one is made twice for a
/// backward pass with full recomputation.
///
/// A plan holds neither bytes nor times: its sizes are numbers of elements, and whoever reads it
/// supplies the times.
///
///     F0
///       2 receive layer_out <- stage 0
///       3 forward layers 2..3, head < 2 +kept
///
/// is a part of a plan as text. It shows the actions of the slot "forward, micro-batch 0"; the
/// actions that each one waits for, besides those before it on its lane (`<`); and the buffers that
/// it allocates (`+`) and frees (`-`).
///
/// To add a way to run a step: a planner (planner.h) in a file of its own, and its line in
/// make_plan.cc.
///
/// Source: the two layers of PyTorch's torch.distributed.pipelining.schedules: an order of compute
/// actions, and passes that add UNSHARD, RESHARD, SEND, RECV and REDUCE_GRAD to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/attribute.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/ir/kernel.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::plan {

using schedule::PassPart;

// --- what is planned ----------------------------------------------------------------------------

/// The parameters of a block, on one rank, for which the gradients are partial over the same mesh
/// axes. Axes are ascending.
struct ParameterGroup {
  /// Axes over which the gradients are reduced in buckets: "data" and, in a general graph, others.
  /// Empty: every rank has the whole gradient.
  std::vector<Axis> over{};
  /// Axes over which the gradients are reduced after the buckets (norm scales under sequence
  /// parallelism: "tensor").
  std::vector<Axis> also_partial{};
  std::int64_t elements = 0;   ///< Elements on one rank, not cut over data-parallel ranks.
  std::int64_t quantized = 0;  ///< The part of `elements` in weights that products read quantized.
  std::int64_t frozen = 0;     ///< The part of `elements` that is not trained.
  /// The part of `elements` whose gradients the tasks of the block's backward pass can reduce
  /// themselves, in buckets of the framework's size.
  std::int64_t reduced_inside = 0;
  /// Number of trained tensors, and in `matrices` the trained weights of layers. Both are counted
  /// only where the optimizer takes whole tensors (OptimizerRule::whole_tensors).
  std::int64_t tensors = 0;
  std::vector<MatrixGroup> matrices{};
  std::int64_t trained() const { return elements - frozen; }
  bool operator==(const ParameterGroup&) const = default;
};

/// The groups without their frozen parameters.
/// \pre A group that has frozen weights has no trained weights that are quantized.
std::vector<ParameterGroup> trained_alone(std::vector<ParameterGroup> groups);

/// The groups merged by the axes over which their gradients are reduced (`over`, ascending),
/// whatever axes their gradients are also partial over.
std::vector<ParameterGroup> by_axes(const std::vector<ParameterGroup>& groups);

/// The groups merged by the axes over which ZeRO may cut them: `over` is the group's cut_axes(), or
/// empty where these axes have a single rank. Ascending by `over`.
std::vector<ParameterGroup> by_shards(const std::vector<ParameterGroup>& groups,
                                      const std::vector<MeshAxis>& mesh);
/// Those groups of by_shards() that ZeRO can cut.
std::vector<ParameterGroup> cut_groups(const std::vector<ParameterGroup>& groups,
                                       const std::vector<MeshAxis>& mesh);
/// Elements in one rank's shard of the `count` elements of a group of by_shards() that ZeRO cuts.
/// All shards are equal: the last one is padded.
inline std::int64_t shard_of(std::int64_t count, const ParameterGroup& group,
                             const std::vector<MeshAxis>& mesh) {
  const std::int64_t shards = ways(group.over, mesh);
  return (count + shards - 1) / shards;
}

/// A distinct block of the model: "embedding", "layer", "head".
struct Block {
  std::string name{};
  std::vector<ParameterGroup> groups{};
  /// False where neither the block nor anything before it is trained.
  bool has_backward = true;
  /// Its backward pass can run in two parts: gradients of inputs, then of weights. A block through
  /// which no gradient flows back (an embedding), or which has no weights, does not split: its
  /// whole backward pass runs where other blocks compute gradients of inputs.
  bool splits = false;
  /// The host waits inside its passes, for counts of tokens.
  bool host_waits = false;

  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const ParameterGroup& group : groups) sum += group.elements;
    return sum;
  }
};

/// One use of a block: the smallest piece that is placed, gathered and reduced.
struct Unit {
  std::string name{};      ///< "embedding", "layer 17".
  std::int32_t block = 0;  ///< Index into PlannedModel::blocks.
  std::int32_t layer = 0;  ///< Layer number, as in program::Call.
  bool is_layer = false;   ///< A transformer's layer: neither its embedding nor its head.
};

/// Units [first, first + count), in the order of the model.
struct UnitRange {
  std::int32_t first = 0;
  std::int32_t count = 0;
  bool contains(std::int32_t unit) const { return unit >= first && unit < first + count; }
  auto operator<=>(const UnitRange&) const = default;
};

/// A parameter that the first unit and some units of the last piece share (an embedding that is the
/// output projection too, or that modules behind the layers read).
struct TiedWeights {
  std::int32_t first_unit = 0;
  UnitRange others{};         ///< Adjacent units in one piece, which share one copy.
  std::vector<Axis> over{};   ///< Axes of its gradient, as ParameterGroup::over.
  std::int64_t elements = 0;  ///< Elements on one rank.
  bool is_frozen = false;     ///< It is not trained.
  /// One role holds all of its units, and one copy of the parameter. Set when pieces are placed.
  bool on_one_role = false;

  /// The last unit that shares it, whose backward pass is the first to add to its gradient.
  std::int32_t last_unit() const { return others.first + others.count - 1; }
  /// Whether the unit reads a copy that an earlier unit of its role holds.
  bool reads_copy(std::int32_t unit) const {
    return others.contains(unit) && (on_one_role || unit != others.first);
  }
};

/// by_axes() of the parameters of a unit that reads a copy of the tie: all of them but the tie.
std::vector<ParameterGroup> without_tie(const std::vector<ParameterGroup>& groups,
                                        const TiedWeights& tie);

/// A sharded model, cut into the pieces that the chunks of the roles take.
struct PlannedModel {
  std::string name{};  ///< Names of the model and the strategy, for people.
  std::vector<MeshAxis> mesh{};
  std::vector<Block> blocks{};
  std::vector<Unit> units{};        ///< All units, in the order of the model.
  std::vector<UnitRange> pieces{};  ///< All units, cut into pieces in order. A piece may be empty.
  std::optional<TiedWeights> tie{};
  /// crossing -> the name of the tensor that one piece hands to the next (of the first one if there
  /// are several). A single entry holds for all crossings.
  std::vector<std::string> boundaries{};

  const Block& block_of(std::int32_t unit) const;
  /// The units of a run that a backward pass goes through: all but the leading units that have no
  /// backward pass.
  UnitRange with_backward(UnitRange of) const;
  /// The unit's own parameters, one group for each `over`. A parameter that units of a role share
  /// belongs to the first of these units.
  std::vector<ParameterGroup> own_groups(std::int32_t unit) const;
  std::vector<ParameterGroup> cut_groups(const std::vector<ParameterGroup>& groups) const {
    return plan::cut_groups(groups, mesh);
  }
  /// Whether several ranks hold copies of the group's parameters and add up their gradients.
  bool is_copied(const ParameterGroup& group) const { return ways(group.over, mesh) > 1; }
};

// --- what a role does ---------------------------------------------------------------------------

enum class ActionKind : std::uint8_t {
  /// The forward or the backward pass of `units`, or a part of the backward pass. A backward pass
  /// begins with the last unit.
  kPass,
  kGather,        ///< Parameters of a bucket: shards become whole.
  kReduce,        ///< Gradients of a bucket, added up: each rank gets its shard, or all of them.
  kReduceCopies,  ///< Gradients outside buckets, added up: see GradientCopies.
  kSend,          ///< The tensor of a crossing (forward), or its gradient (backward).
  kReceive,
  kOptimizer,
  /// Copies activations of `units` to the host. Their device memory is free when the copy is done.
  kOffload,
  kFetch,             ///< Copies them back, into memory that is allocated as the copy begins.
  kOffloadGradients,  ///< Copies the reduced gradients of a bucket to the host.
  kSync,  ///< The host waits for `after` or, if that is empty, for all that was issued before.
};

/// What the actions of a kind work on.
enum class Target : std::uint8_t {
  kUnits,     ///< Action::units.
  kBucket,    ///< The bucket Action::what.
  kCopies,    ///< The entry Action::what of StepPlan::copies.
  kCrossing,  ///< The crossing Action::what.
  kRole,      ///< All that the role holds.
  kNone,
};
Target target_of(ActionKind kind);

/// Actions of one lane run in the order of issue. Lanes are the Program's streams, and the host.
enum class Lane : std::uint8_t {
  kCompute,
  kModel,  ///< Reductions of copies. Conversions inside blocks run here too.
  kData,   ///< Gathers and reductions of buckets.
  kReceiveForward,
  kSendForward,
  kReceiveBackward,
  kSendBackward,
  // The same over crossings on the way back of a V, where the peers are other roles.
  kReceiveForwardReturning,
  kSendForwardReturning,
  kReceiveBackwardReturning,
  kSendBackwardReturning,
  kToHost,    ///< Copies to the host's memory.
  kFromHost,  ///< Copies from the host's memory.
  kHost,
};

/// Buffers of a unit and micro-batch, as a set of bits.
enum Buffers : std::uint8_t {
  kKept = 1,   ///< Activations, from the forward to the backward pass.
  kWhole = 2,  ///< Whole parameters of a bucket, from the gather before a pass to the pass's end.
  /// Whole gradients of a bucket, from the first backward pass that adds to them to the reduction.
  kGradient = 4,
  /// Where the backward pass runs in two parts: the activations that gradients of weights read,
  /// from the forward pass to the second part. kKept then has the other activations.
  kKeptForWeight = 8,
  /// Where the backward pass runs in two parts: all else that gradients of weights read, from the
  /// first part to the second.
  kHeld = 16,
};

using ActionId = std::int32_t;  ///< Index into Role::actions.

struct Action {
  ActionKind kind = ActionKind::kPass;
  Direction direction = Direction::kForward;  ///< Direction of the pass that it is or belongs to.
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  PassPart part = PassPart::kWhole;  ///< Part of the backward pass that it runs.
  bool returns = false;              ///< Crossing::returns of a transfer.
  UnitRange units{};     ///< Units of a pass, or whose activations are offloaded or fetched.
  bool reduces = false;  ///< A backward pass that reduces ParameterGroup::reduced_inside.
  /// Index of what it works on: the bucket of a gather, reduction or copy of gradients; the
  /// crossing of a transfer, or of the sync that follows a transfer; the entry of StepPlan::copies.
  /// -1: none.
  std::int32_t what = -1;
  std::uint8_t takes = 0;       ///< Buffers that it allocates.
  std::uint8_t gives_back = 0;  ///< Buffers that it frees.
  /// Earlier actions of the role that it waits for; ascending. Waiting for a pass includes waiting
  /// for its conversions, which run on another lane, so that the order of the pass's own lane does
  /// not cover them.
  std::vector<ActionId> after{};
  bool operator==(const Action&) const = default;
};

Lane lane_of(const Action& action);
inline constexpr std::size_t kLanes = static_cast<std::size_t>(Lane::kHost) + 1;
inline std::size_t lane_index(const Action& action) {
  return static_cast<std::size_t>(lane_of(action));
}
/// Whether the gradients of the units' parameters are complete when the pass is done.
inline bool completes_gradients(const Action& pass) {
  return pass.kind == ActionKind::kPass && pass.direction == Direction::kBackward &&
         pass.part != PassPart::kInput;
}
inline bool is_transfer(const Action& action) {
  return target_of(action.kind) == Target::kCrossing;
}
/// Whether the action works on the bucket of one unit beside the unit's passes, rather than on that
/// of all units of a role at once.
bool of_one_unit(const StateSharding& states, const Action& action);

/// Parameters that are gathered, or gradients that are reduced, in one operation.
struct Bucket {
  std::vector<UnitRange> units{};
  /// Axes of the ranks that take part: ParameterGroup::over for gradients, `over` of by_shards()
  /// for parameters.
  std::vector<Axis> over{};
  std::int64_t elements = 0;   ///< Elements on one rank, not cut.
  std::int64_t quantized = 0;  ///< ParameterGroup::quantized.
  /// The unit whose backward pass is the first to add to the bucket's gradients; for a tie, its
  /// last unit on the role. -1: experts that ZeRO does not cut, whose gradients stay in memory and
  /// are reduced after the last micro-batch only.
  std::int32_t opened_by = 0;
};

/// The boundary between two adjacent pieces: the tensor that one hands to the next, and its
/// gradient on the way back.
struct Crossing {
  std::int32_t from_piece = 0;
  std::int32_t to_piece = 0;
  std::int32_t from_role = 0;  ///< Role that holds `from_piece`.
  std::int32_t to_role = 0;    ///< Role that holds `to_piece`.
  std::int32_t together = 1;  ///< Micro-batches in one message: the smaller Role::together of both.
  bool returns = false;       ///< It lies on the way back of a V (schedule::Placement).

  /// Both pieces are on one role, where the V turns: nothing is sent.
  bool is_local() const { return from_role == to_role; }
};

/// Gradients that are added up outside buckets: gradients that are partial along `axes`
/// (ParameterGroup::also_partial), or the gradients of a tie whose copies lie on several roles.
struct GradientCopies {
  std::vector<std::int32_t> roles{};  ///< Roles that hold a copy. More than one: a tie.
  std::vector<Axis> axes{};           ///< Axes along which gradients are added up; empty for a tie.
  std::int64_t elements = 0;          ///< Elements on one rank.
};

/// Units that a role runs one after another. A role has several in an interleaved pipeline.
struct Chunk {
  std::int32_t piece = 0;  ///< Index into PlannedModel::pieces.
  UnitRange units{};
};

/// Where a pass of one micro-batch through one chunk, or a part of it, begins in `actions`.
struct PassSlot {
  ActionId first = 0;
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  PassPart part = PassPart::kWhole;
  bool beside = false;  ///< schedule::Slot::beside: it takes turns with the slot before it.
};

struct Role {
  std::string name{};  ///< "stage 3".
  /// Micro-batches that a pass takes. A slot or pass has the number of its first micro-batch, a
  /// transfer the number of the first micro-batch in its message.
  std::int32_t together = 1;
  std::vector<Chunk> chunks{};
  std::vector<ParameterGroup> parameters{};  ///< by_shards() of the parameters of its units.
  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const ParameterGroup& group : parameters) sum += group.elements;
    return sum;
  }
  /// Actions, in the order of issue: the start of the step, the slots, the end of the step.
  std::vector<Action> actions{};
  std::vector<PassSlot> slots{};
  ActionId end = 0;  ///< The first action behind the slots.
};

/// Invariants (`verify` checks exactly these):
///  1. Every unit is in one chunk of one role.
///  2. For each micro-batch, a role runs the forward pass of every unit of a chunk once and, where
///     the step trains, the backward pass of every unit that has one once, each in the slot of that
///     chunk, direction and micro-batch. The backward pass waits for the forward pass. It runs
///     whole or, if the unit's block splits, in two parts: one in the slot of kInput, and one in
///     the slot of kWeight, which waits for the first. Units that do not split run whole in the
///     slot of kInput. All roles have the same micro-batches. A slot that runs beside the one
///     before it is a backward pass other than kWeight, and the slot before it is a forward pass of
///     another chunk or micro-batch. Where a role takes several micro-batches together, a slot
///     stands for all of them.
///  3. `after` names earlier actions of the role, ascending, each once; chunks, units and `what`
///     are within the plan.
///  4. Parameters that are gathered before use are whole in every pass: the pass waits for the
///     gather. At most two units of a role are whole at a time, not counting units that a pass does
///     not free (they are held for a later pass): a gather waits for the pass that frees the unit
///     gathered two before it.
///  5. Each bucket, and what a pass reduces itself, is reduced once in a round (a step or a
///     micro-batch), and nothing is left out. A reduction waits for the last pass of its units in
///     that round that completes gradients (whole, or kWeight); the reduction of a tie waits for
///     all units of the tie on the role. Where a reduction frees gradients, at most two gradients
///     are ready and not reduced: a pass that would make a third one waits for the reduction before
///     the last. A bucket that is gathered once in a step is gathered either before the first pass
///     of its units, which waits for the gather, or after the optimizer.
///  6. Each slot except kWeight slots receives over the crossing before its piece and sends over
///     the crossing behind it, in its direction: all its micro-batches in order, as many in a
///     message as the crossing says. Nothing is sent between pieces of one role: there, the pass
///     that reads the tensor waits for the pass that makes it. Sends and receives of a crossing
///     have the same order. A send waits for the pass that makes the tensor, and the pass that
///     reads the tensor waits for the receive, which may be issued in an earlier slot.
///  7. Every buffer that is allocated is freed once, for the same unit and micro-batch; none
///     is left at the end.
///  8. The optimizer waits for every backward pass and every reduction. A reduction of copies waits
///     for every backward pass and every reduction of buckets.
///  9. All roles reach their end: none waits for ever.
/// 10. Activations that are offloaded were made by a forward pass, for which the copy to the host
///     waits. They are fetched; the fetch waits for that copy, and the backward pass waits for the
///     fetch. A copy of gradients waits for their reduction, and the optimizer waits for the copy.
struct StepPlan {
  PlannedModel parts{};
  StateSharding states{};
  std::vector<Bucket> buckets{};
  std::vector<Crossing> crossings{};
  std::vector<GradientCopies> copies{};
  std::vector<Role> roles{};
};

/// The plan of one step of `strategy`.
/// Cost: O(actions). There are a few actions for each micro-batch and chunk, or for each
/// micro-batch and layer where parameters or gradients of layers move beside the passes.
/// \pre faults_in(strategy, ...) is empty; parts.pieces has strategy.stages() entries.
/// \return kInvalidInput where the schedule does not do this number of stages and micro-batches.
Result<StepPlan> make_plan(PlannedModel parts, const Strategy& strategy);

/// \return the first invariant that the plan breaks, with the role and the action, as an error.
/// Cost: O(passes of units x log(passes)), and O(actions) for the rest.
Status verify(const StepPlan& plan);

/// The plan for people, as shown above. Slots that differ from earlier ones in the micro-batch only
/// share a line: "F2 B1 to F7 B6: as F1 B0".
std::string to_text(const StepPlan& plan);

}  // namespace foreshard::plan
