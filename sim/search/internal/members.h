/// \file
/// Members of a family that recompute the same layers, each in its own way (RecomputedBlocks). They
/// share a layout, the forms of their plans and the blocks of their units, so that the time and
/// memory of everything but those layers is computed once for all of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/search/estimate.h"
#include "sim/search/internal/bound.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/layout.h"
#include "sim/search/internal/passes.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

// Memory and time of blocks under each of several choices of recomputation, for all strategies
// that split a layer in the same way, whatever their replicas, stages and order of ranks.

/// Lower bounds of the bytes of blocks that may recompute.
class ByteLowerBounds {
 public:
  ByteLowerBounds(std::size_t blocks, std::vector<BlockBytes> all)
      : blocks_(blocks), all_(std::move(all)) {}

  /// One per block of RecomputedBlocks: the lesser of its bytes with that recomputation and without
  /// any.
  std::span<const BlockBytes> of_choice(std::size_t choice) const {
    return std::span(all_).subspan(choice * blocks_, blocks_);
  }
  /// One per block of RecomputedBlocks: the least over all choices of recomputation, and none.
  std::span<const BlockBytes> of_any() const { return std::span(all_).last(blocks_); }

 private:
  std::size_t blocks_;
  std::vector<BlockBytes> all_;  // way by way, then the least of any
};

class RecomputedBlocks {
 public:
  /// \param strategy  recomputes all layers, and has the split of a layer that is wanted.
  /// \return the errors of lower::lower_blocks.
  static Result<RecomputedBlocks> of(const Model& model, const Strategy& strategy,
                                     std::span<const Recomputation> choices);

  std::size_t blocks() const { return variants_.size() + predictions_; }
  std::size_t choices() const { return choices_; }
  /// block of the strategy's plan -> block of this; -1: it recomputes nothing. `variants`: the
  /// number that Forms::variants_of gives for the strategy.
  const std::array<std::int32_t, kBlocks>& indices(const Model& model, const Strategy& strategy,
                                                   std::int64_t variants);
  /// One per way: what passes through the block keep, hold and work with.
  std::span<const BlockBytes> bytes(std::size_t block) const {
    return std::span(bytes_).subspan(block * choices_, choices_);
  }
  /// \param base  a strategy without recomputation.
  /// \param bytes  one per block of the base's plan.
  ByteLowerBounds least_bytes(const Model& model, const Strategy& base,
                              const std::array<BlockBytes, kBlocks>& bytes) const;
  /// Passes of all blocks with each recomputation, block by block, on devices of that set.
  /// \return kInfeasible where devices that communicate have no route.
  Result<std::span<const PassTimes>> passes(const StrategyLayout& layout, std::int32_t devices);

 private:
  struct Tasks {
    PassTasks forward;
    PassTasks backward;
    PassTasks input;
    PassTasks weight;
    bool is_split = false;
  };

  std::size_t choices_ = 0;
  std::vector<LayerVariant> variants_;
  std::size_t predictions_ = 0;
  std::vector<MeshAxis> mesh_;
  Works works_;
  std::vector<std::vector<Axis>> axes_;  // sets of axes along which tasks communicate
  std::vector<Tasks> tasks_;
  std::vector<BlockBytes> bytes_;
  std::map<std::int64_t, std::array<std::int32_t, kBlocks>> indices_;
  // Key: the kinds of the groups that communicate, and the set of device kinds.
  std::map<std::pair<std::vector<std::int32_t>, std::int32_t>, std::vector<PassTimes>> times_;
};

/// The part of `memory` that is needed; infinite where there is no memory.
inline double part_of(Bytes needed, Bytes memory) {
  return memory > Bytes{} ? needed / memory : std::numeric_limits<double>::infinity();
}

/// The memory of the stage with the least room.
/// \param live_of  function of a class: what is live at once on its stages.
template <class LiveOf>
Estimate memory_of(const std::vector<StrategyLayout::Stage*>& stages, const FilledForms& forms,
                   LiveOf live_of) {
  Estimate estimate;
  Bytes room = Bytes::from_base(std::numeric_limits<double>::infinity());
  for (std::size_t c = 0; c < stages.size(); ++c) {
    const StrategyLayout::Stage& stage = *stages[c];
    const LiveBytes live = live_of(c);
    const auto needed = [&](Bytes bytes) {
      return std::max(bytes, stage.at_step()) + stage.resident();
    };
    estimate.least = std::max(estimate.least, part_of(needed(live.least), stage.memory()));
    if (stage.memory() - needed(live.most) >= room) continue;
    estimate.peak = needed(live.most);
    estimate.memory = stage.memory();
    estimate.stage = forms.classes()[c].first;
    room = estimate.memory - estimate.peak;
  }
  return estimate;
}

class FamilyMembers {
 public:
  /// What all members share; all must outlive it.
  struct Shared {
    const Strategy& strategy;  ///< A member, or another strategy of the family.
    FilledForms& forms;
    StrategyLayout& layout;
    std::vector<StrategyLayout::Stage*> stages;  ///< One per class.
    RecomputedBlocks* recomputed = nullptr;      ///< Null: no recomputation.
    /// RecomputedBlocks::indices: block of the plan -> block of `recomputed`; -1: none.
    std::array<std::int32_t, kBlocks> index_of_block{};
  };
  explicit FamilyMembers(const Shared& shared);

  /// The memory of the member with that recomputation; Estimate::least holds however late hosts
  /// are.
  Estimate memory(std::size_t choice) const;
  /// The same, but Estimate::least also counts what no host is late for. Call it after bound() of
  /// the same member.
  Estimate memory_as_launched(std::size_t choice) const;
  /// A lower bound of the memory of every strategy that recomputes only layers of these, if its
  /// blocks need at least `bytes`.
  /// \param bytes  as in ByteLowerBounds.
  Estimate least_memory(std::span<const BlockBytes> bytes) const;
  /// block of the plan -> bytes of one of its units.
  const std::array<BlockBytes, kBlocks>& bytes_of_plan() const { return shared_.layout.bytes(); }

  /// Must be called before bound() and step().
  /// \return kInfeasible where devices that communicate have no route.
  Status find_times();
  /// To be called in this order for one member: its lower bound; its step as in Estimator::rank;
  /// and its lower bound by the paths that are known then.
  Seconds bound(std::size_t choice);
  Seconds step();
  Seconds bound_of_paths() const;

 private:
  // Time of a launch by the slowest host of a pass's devices.
  Seconds launching(const TimedAction& action) const;
  // A LiveSet split in two: the bytes of blocks that do not recompute, and the numbers of units of
  // blocks that do.
  struct SplitLiveSet {
    LiveBytes fixed{};
    bool depends = false;  // depends_on_others()
    BlockCounts kept{};
    BlockCounts held{};
    BlockPass pass{};
    BlockPass before{};
    bool has_tail = false;
  };
  struct TimedForm {
    FilledForm* form;
    std::span<const TimedAction> timed_actions;
    std::vector<double> durations{};
    std::vector<std::size_t> varying{};  // actions whose time differs between members
    std::size_t paths = 0;               // paths in `fixed` and `counts`
    std::vector<double> fixed{};         // one per path: time of all other actions
    std::vector<double> counts{};        // path by path: counts of the varying actions
  };

  bool is_recomputed(std::int32_t block) const {
    return block >= 0 && shared_.index_of_block[static_cast<std::size_t>(block)] >= 0;
  }
  void add_live_sets();
  void add_paths(TimedForm& form);
  template <class BytesOf>
  LiveBytes live_of(const SplitLiveSet& live_set, BytesOf bytes_of) const;
  template <class IsCertain>
  Estimate memory(std::size_t choice, IsCertain is_certain) const;
  const BlockBytes& bytes(std::int32_t block, std::size_t choice) const {
    const std::int32_t index = shared_.index_of_block[static_cast<std::size_t>(block)];
    return bytes_[static_cast<std::size_t>(index)][choice];
  }

  Shared shared_;
  Bound bound_;
  std::vector<std::int32_t> recomputed_;            // blocks of the plan that recompute
  std::vector<std::span<const BlockBytes>> bytes_;  // block of RecomputedBlocks -> way -> bytes
  std::vector<std::vector<std::vector<SplitLiveSet>>> live_sets_;  // class -> form -> live sets
  std::vector<std::span<const PassTimes>> choices_;  // class -> RecomputedBlocks::passes
  std::vector<BlockTimes> passes_;  // class -> passes with the recomputation at hand
  std::vector<Seconds> optimizer_;  // class -> the optimizer's kernels
  std::optional<DataStream> data_;
  const std::vector<Seconds>* round_trips_ = nullptr;  // see StrategyLayout::least_round_trips
  std::vector<TimedForm> forms_;
};

}  // namespace foreshard::search
