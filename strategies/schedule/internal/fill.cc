// Adds weight gradients to a pipeline schedule by a greedy simulation of all stages, slot by slot.
// The schedules whose backward passes run in two parts use it (zero_bubble_patterns.cc,
// zero_bubble_automatic.cc).
#include "strategies/schedule/internal/fill.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>

#include "base/check.h"

#include "strategies/schedule/walk.h"

namespace foreshard::schedule {
namespace {

// One run of the simulation.
class Filler {
 public:
  Filler(const Table& table, const PipelineShape& shape, StagePlacement placement,
         std::int32_t in_flight_limit)
      : table_(table),
        progress_(shape, placement),
        in_flight_limit_(in_flight_limit),
        stages_(table.size()) {}

  Table run() && {
    for (std::optional<Candidate> slot = earliest(); slot; slot = earliest()) carry_out(*slot);
    Table filled;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      FORESHARD_CHECK(stages_[s].next_in_table == table_[s].size() && stages_[s].pending.empty());
      filled.push_back(std::move(stages_[s].slots));
    }
    return filled;
  }

 private:
  // What a stage has done so far. Times are in the unit of PipelineShape::times.
  struct StageState {
    std::vector<Slot> slots;        // all that have run, weight gradients included
    std::size_t next_in_table = 0;  // index of the next slot in the stage's row of the table
    std::deque<Slot> pending;       // weight gradients whose input gradients are done
    std::int32_t in_flight = 0;     // forward passes that have run, less weight gradients
    double last_end = 0;            // end of the last slot
    double idle = 0;                // sum of the gaps between its slots
  };
  // A slot that a stage could run next.
  struct Candidate {
    double begin = 0;
    bool is_weight = false;
    std::size_t stage = 0;
    Slot slot{};
    // The earliest slot comes first. If slots begin at the same time, weight gradients come last,
    // since no other stage waits for them.
    auto order() const { return std::tuple(begin, is_weight, stage); }
  };

  // The slot that a stage runs next: its next slot of the table or its oldest pending weight
  // gradient; empty if it can run neither yet. A weight gradient goes first if it ends before the
  // slot of the table can begin, or if waiting would make this stage the one that has waited
  // longest. `longest` is the longest idle time of any stage so far.
  std::optional<Candidate> choice(std::size_t index, double longest) const {
    const StageState& stage = stages_[index];
    std::optional<Candidate> from_table;
    bool must_finish_one = false;  // A forward pass is next, but the limit is reached.
    if (stage.next_in_table < table_[index].size()) {
      const Slot& slot = table_[index][stage.next_in_table];
      must_finish_one =
          slot.direction == Direction::kForward && stage.in_flight >= in_flight_limit_;
      const auto ready = progress_.ready(static_cast<std::int32_t>(index), slot);
      if (ready) from_table = Candidate{std::max(*ready, stage.last_end), false, index, slot};
    }
    if (stage.pending.empty()) return from_table;
    const Candidate weight{stage.last_end, true, index, stage.pending.front()};
    if (!from_table || must_finish_one) return weight;
    const double gap = from_table->begin - stage.last_end;
    const bool fits = gap >= progress_.duration(weight.slot);
    return fits || (gap > 0 && stage.idle + gap > longest) ? weight : from_table;
  }

  // The earliest slot that any stage runs next; empty when all is done.
  std::optional<Candidate> earliest() const {
    const double longest = std::ranges::max_element(stages_, {}, &StageState::idle)->idle;
    std::optional<Candidate> first;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto one = choice(s, longest);
      if (one && (!first || one->order() < first->order())) first = one;
    }
    return first;
  }

  // Runs the slot on its stage. Input gradients make the weight gradient of their micro-batch
  // pending.
  void carry_out(const Candidate& chosen) {
    StageState& stage = stages_[chosen.stage];
    if (!stage.slots.empty()) stage.idle += chosen.begin - stage.last_end;
    stage.last_end = chosen.begin + progress_.duration(chosen.slot);
    progress_.finish(static_cast<std::int32_t>(chosen.stage), chosen.slot, stage.last_end);
    stage.slots.push_back(chosen.slot);
    if (chosen.is_weight) {
      stage.pending.pop_front();
      --stage.in_flight;
      return;
    }
    ++stage.next_in_table;
    if (chosen.slot.direction == Direction::kForward) {
      ++stage.in_flight;
    } else {
      Slot weight = chosen.slot;
      weight.part = PassPart::kWeight;
      stage.pending.push_back(weight);
    }
  }

  const Table& table_;
  Progress progress_;
  std::int32_t in_flight_limit_;
  std::vector<StageState> stages_;
};

}  // namespace

Table with_weight_gradients(const Table& table, const PipelineShape& shape,
                            StagePlacement placement, std::int32_t in_flight_limit) {
  return Filler(table, shape, placement, in_flight_limit).run();
}

}  // namespace foreshard::schedule
