/// \file
/// Strategies that compute the same layers again, each in its own way (Again): they share a layout,
/// the forms of their plans and the blocks of their units. What a step takes and needs beside those
/// layers is found once for all.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

#include "sim/search/estimate.h"
#include "sim/search/internal/again.h"
#include "sim/search/internal/bound.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/layout.h"

namespace foreshard::search {

/// The part of `memory` that is needed; of none, all that is needed is too much.
inline double part_of(Bytes needed, Bytes memory) {
  return memory > Bytes{} ? needed / memory : std::numeric_limits<double>::infinity();
}

/// The memory of the stage with the least room.
/// \param live_of  what is live at once on a stage of that class.
template <class LiveOf>
Estimate memory_of(const std::vector<Layout::Stage*>& stages, const FilledForms& forms,
                   LiveOf live_of) {
  Estimate estimate;
  Bytes room = Bytes::from_base(std::numeric_limits<double>::infinity());
  for (std::size_t c = 0; c < stages.size(); ++c) {
    const Layout::Stage& stage = *stages[c];
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

class Members {
 public:
  /// What all of them share; all must outlive it.
  struct Shared {
    const Strategy& strategy;  ///< One of them, or one that computes others again.
    FilledForms& forms;
    Layout& layout;
    std::vector<Layout::Stage*> stages;                  ///< By class.
    Again* again = nullptr;                              ///< Null: nothing is computed again.
    std::array<std::int32_t, kBlocks> index_of_block{};  ///< Again::index_of.
  };
  explicit Members(const Shared& shared);

  /// The memory of one of them; Estimate::least holds however late hosts are.
  Estimate memory(std::size_t way) const;
  /// The same; Estimate::least also counts what no host is late for. To be called after bound() of
  /// the same one.
  Estimate memory_as_launched(std::size_t way) const;
  /// Less than the memory of each strategy that computes again no layers but these, if its blocks
  /// need no less than those.
  /// \param bytes  as LeastBytes.
  Estimate least_memory(std::span<const BlockBytes> bytes) const;
  /// Of a unit of each block of the plan.
  const std::array<BlockBytes, kBlocks>& bytes_of_plan() const { return shared_.layout.bytes(); }

  /// Before bound() and step().
  /// \return kInfeasible where devices that communicate have no route.
  Status find_times();
  /// The lower bound of one of them; of the same one its step as Estimator::rank has it; and the
  /// bound by the paths that are known then. To be asked for in this order.
  Seconds bound(std::size_t way);
  Seconds step();
  Seconds bound_of_paths() const;

 private:
  // On the devices of a pass.
  Seconds launching(const Symbol& symbol) const;
  // A load: the bytes of blocks that are not computed again, and how many units there are of the
  // others.
  struct AgainLoad {
    LiveBytes fixed{};
    bool rests = false;  // rests_on_others()
    BlockCounts kept{};
    BlockCounts held{};
    PassOf pass{};
    PassOf before{};
    bool trails = false;
  };
  struct TimedForm {
    FilledForm* form;
    std::span<const Symbol> symbols;
    std::vector<double> durations{};
    std::vector<std::size_t> varying{};  // symbols that are not the same for all
    std::size_t paths = 0;               // that are known below
    std::vector<double> fixed{};         // of each path
    std::vector<double> counts{};        // of each path, of each of the varying
  };

  bool is_again(std::int32_t block) const {
    return block >= 0 && shared_.index_of_block[static_cast<std::size_t>(block)] >= 0;
  }
  void add_loads();
  void add_paths(TimedForm& form);
  template <class BytesOf>
  LiveBytes live_of(const AgainLoad& load, BytesOf bytes_of) const;
  template <class IsCertain>
  Estimate memory(std::size_t way, IsCertain is_certain) const;
  const BlockBytes& bytes(std::int32_t block, std::size_t way) const {
    const std::int32_t index = shared_.index_of_block[static_cast<std::size_t>(block)];
    return bytes_[static_cast<std::size_t>(index)][way];
  }

  Shared shared_;
  Bound bound_;
  std::vector<std::int32_t> again_;                         // blocks of the plan
  std::vector<std::span<const BlockBytes>> bytes_;          // by Again's block
  std::vector<std::vector<std::vector<AgainLoad>>> loads_;  // by class and form
  std::vector<std::span<const PassTimes>> ways_;            // by class: Again::passes
  std::vector<BlockTimes> passes_;                          // by class, of the way at hand
  std::vector<Seconds> optimizer_;                          // by class
  std::optional<DataStream> data_;
  const std::vector<Seconds>* ways_there_ = nullptr;  // Layout::least_ways
  std::vector<TimedForm> forms_;
};

}  // namespace foreshard::search
