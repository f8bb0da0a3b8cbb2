/// \file
/// Times of the parts of a step, shared by strategies with the same layout of the model: the same
/// split of each layer, the same numbers of replicas and stages, and the same sharding of states.
/// Strategies that differ in the order of their passes, in the layers of a stage, or in the number
/// of micro-batches share a layout; each of its times is computed once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/search/internal/passes.h"
#include "sim/search/internal/peaks.h"
#include "sim/search/internal/shape.h"
#include "sim/search/internal/times.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/action_blocks.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {

/// The blocks of one way to split a layer, and the times of passes through them.
struct SplitBlocks {
  lower::LoweredModel blocks;  ///< The mesh in it is the mesh of the layout that was used last.
  /// Key: the kinds of the groups that communicate (CostCache::group_kinds), and a set of device
  /// kinds (RankDevices::set).
  std::map<std::pair<std::vector<std::int32_t>, std::int32_t>, ModelTimes> times{};
};

/// What a stage holds, as far as its resident memory and the end of its step depend on it.
struct StageHolds {
  BlockCounts units{};  ///< block -> units; blocks with equal parameters count as the first one.
  std::int32_t devices = 0;  ///< RankDevices::set.
  /// `sends_gradients`: whether it sends gradients to another chunk; `repeats`: whether there are
  /// several micro-batches.
  bool sends_gradients = false;
  bool repeats = false;
  bool operator==(const StageHolds&) const = default;
};

BlockTimes by_block(const ModelTimes& times);

/// Whether the task of such an action is part of Segment::kAhead: the copy of a shard from the host
/// before its gather; the norm of all gradients, in the block of the optimizer.
bool is_ahead(plan::ActionKind kind, const program::Task& task);

class StrategyLayout {
 public:
  /// `split` has the blocks for the strategy's way to split a layer. All arguments but `strategy`
  /// must outlive the layout.
  StrategyLayout(const Strategy& strategy, const Model& model, SplitBlocks& split,
                 RankDevices& places, CostCache& times);

  /// The blocks, on the mesh of this layout.
  lower::LoweredModel& blocks();
  const std::vector<MeshAxis>& mesh() const { return mesh_; }
  const StateSharding& states() const { return states_; }
  /// stage -> number of its set of device kinds (RankDevices::set). Equal for stages with the same
  /// kinds of device whose blocks communicate over equivalent groups.
  const std::vector<std::int32_t>& devices_of_stages() const { return devices_of_stages_; }
  /// A number that is equal for transfers between stages that take the same time. Kinds are
  /// numbered in the order in which they are first asked for, so that layouts whose transfers
  /// differ in the same places have the same kinds.
  std::int32_t transfer_kind(std::int32_t from, std::int32_t to);
  /// Whether copies of parameters from the host run beside gathers, because the two use different
  /// links. Where they share a link, a gather counts as long as its copy and itself together.
  bool copies_ahead() const { return copies_ahead_; }
  /// block -> bytes of one of its units.
  const std::array<BlockBytes, kBlocks>& bytes() const { return bytes_; }
  /// The first block with the same parameters as this one: itself, or one that differs only in its
  /// recomputation.
  std::size_t first_like(std::size_t block) const { return first_like_[block]; }
  /// Time in which the slowest host of that set launches a kernel.
  Seconds launching(std::int32_t devices) const {
    return places_.launching(devices, strategy_.host_time());
  }
  /// Passes on devices of that set.
  /// \return kInfeasible where devices that communicate have no route, as in all functions below.
  Result<const ModelTimes*> passes(std::int32_t devices);
  /// For other blocks on this layout's mesh, on devices of that set: the kinds of the groups along
  /// these sets of axes (CostCache::group_kinds), and the times of works.
  std::vector<std::int32_t> group_kinds(const std::vector<std::vector<Axis>>& axes,
                                        std::int32_t devices) const;
  Result<WorkTimes> work_times(const Works& works, std::int32_t devices) const;

  /// Durations of an action, once they were asked for.
  struct KnownTimes {
    TimedAction action{};
    std::optional<Seconds> time{};
    std::optional<LeastTime> least{};
  };

  /// One kind of stage of the layout.
  class Stage {
   public:
    Bytes resident() const { return resident_; }  ///< Memory held for the whole step.
    Bytes memory() const { return memory_; }      ///< Memory for tensors on the smallest device.
    Bytes at_step() const { return at_step_; }    ///< Memory of what the optimizer's step fetches.

   private:
    friend class StrategyLayout;
    StageHolds holds_;
    Bytes resident_;
    Bytes memory_;
    Bytes at_step_;
    std::vector<plan::ParameterGroup> groups_;
    std::vector<KnownTimes> known_{};
    std::optional<TimeRange> optimizer_{};  // the optimizer's kernels alone
  };
  /// \param holds  what the stage holds; `units` by block. `strategy` has this layout, and its
  ///     stage `first` holds this.
  Stage& stage(StageHolds holds, const Strategy& strategy, std::int64_t first);

  /// Memory of the first stage: what it holds for the whole step, and the memory for tensors on its
  /// smallest device. Needs no plan.
  struct Room {
    Bytes resident;
    Bytes memory;
  };
  Room first_room(const Strategy& strategy);

  /// The duration of an action that is no pass. `stage`: the stage of the action's class; null: it
  /// has none.
  Result<Seconds> time_of(const TimedAction& action, Stage* stage);
  /// stage -> least time of the transfers from the first stage to it and back.
  Result<const std::vector<Seconds>*> least_round_trips();
  /// The least time of the communication on the data stream of an action on a bucket.
  Result<LeastTime> least_of(const TimedAction& action, Stage* stage);
  /// The optimizer's kernels, without its communication.
  const TimeRange& optimizer_kernels(Stage& stage);

 private:
  using ParameterGroups = std::vector<plan::ParameterGroup>;
  struct Transfer {
    std::int32_t kind = 0;                       // a CostCache::transfer_kind
    CostCache::ConcurrentKinds concurrent = {};  // of all transfers of the kind
  };

  Bytes memory_of(std::int32_t devices, const Strategy& strategy) const;
  void find_like_blocks();
  bool gathers_use_host_links();
  KnownTimes& known_of(const TimedAction& action, Stage* stage);
  // What an action works on, with the sizes of this layout.
  lower::Subject subject_of(const TimedAction& action, const Stage* stage);
  plan::Bucket bucket_of(const TimedAction& action, const Stage* stage);
  plan::GradientCopies copies_of(const TimedAction& action, const Stage* stage);
  lower::Subject step_of(const Stage& stage) const;
  Result<Seconds> computed_time(const TimedAction& action, const Stage* stage);
  Result<Seconds> time_of(const program::Communication& what, const TimedAction& action);
  Bytes bytes_sent();
  void tell_stages_apart();
  std::int32_t stage_with(std::int32_t devices) const;

  Strategy strategy_;
  const Model& model_;
  SplitBlocks& split_;
  RankDevices& places_;
  CostCache& times_;
  Seconds launch_;
  std::vector<MeshAxis> mesh_;
  StateSharding states_;
  lower::ActionBlocks actions_;
  std::vector<lower::Boundary> boundaries_;  // filled when first asked for
  std::vector<std::int32_t> devices_of_stages_;
  bool stages_differ_ = false;  // in the groups that they communicate over
  bool copies_ahead_ = false;
  std::array<BlockBytes, kBlocks> bytes_;
  std::array<std::size_t, kBlocks> first_like_{};     // see first_like()
  std::map<std::int32_t, const ModelTimes*> passes_;  // set of device kinds -> passes
  std::vector<Transfer> transfers_;                   // index: kind
  std::vector<Seconds> least_round_trips_;            // filled when first asked for
  Kinds kinds_;                                       // of the devices of all stages
  std::deque<Stage> stages_;
  std::vector<KnownTimes> known_;  // of actions without a stage
};

/// The bytes that passes through the block keep, hold and work with.
BlockBytes bytes_of_passes(const lower::LoweredBlock& block);

/// Time of the passes of an action; no less than the host needs to launch them.
Seconds pass_time_of(const TimedAction& action, const BlockTimes& times, const Framework& framework,
                     Seconds launch);

}  // namespace foreshard::search
