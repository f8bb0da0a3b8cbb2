#include "strategies/schedule/internal/fill.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>

#include "base/check.h"

#include "strategies/schedule/walk.h"

namespace foreshard::schedule {
namespace {

class Filler {
 public:
  Filler(const Table& table, const PipelineShape& shape, StagePlacement placement,
         std::int32_t most)
      : table_(table), progress_(shape, placement), most_(most), stages_(table.size()) {}

  Table run() && {
    for (std::optional<NextSlot> next = earliest(); next; next = earliest()) carry_out(*next);
    Table filled;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      FORESHARD_CHECK(stages_[s].next == table_[s].size() && stages_[s].pending.empty());
      filled.push_back(std::move(stages_[s].slots));
    }
    return filled;
  }

 private:
  struct StageState {
    std::vector<Slot> slots;
    std::size_t next = 0;      // index into its table
    std::deque<Slot> pending;  // weight gradients to come
    std::int32_t in_flight = 0;
    double free = 0;    // end of its last slot
    double waited = 0;  // wait since its first slot
  };
  struct NextSlot {
    double begin = 0;
    bool is_weight = false;
    std::size_t stage = 0;
    Slot slot{};
    // Earliest first; at one instant weight gradients come last, since no other stage waits for
    // them.
    auto order() const { return std::tuple(begin, is_weight, stage); }
  };

  // `longest`: the longest total wait of any stage so far.
  std::optional<NextSlot> choice(std::size_t index, double longest) const {
    const StageState& stage = stages_[index];
    std::optional<NextSlot> own;
    bool is_full = false;
    if (stage.next < table_[index].size()) {
      const Slot& slot = table_[index][stage.next];
      is_full = slot.direction == Direction::kForward && stage.in_flight >= most_;
      const auto ready = progress_.ready(static_cast<std::int32_t>(index), slot);
      if (ready) own = NextSlot{std::max(*ready, stage.free), false, index, slot};
    }
    if (stage.pending.empty()) return own;
    const NextSlot weight{stage.free, true, index, stage.pending.front()};
    if (!own || is_full) return weight;
    const double gap = own->begin - stage.free;
    const bool fits = gap >= progress_.duration(weight.slot);
    return fits || (gap > 0 && stage.waited + gap > longest) ? weight : own;
  }

  std::optional<NextSlot> earliest() const {
    const double longest = std::ranges::max_element(stages_, {}, &StageState::waited)->waited;
    std::optional<NextSlot> first;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto one = choice(s, longest);
      if (one && (!first || one->order() < first->order())) first = one;
    }
    return first;
  }

  void carry_out(const NextSlot& what) {
    StageState& stage = stages_[what.stage];
    if (!stage.slots.empty()) stage.waited += what.begin - stage.free;
    stage.free = what.begin + progress_.duration(what.slot);
    progress_.finish(static_cast<std::int32_t>(what.stage), what.slot, stage.free);
    stage.slots.push_back(what.slot);
    if (what.is_weight) {
      stage.pending.pop_front();
      --stage.in_flight;
      return;
    }
    ++stage.next;
    if (what.slot.direction == Direction::kForward) {
      ++stage.in_flight;
    } else {
      Slot weight = what.slot;
      weight.part = PassPart::kWeight;
      stage.pending.push_back(weight);
    }
  }

  const Table& table_;
  Progress progress_;
  std::int32_t most_;
  std::vector<StageState> stages_;
};

}  // namespace

Table with_weight_gradients(const Table& table, const PipelineShape& shape,
                            StagePlacement placement, std::int32_t most) {
  return Filler(table, shape, placement, most).run();
}

}  // namespace foreshard::schedule
