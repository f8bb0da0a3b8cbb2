/// \file
/// What the parts of a step take, for strategies that lay a model out alike: the same split of each
/// layer, as many replicas and stages, states cut alike. Strategies that differ in the order of
/// their passes, in how many layers a stage has, or in the number of micro-batches, share a layout;
/// each of its times is found once.
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
#include "sim/search/internal/places.h"
#include "sim/search/internal/shape.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {

/// Blocks of one way to split a layer, and what passes through them take.
struct Split {
  lower::LoweredModel blocks;  ///< Its mesh is that of the layout that was asked last.
  /// By the kinds of the groups that communicate (Times::group_kinds), and of device (Places::set).
  std::map<std::pair<std::vector<std::int32_t>, std::int32_t>, ModelTimes> times{};
};

/// What a stage holds, as far as its state in memory and the end of its step depend on it.
struct StageHolds {
  BlockCounts units{};       ///< Blocks of like parameters as the first of them.
  std::int32_t devices = 0;  ///< Places::set.
  /// Whether it sends gradients to another chunk, and has several micro-batches.
  bool sends_gradients = false;
  bool repeats = false;
  bool operator==(const StageHolds&) const = default;
};

BlockTimes by_block(const ModelTimes& times);

class Layout {
 public:
  /// `split` has been lowered for the strategy's way to split a layer. All but `strategy` must
  /// outlive the layout.
  Layout(const Strategy& strategy, const Model& model, Split& split, Places& places, Times& times);

  /// The blocks, on the mesh of this layout.
  lower::LoweredModel& blocks();
  const std::vector<MeshAxis>& mesh() const { return mesh_; }
  const StateSharding& states() const { return states_; }
  /// Of each stage, as what Places::set takes: equal where stages have the same kinds of device,
  /// and what their blocks communicate over is alike.
  const std::vector<std::int32_t>& devices_of_stages() const { return devices_of_stages_; }
  /// Of transfers between stages that take the same time: numbered in the order in which they were
  /// first asked for, so that layouts whose transfers differ in the same places have like kinds.
  std::int32_t transfer_kind(std::int32_t from, std::int32_t to);
  /// Whether copies of parameters from the host run beside gathers, because the two use different
  /// links. Where they share a link, a gather counts as long as its copy and itself together.
  bool copies_ahead() const { return copies_ahead_; }
  /// Of a unit of each block.
  const std::array<BlockBytes, kBlocks>& bytes() const { return bytes_; }
  /// The first layer's block that has the same parameters as this one: itself, or one that is
  /// computed again otherwise.
  std::size_t first_like(std::size_t block) const { return first_like_[block]; }
  /// What the slowest host of that set takes to launch a kernel.
  Seconds launching(std::int32_t devices) const {
    return places_.launching(devices, strategy_.host_time());
  }
  /// Passes on devices of that set.
  /// \return kInfeasible where devices that communicate have no route; so do all below.
  Result<const ModelTimes*> passes(std::int32_t devices);
  /// Of blocks that lie as those of the layout do: the kinds of the groups along those sets of axes
  /// (Times::group_kinds), and what works take, on devices of that set.
  std::vector<std::int32_t> group_kinds(const std::vector<std::vector<Axis>>& axes,
                                        std::int32_t devices) const;
  Result<WorkTimes> work_times(const Works& works, std::int32_t devices) const;

  /// One kind of stage of the layout. `strategy` has the layout and a stage that holds this.
  class Stage {
   public:
    Bytes resident() const { return resident_; }  ///< Of the whole step, without what is passing.
    Bytes memory() const { return memory_; }      ///< Of the smallest device, for tensors.
    Bytes at_step() const { return at_step_; }    ///< What the optimizer's step fetches.

   private:
    friend class Layout;
    StageHolds holds_;
    Bytes resident_;
    Bytes memory_;
    Bytes at_step_;
    std::vector<plan::ParameterGroup> groups_;
    std::vector<std::pair<std::array<std::int32_t, 3>, Seconds>> times_{};
    std::optional<Spread> optimizer_{};  // its kernels alone
  };
  /// \param holds  its units by block.
  Stage& stage(StageHolds holds, const Strategy& strategy, std::int64_t first);

  /// Of the first stage: what it holds for the whole step, and what its smallest device has for
  /// tensors. Needs no plan.
  struct Room {
    Bytes resident;
    Bytes memory;
  };
  Room first_room(const Strategy& strategy);

  /// The duration of all symbols but passes. `stage` is that of the symbol's class, if it has one.
  Result<Seconds> time_of(const Symbol& symbol, Stage* stage);
  /// Of each stage, what transfers take at least from the first stage to it and back.
  Result<const std::vector<Seconds>*> least_ways();
  /// Of what gathers parameters or reduces gradients: its communication at least.
  Result<LeastTime> least_of(const Symbol& symbol, const Stage* stage);
  /// The optimizer's kernels, without what they exchange.
  const Spread& optimizer_kernels(Stage& stage);

 private:
  using Groups = std::vector<plan::ParameterGroup>;
  struct Transfer {
    std::int32_t kind = 0;      // as Times::transfer_kind
    Times::Crowds crowds = {};  // of all stages whose transfers are of the kind
  };

  Bytes memory_of(std::int32_t devices, const Strategy& strategy) const;
  void find_like_blocks();
  bool gathers_use_host_links();
  Result<Seconds> found(const Symbol& symbol, Stage* stage);
  program::Block conversion(std::int64_t count, DType dtype, const Attribute& from,
                            const Attribute& to) const;
  program::Block reduction(const Symbol& symbol, const Stage* stage);
  // Gradients of those groups that are reduced over the same axes.
  struct Reduced {
    std::int64_t count = 0;
    std::vector<Axis> over{};
  };
  static Reduced reduced(const Groups& groups, const Groups& of, std::int32_t place);
  Reduced reduced(const Symbol& symbol, const Stage* stage);
  // With the host.
  Result<Seconds> copy(program::CollectiveKind kind, Bytes bytes);
  Result<Seconds> gradient_copy(std::int64_t count, const std::vector<Axis>& over);
  std::int64_t reduced_elements(std::int64_t count, const std::vector<Axis>& over) const;
  std::int64_t updated_elements(const Stage& stage) const;
  program::Block gathering(const plan::ParameterGroup& group) const;
  Result<Seconds> gathering(const Symbol& symbol);
  Result<Seconds> shards_from_host(const Symbol& symbol);
  Result<Seconds> gathering_each(const lower::LoweredBlock& block, const std::vector<Axis>& over);
  Bytes bytes_sent();
  Result<Seconds> transfer_time(std::int32_t kind);
  Result<Seconds> copies_time(const Groups& groups, std::int32_t place);
  Result<Seconds> norm_time();
  Result<Seconds> update_time(Stage& stage);
  void tell_stages_apart();
  std::int32_t stage_with(std::int32_t devices) const;
  Seconds slowest(const std::vector<Pass>& passes);
  Seconds cast_time(std::int64_t shard);
  Groups own_groups(std::int32_t block);
  Groups cut(const Groups& groups) const;
  // The `place`-th of them; what the optimizer has updated of it.
  plan::ParameterGroup updated(const Groups& groups, std::int32_t place) const;
  std::int64_t shard_of(std::int64_t count, const plan::ParameterGroup& group) const {
    return plan::shard_of(count, group, mesh_);
  }
  DType gradient_dtype() const;

  Strategy strategy_;
  const Model& model_;
  Split& split_;
  Places& places_;
  Times& times_;
  Seconds launch_;
  std::vector<MeshAxis> mesh_;
  StateSharding states_;
  std::vector<std::int32_t> devices_of_stages_;
  bool stages_differ_ = false;  // in what they communicate over
  bool copies_ahead_ = false;
  std::array<BlockBytes, kBlocks> bytes_;
  std::array<std::size_t, kBlocks> first_like_{};     // the first block with the same parameters
  std::map<std::int32_t, const ModelTimes*> passes_;  // by set of devices
  std::vector<Transfer> transfers_;                   // by kind
  std::vector<Seconds> least_ways_;                   // once they are asked for
  std::deque<Stage> stages_;
  std::vector<std::pair<std::array<std::int32_t, 4>, Seconds>> known_;  // of symbols of no stage
};

/// What passes through the block keep, hold and work with.
BlockBytes bytes_of_passes(const lower::LoweredBlock& block);

/// What the passes of a symbol take, a pass no less than the host needs to launch it.
Seconds pass_time_of(const Symbol& symbol, const BlockTimes& times, const Framework& framework,
                     Seconds launch);

}  // namespace foreshard::search
