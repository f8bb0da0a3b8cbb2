/// \file
/// The step plan: what every role (pipeline stage) does in one training step, in the order in which
/// its host issues it, as data. `make_plan` builds it from a sharded model and a strategy; lowering
/// turns it into the Program; beside it, lowering reads of a strategy only what one action consists
/// of (kernels, and that a gather of parameters one by one is made twice for a pass that computes
/// activations again).
///
/// A plan has no bytes and no times. Sizes are those of its blocks, and times those of the reader.
///
///     F0
///       2 receive layer_out <- stage 0
///       3 forward layers 2..3, head < 2 +kept
///
/// is a part of a plan as text: the actions of the slot "forward, micro-batch 0", what each of them
/// waits for beside the order of its lane (`<`), and the buffers that it takes (`+`) and gives back
/// (`-`).
///
/// To add a way to run a step: a planner (planner.h) in a file of its own, and its line in
/// make_plan.cc.
///
/// Source: the two layers of PyTorch's torch.distributed.pipelining.schedules: an order of compute
/// actions, which passes complete with UNSHARD, RESHARD, SEND, RECV and REDUCE_GRAD.
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

using schedule::Part;

// --- what is planned ----------------------------------------------------------------------------

/// Parameters of a block that one rank holds, told apart by the axes over which their gradient is
/// partial. Axes are ascending.
struct ParameterGroup {
  /// Reduced in buckets: "data" and, in a general graph, others. None: whole on every rank.
  std::vector<Axis> over{};
  /// Reduced behind the buckets (norm scales under sequence parallelism: over "tensor").
  std::vector<Axis> also_partial{};
  std::int64_t elements = 0;   ///< On one rank, not cut over data-parallel ranks.
  std::int64_t quantized = 0;  ///< Of `elements`, those of weights that products read quantized.
  std::int64_t frozen = 0;     ///< Of `elements`, those that are not trained.
  /// Of `elements`, those that the tasks of the block's backward pass can reduce themselves, in
  /// buckets of the framework's size.
  std::int64_t reduced_inside = 0;
  /// Of those that are trained: tensors, and weights of layers. Counted where the optimizer takes
  /// tensors whole (OptimizerRule::whole_tensors).
  std::int64_t tensors = 0;
  std::vector<Matrices> matrices{};
  std::int64_t trained() const { return elements - frozen; }
  bool operator==(const ParameterGroup&) const = default;
};

/// The groups without what is frozen. \pre beside frozen weights, none that is trained is
/// quantized.
std::vector<ParameterGroup> trained_alone(std::vector<ParameterGroup> groups);

/// The groups told apart by the axes alone over which ZeRO may cut them: `over` has cut_axes(), or
/// none where they hold one rank. Ascending by `over`.
std::vector<ParameterGroup> by_shards(const std::vector<ParameterGroup>& groups,
                                      const std::vector<MeshAxis>& mesh);
/// Elements of a group of by_shards() that one rank holds where they are cut: the last shard is
/// padded.
inline std::int64_t shard_of(std::int64_t count, const ParameterGroup& group,
                             const std::vector<MeshAxis>& mesh) {
  const std::int64_t shards = ways(group.over, mesh);
  return (count + shards - 1) / shards;
}

/// A distinct block of the model: "embedding", "layer", "head".
struct Block {
  std::string name{};
  std::vector<ParameterGroup> groups{};
  bool has_backward = true;  ///< Not where nothing of it, or before it, is trained.
  /// Its backward pass can run in two parts. Where nothing flows back through it (an embedding), or
  /// it has no weights, its whole backward pass runs where others compute gradients of inputs.
  bool splits = false;

  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const ParameterGroup& group : groups) sum += group.elements;
    return sum;
  }
};

/// One use of a block: the smallest piece that is placed, gathered and reduced.
struct Unit {
  std::string name{};      ///< "embedding", "layer 17".
  std::int32_t block = 0;  ///< Index into Parts::blocks.
  std::int32_t layer = 0;  ///< As in the Program's calls.
  bool is_layer = false;   ///< Of a transformer: neither its embedding nor its head.
};

/// Units [first, first + count), in the order of the model.
struct Run {
  std::int32_t first = 0;
  std::int32_t count = 0;
  bool contains(std::int32_t unit) const { return unit >= first && unit < first + count; }
  auto operator<=>(const Run&) const = default;
};

/// A parameter that the first unit and some of the last piece share (an embedding that is the
/// output projection too, or that modules behind the layers read).
struct Tie {
  std::int32_t first_unit = 0;
  Run others{};               ///< Neighbours in one piece, which have one copy.
  std::vector<Axis> over{};   ///< Of its gradient, as in ParameterGroup.
  std::int64_t elements = 0;  ///< On one rank.
  bool is_frozen = false;     ///< It is not trained.
  bool on_one_role = false;   ///< Which holds one copy of it: set as pieces are placed.

  /// Whose backward pass is the first of them to add to its gradient.
  std::int32_t last_unit() const { return others.first + others.count - 1; }
  /// Whether an earlier unit of its role holds the copy that the unit reads.
  bool reads_copy(std::int32_t unit) const {
    return others.contains(unit) && (on_one_role || unit != others.first);
  }
};

/// A sharded model, cut into the pieces that the chunks of the roles take.
struct Parts {
  std::string name{};  ///< The model's and the strategy's, for people.
  std::vector<MeshAxis> mesh{};
  std::vector<Block> blocks{};
  std::vector<Unit> units{};  ///< In the order of the model.
  std::vector<Run> pieces{};  ///< All units, in order. A piece may be empty.
  std::optional<Tie> tie{};
  /// The tensor that one piece hands to the next (the first of several), by crossing. One entry:
  /// for all of them.
  std::vector<std::string> boundaries{};

  const Block& block_of(std::int32_t unit) const;
  /// Those units of a run that a backward pass goes through: all but the first ones that have none.
  Run with_backward(Run of) const;
  /// The unit's own parameters, those of equal `over` as one group: what units of a role share is
  /// the first one's.
  std::vector<ParameterGroup> own_groups(std::int32_t unit) const;
  /// Of by_shards(), those that ZeRO can cut.
  std::vector<ParameterGroup> cut_groups(const std::vector<ParameterGroup>& groups) const;
  /// Whether several ranks hold copies, whose gradients are added up.
  bool is_copied(const ParameterGroup& group) const { return ways(group.over, mesh) > 1; }
};

// --- what a role does ---------------------------------------------------------------------------

enum class ActionKind : std::uint8_t {
  kPass,    ///< The forward or the backward pass of `units`, or a part of the latter, which begins
            ///< with the last unit.
  kGather,  ///< Parameters of a bucket: from shards to whole.
  kReduce,  ///< Gradients of a bucket: to shards, or to all.
  kReduceCopies,  ///< Gradients outside buckets: see Copies.
  kSend,          ///< The tensor of a crossing (forward), or its gradient (backward).
  kReceive,
  kOptimizer,
  kOffload,  ///< Activations of `units`: to the host. Their room is free when they are there.
  kFetch,    ///< ... and back, into room that is taken as it begins.
  kOffloadGradients,  ///< Of a bucket, as they are reduced: to the host.
  kSync,  ///< The host waits for `after` or, without it, for all that was issued before.
};

/// Actions of one lane run in the order of issue. These are the Program's streams, and the host.
enum class Lane : std::uint8_t {
  kCompute,
  kModel,  ///< Gradients of copies. Conversions inside blocks run here too.
  kData,   ///< Buckets.
  kReceiveForward,
  kSendForward,
  kReceiveBackward,
  kSendBackward,
  // The same over crossings on which a V comes back: to and from other roles.
  kReceiveForwardReturning,
  kSendForwardReturning,
  kReceiveBackwardReturning,
  kSendBackwardReturning,
  kToHost,    ///< Copies to the memory of the host ...
  kFromHost,  ///< ... and from it.
  kHost,
};

/// Buffers of a unit and micro-batch, as a set of bits.
enum Buffers : std::uint8_t {
  kKept = 1,      ///< Activations, from the forward to the backward pass.
  kWhole = 2,     ///< Parameters of a bucket, from the gather before a pass to its end.
  kGradient = 4,  ///< Whole gradients of a bucket, from its first backward pass to its reduction.
  /// Where the backward pass runs in two parts: of the activations, those that the gradients of
  /// weights read, from the forward pass to them (kKept are then the others) ...
  kKeptForWeight = 8,
  kHeld = 16,  ///< ... and what they read besides, from the gradients of inputs to them.
};

using ActionId = std::int32_t;  ///< Index into Role::actions.

struct Action {
  ActionKind kind = ActionKind::kPass;
  Direction direction = Direction::kForward;  ///< Of passes and what belongs to them.
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  Part part = Part::kWhole;  ///< Of backward passes.
  bool returns = false;      ///< Of transfers: Crossing::returns.
  Run units{};               ///< Of passes, and of activations that are offloaded or fetched.
  bool reduces = false;      ///< Of backward passes: of ParameterGroup::reduced_inside.
  /// The bucket of a gather, reduction or copy of gradients, the crossing of a transfer or of the
  /// sync that follows a transfer, the entry of `copies`; -1: none.
  std::int32_t what = -1;
  std::uint8_t takes = 0;       ///< Buffers that begin with it.
  std::uint8_t gives_back = 0;  ///< Buffers that end with it.
  /// Earlier actions of the role that it waits for; ascending. To wait for a pass is to wait for
  /// its conversions too, which run on another lane and which the order of the lane says nothing
  /// of.
  std::vector<ActionId> after{};
  bool operator==(const Action&) const = default;
};

Lane lane_of(const Action& action);
inline constexpr std::size_t kLanes = static_cast<std::size_t>(Lane::kHost) + 1;
inline std::size_t lane_index(const Action& action) {
  return static_cast<std::size_t>(lane_of(action));
}
/// Whether gradients of parameters are there when the pass is done.
inline bool completes_gradients(const Action& pass) {
  return pass.kind == ActionKind::kPass && pass.direction == Direction::kBackward &&
         pass.part != Part::kInput;
}
inline bool is_transfer(const Action& action) {
  return action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive;
}

/// Parameters that are gathered, or gradients that are reduced, in one operation.
struct Bucket {
  std::vector<Run> units{};
  std::vector<Axis> over{};    ///< Of gradients as in ParameterGroup, of parameters as by_shards().
  std::int64_t elements = 0;   ///< On one rank, not cut.
  std::int64_t quantized = 0;  ///< As in ParameterGroup.
  /// The unit whose backward pass is the first to add to its gradients: of a tie its last one on
  /// the role. None (-1), of experts that ZeRO does not cut: they stay, and are reduced behind the
  /// last micro-batch alone.
  std::int32_t opened_by = 0;
};

/// What the piece before hands to the piece behind, and its gradient on the way back.
struct Crossing {
  std::int32_t from_piece = 0;
  std::int32_t to_piece = 0;
  std::int32_t from_role = 0;  ///< That of the pieces' chunks.
  std::int32_t to_role = 0;
  std::int32_t together = 1;  ///< Micro-batches in one message: those of the role that takes fewer.
  bool returns = false;       ///< On the way back of a V (schedule::Placement).

  /// Both pieces are on one role, where the V turns: nothing is sent.
  bool is_local() const { return from_role == to_role; }
};

/// Gradients that are added up outside buckets: those of which ranks along `axes` saw parts
/// (ParameterGroup::also_partial), or those of a tie whose copies lie on several roles.
struct Copies {
  std::vector<std::int32_t> roles{};  ///< More than one: a tie.
  std::vector<Axis> axes{};           ///< Of a tie: none.
  std::int64_t elements = 0;          ///< On one rank.
};

/// Units that a role runs one after another. A role has several in an interleaved pipeline.
struct Chunk {
  std::int32_t piece = 0;  ///< Index into Parts::pieces.
  Run units{};
};

/// Where a pass of one micro-batch through one chunk, or a part of it, begins in `actions`.
struct Slot {
  ActionId first = 0;
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  Part part = Part::kWhole;
  bool beside = false;  ///< schedule::Slot::beside: its actions and those before take turns.
};

struct Role {
  std::string name{};  ///< "stage 3".
  /// Micro-batches that a pass takes. Slots and passes have the number of the first one, transfers
  /// that of the first one in their message.
  std::int32_t together = 1;
  std::vector<Chunk> chunks{};
  std::vector<ParameterGroup> parameters{};  ///< Of its units: by_shards().
  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const ParameterGroup& group : parameters) sum += group.elements;
    return sum;
  }
  /// In the order of issue: the start of the step, the slots, the end of the step.
  std::vector<Action> actions{};
  std::vector<Slot> slots{};
  ActionId end = 0;  ///< The first action behind the slots.
};

/// Invariants (`verify` checks exactly these):
///  1. Every unit is in one chunk of one role.
///  2. A role passes every unit of a chunk forward once for each micro-batch and, where the step
///     trains, those that have a backward pass backward once, in the slot of that chunk, direction
///     and micro-batch; the backward pass waits for the forward pass. It runs whole; or, of a block
///     that splits, in two parts: in the slot of kInput, and in that of kWeight, which waits for
///     it. Units that do not split run whole in the slot of kInput. All roles have the same
///     micro-batches. A slot that runs beside the one before it is a backward pass, but kWeight,
///     and that one a forward pass of another chunk or micro-batch. Where a role takes several
///     micro-batches together, a slot stands for those.
///  3. `after` names earlier actions of the role, ascending, each once; chunks, units and `what`
///     are within the plan.
///  4. Parameters that are gathered before use are whole in every pass: the pass waits for the
///     gather. At most two units of a role are whole at a time, but for those that a pass does not
///     give back (they are held for a later one): a gather waits for the pass that gives the last
///     but one back.
///  5. Each bucket, and what a pass reduces itself, is reduced once in a round (a step or a
///     micro-batch), and nothing is left out. A reduction waits for the last pass of its units in
///     that round that completes gradients (whole, or kWeight), that of a tie for all of its
///     units on the role. Of gradients that are given back, no more than two are ready and not
///     reduced: such a pass waits for the reduction before the last. A bucket that is gathered once
///     in a step is gathered before the first pass of its units, which waits for it, or behind the
///     optimizer.
///  6. Each slot but those of kWeight receives over the crossing before its piece and sends over
///  the
///     one behind it, in its direction, all its micro-batches in order, as many in a message as the
///     crossing says; over none between pieces of one role, where the pass that
///     reads waits for the one that makes. Sends and receives of a crossing have the same order; a
///     send waits for the pass that makes the tensor, and the pass that reads it waits for the
///     receive.
///  7. What is taken is given back once, for the same unit and micro-batch; nothing is left.
///  8. The optimizer waits for every backward pass and every reduction. So do gradients of copies
///     before they are added up.
///  9. All roles come to their end: none waits for ever.
/// 10. Activations that are offloaded were made by a forward pass that the copy waits for; they are
///     fetched, which waits for the copy, and the backward pass waits for that. A copy of gradients
///     waits for their reduction, and the optimizer for the copy.
struct StepPlan {
  Parts parts{};
  StateSharding states{};
  std::vector<Bucket> buckets{};
  std::vector<Crossing> crossings{};
  std::vector<Copies> copies{};
  std::vector<Role> roles{};
};

/// The plan of one step of `strategy`.
/// Cost: O(actions), of which there are a few for each pass of a micro-batch through a chunk, or
/// through a layer where its parameters or gradients move beside it.
/// \pre faults_in(strategy, ...) is empty; parts.pieces has strategy.stages() entries.
/// \return kInvalidInput where the schedule does not do this number of stages and micro-batches.
Result<StepPlan> make_plan(Parts parts, const Strategy& strategy);

/// \return the first invariant that the plan breaks, with the role and the action.
/// Cost: O(passes of units x log(passes)), and O(actions) for the rest.
Status verify(const StepPlan& plan);

/// The plan for people, as shown above. Slots that repeat earlier ones but for the micro-batch
/// share a line: "F2 B1 to F7 B6: as F1 B0".
std::string to_text(const StepPlan& plan);

}  // namespace foreshard::plan
