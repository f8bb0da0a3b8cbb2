#include "strategies/schedule/walk.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace foreshard::schedule {

Progress::Progress(const PipelineShape& shape, StagePlacement placement)
    : shape_(shape),
      placement_(placement),
      forward_(index(std::int64_t{shape.stages} * shape.chunks, 0), -1),
      backward_(forward_) {}

std::size_t Progress::index(std::int64_t piece, std::int32_t micro_batch) const {
  return static_cast<std::size_t>(piece * shape_.micro_batches + micro_batch);
}

std::optional<double> Progress::ready(std::int32_t stage, const Slot& slot) const {
  const std::int64_t piece = piece_of(placement_, shape_.stages, stage, slot.chunk);
  const std::int64_t last = std::int64_t{shape_.stages} * shape_.chunks - 1;
  double when = 0;
  bool is_there = true;
  const auto read = [&](const std::vector<double>& of, std::int64_t other) {
    const double end = of[index(other, slot.micro_batch)];
    is_there = is_there && end >= 0;
    // The V turns within its last stage.
    const bool is_own = other == piece || (placement_ == StagePlacement::kV &&
                                           piece + other == 2 * shape_.stages - 1);
    when = std::max(when, end + (is_own ? 0 : shape_.times.transfer));
  };
  if (slot.direction == Direction::kForward) {
    if (piece > 0) read(forward_, piece - 1);
  } else if (slot.part == PassPart::kWeight) {
    read(backward_, piece);
  } else {
    read(forward_, piece);
    if (piece < last) read(backward_, piece + 1);
  }
  return is_there ? std::optional(when) : std::nullopt;
}

double Progress::duration(const Slot& slot) const {
  const PassTimes& times = shape_.times;
  if (slot.direction == Direction::kForward) return times.forward;
  return (slot.part == PassPart::kWeight ? 0 : times.input) +
         (slot.part == PassPart::kInput ? 0 : times.weight);
}

void Progress::finish(std::int32_t stage, const Slot& slot, double end) {
  if (slot.part == PassPart::kWeight) return;
  const std::int64_t piece = piece_of(placement_, shape_.stages, stage, slot.chunk);
  (slot.direction == Direction::kForward ? forward_ : backward_)[index(piece, slot.micro_batch)] =
      end;
}

namespace {

// An activation that piece `before` hands to piece `before` + 1, or its gradient on the way back.
struct PieceTransfer {
  Direction direction = Direction::kForward;
  std::int64_t before = 0;
  std::int32_t micro_batch = 0;
  auto operator<=>(const PieceTransfer&) const = default;
};

// The slot at `index`, and the slot that overlaps it, if any.
std::span<const Slot> together_at(const std::vector<Slot>& slots, std::size_t index) {
  const bool pair = index + 1 < slots.size() && slots[index + 1].beside;
  return std::span(slots).subspan(index, pair ? 2 : 1);
}

// Runs a table in zero time, with the transfers of each lane in order.
class DryRun {
 public:
  DryRun(const Table& table, const PipelineShape& shape, StagePlacement placement)
      : table_(table), shape_(shape), placement_(placement), stages_(table.size()) {
    for (std::size_t s = 0; s < table.size(); ++s) {
      for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) stage_of_[piece(s, chunk)] = s;
    }
    for (std::size_t s = 0; s < table.size(); ++s) {
      for (const Slot& slot : table[s]) {
        if (const auto in = reads(s, slot); in && is_transfer(*in))
          stages_[s].lanes[lane(*in, false)].push_back(*in);
        if (const auto out = makes(s, slot); out && is_transfer(*out))
          stages_[s].lanes[lane(*out, true)].push_back(*out);
      }
    }
  }

  std::optional<TableFault> fault() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) moved = run(s) || moved;
      for (std::size_t s = 0; s < stages_.size(); ++s) moved = send(s) || moved;
    }
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (stages_[s].next < table_[s].size()) return stuck(s);
    return std::nullopt;
  }

 private:
  // Lanes: receives and sends, forward and backward, on the way down and, in a V, back.
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kSends = 2;
  struct StageState {
    std::size_t next = 0;
    std::array<std::vector<PieceTransfer>, kLanes> lanes;
    std::array<std::size_t, kLanes> done{};
  };
  std::size_t lane(const PieceTransfer& handed, bool sends) const {
    const bool returns = placement_ == StagePlacement::kV && handed.before >= shape_.stages;
    return (handed.direction == Direction::kForward ? 0U : 1U) + (sends ? kSends : 0U) +
           (returns ? 4U : 0U);
  }

  std::int64_t piece(std::size_t stage, std::int32_t chunk) const {
    return piece_of(placement_, shape_.stages, static_cast<std::int64_t>(stage), chunk);
  }
  std::int64_t last_piece() const { return std::int64_t{shape_.stages} * shape_.chunks - 1; }

  // The input that the slot reads from another piece, and the output that it hands to another
  // (makes).
  std::optional<PieceTransfer> reads(std::size_t stage, const Slot& slot) const {
    const std::int64_t own = piece(stage, slot.chunk);
    const bool is_forward = slot.direction == Direction::kForward;
    if (slot.part == PassPart::kWeight || own == (is_forward ? 0 : last_piece()))
      return std::nullopt;
    return PieceTransfer{slot.direction, is_forward ? own - 1 : own, slot.micro_batch};
  }
  std::optional<PieceTransfer> makes(std::size_t stage, const Slot& slot) const {
    const std::int64_t own = piece(stage, slot.chunk);
    const bool is_forward = slot.direction == Direction::kForward;
    if (slot.part == PassPart::kWeight || own == (is_forward ? last_piece() : 0))
      return std::nullopt;
    return PieceTransfer{slot.direction, is_forward ? own : own - 1, slot.micro_batch};
  }
  std::size_t maker(const PieceTransfer& handed) const {
    return stage_of_.at(handed.before + (handed.direction == Direction::kForward ? 0 : 1));
  }
  std::size_t reader(const PieceTransfer& handed) const {
    return stage_of_.at(handed.before + (handed.direction == Direction::kForward ? 1 : 0));
  }
  bool is_transfer(const PieceTransfer& handed) const { return maker(handed) != reader(handed); }

  bool has_what_it_reads(std::size_t s, const Slot& slot) const {
    const auto in = reads(s, slot);
    return !in || (is_transfer(*in) ? received_ : made_).contains(*in);
  }

  // Runs slots of the stage as long as their inputs are there. Whether any ran.
  bool run(std::size_t s) {
    StageState& stage = stages_[s];
    const std::size_t before = stage.next;
    while (stage.next < table_[s].size()) {
      const auto together = together_at(table_[s], stage.next);
      if (!std::ranges::all_of(together,
                               [&](const Slot& slot) { return has_what_it_reads(s, slot); }))
        break;
      for (const Slot& slot : together)
        if (const auto out = makes(s, slot)) made_.insert(*out);
      stage.next += together.size();
    }
    return stage.next != before;
  }

  // Sends transfers of the stage as long as they have been made and the receiver awaits them next.
  // Whether any was sent.
  bool send(std::size_t s) {
    bool moved = false;
    for (std::size_t from = 0; from < kLanes; ++from) {
      if ((from & kSends) == 0) continue;
      for (std::size_t& next = stages_[s].done[from]; next < stages_[s].lanes[from].size();
           ++next) {
        const PieceTransfer& handed = stages_[s].lanes[from][next];
        StageState& other = stages_[reader(handed)];
        const std::size_t to = lane(handed, false);
        const std::size_t awaited = other.done[to];
        if (!made_.contains(handed) || awaited == other.lanes[to].size() ||
            other.lanes[to][awaited] != handed)
          break;
        received_.insert(handed);
        ++other.done[to];
        moved = true;
      }
    }
    return moved;
  }

  // The slot at which the stage waits.
  const Slot& next_of(std::size_t s) const {
    const auto together = together_at(table_[s], stages_[s].next);
    return has_what_it_reads(s, together.front()) ? together.back() : together.front();
  }

  // The fault of a waiting stage. Where the stage that it waits for waits at that very pass, that
  // stage's fault.
  TableFault stuck(std::size_t s) const {
    const Slot& slot = next_of(s);
    const PieceTransfer awaited = *reads(s, slot);
    const std::size_t from = maker(awaited);
    if (!made_.contains(awaited) && makes(from, next_of(from)) == awaited) return stuck(from);
    const auto text = [&](std::size_t stage, const Slot& of) {
      return to_text(of, shape_, placement_, static_cast<std::int32_t>(stage));
    };
    TableFault fault{.stage = static_cast<std::int32_t>(s)};
    if (made_.contains(awaited)) {
      fault.message =
          fmt::format("waits for ever at {}: what it reads is behind other transfers from stage {}",
                      text(s, slot), from);
      fault.help = "let both stages run the passes of one direction in the same order";
      return fault;
    }
    const auto& others = table_[from];
    const auto made = std::ranges::find_if(
        others, [&](const Slot& other) { return makes(from, other) == awaited; });
    const Slot& at = next_of(from);
    fault.message =
        fmt::format("waits for ever at {}: stage {} comes to {} behind {}, where it waits too",
                    text(s, slot), from, text(from, *made), text(from, at));
    fault.help =
        fmt::format("let stage {} run {} before {}", from, text(from, *made), text(from, at));
    return fault;
  }

  const Table& table_;
  const PipelineShape& shape_;
  StagePlacement placement_;
  std::map<std::int64_t, std::size_t> stage_of_;  // piece -> stage
  std::vector<StageState> stages_;
  std::set<PieceTransfer> made_;
  std::set<PieceTransfer> received_;
};

// Checks rules 1 and 2 of fault_in() (walk.h) on one stage: its chunks and micro-batches are those
// of the shape, and each runs forward once, then backward once.
class StageCheck {
 public:
  StageCheck(const std::vector<Slot>& slots, std::int32_t stage, const PipelineShape& shape,
             StagePlacement placement)
      : slots_(slots), stage_(stage), shape_(shape), placement_(placement) {}

  std::optional<TableFault> fault() {
    for (const Slot& slot : slots_) {
      if (slot.chunk < 0 || slot.chunk >= shape_.chunks || slot.micro_batch < 0 ||
          slot.micro_batch >= shape_.micro_batches)
        return of(fmt::format("{} is of no micro-batch of the {} that a step has", text(slot),
                              shape_.micro_batches),
                  fmt::format("use 0 to {}, or set global_batch to what the schedule is for",
                              shape_.micro_batches - 1));
      if (auto wrong = order(slot)) return wrong;
      if (auto wrong = pair(slot)) return wrong;
      before_ = &slot;
    }
    for (std::int32_t chunk = 0; chunk < shape_.chunks; ++chunk)
      for (std::int32_t m = 0; m < shape_.micro_batches; ++m)
        if (auto missing = left_out(chunk, m)) return missing;
    return std::nullopt;
  }

 private:
  using Key = std::tuple<std::int32_t, std::int32_t>;
  struct PassesSeen {
    bool forward = false;
    bool input = false;
    bool weight = false;
  };

  std::string text(const Slot& slot) const { return to_text(slot, shape_, placement_, stage_); }
  TableFault of(std::string message, std::string help) const {
    return {stage_, std::move(message), std::move(help)};
  }

  std::optional<TableFault> order(const Slot& slot) {
    PassesSeen& seen = seen_[{slot.chunk, slot.micro_batch}];
    const Slot forward{Direction::kForward, slot.chunk, slot.micro_batch};
    const Slot input{Direction::kBackward, slot.chunk, slot.micro_batch, PassPart::kInput};
    const bool is_forward = slot.direction == Direction::kForward;
    const bool again = is_forward                       ? seen.forward
                       : slot.part == PassPart::kWeight ? seen.weight
                                                        : seen.input;
    if (again) return of(text(slot) + " runs twice", "leave one of the two out");
    if (is_forward) {
      seen.forward = true;
    } else if (slot.part == PassPart::kWeight) {
      if (!seen.input)
        return of(
            fmt::format("{} runs before {}, whose gradients it reads", text(slot), text(input)),
            fmt::format("move {} behind {}", text(slot), text(input)));
      seen.weight = true;
    } else {
      if (!seen.forward)
        return of(
            fmt::format("{} runs before {}, whose activations it reads", text(slot), text(forward)),
            fmt::format("move {} behind {}", text(slot), text(forward)));
      seen.input = true;
      seen.weight = slot.part == PassPart::kWhole;
    }
    return std::nullopt;
  }

  std::optional<TableFault> pair(const Slot& slot) const {
    if (!slot.beside) return std::nullopt;
    const bool is_backward =
        slot.direction == Direction::kBackward && slot.part != PassPart::kWeight;
    if (is_backward && before_ != nullptr && before_->direction == Direction::kForward &&
        std::tie(before_->chunk, before_->micro_batch) != std::tie(slot.chunk, slot.micro_batch))
      return std::nullopt;
    return of(
        fmt::format("{} cannot run beside {}", text(slot),
                    before_ == nullptr ? "nothing" : text(*before_)),
        "let a forward pass, and behind it the backward pass of another micro-batch, overlap");
  }

  std::optional<TableFault> left_out(std::int32_t chunk, std::int32_t m) {
    const PassesSeen& seen = seen_[{chunk, m}];
    if (seen.forward && seen.input && seen.weight) return std::nullopt;
    const Slot missing = !seen.forward ? Slot{Direction::kForward, chunk, m}
                                       : Slot{Direction::kBackward, chunk, m,
                                              seen.input ? PassPart::kWeight : PassPart::kWhole};
    return of(fmt::format("never runs {}", text(missing)),
              fmt::format("add it: each micro-batch, 0 to {}, goes forward and backward once",
                          shape_.micro_batches - 1));
  }

  const std::vector<Slot>& slots_;
  std::int32_t stage_;
  const PipelineShape& shape_;
  StagePlacement placement_;
  std::map<Key, PassesSeen> seen_;
  const Slot* before_ = nullptr;
};

}  // namespace

std::string to_text(const Slot& slot, const PipelineShape& shape, StagePlacement placement,
                    std::int32_t stage) {
  const char letter = slot.direction == Direction::kForward ? 'F'
                      : slot.part == PassPart::kWhole       ? 'B'
                      : slot.part == PassPart::kInput       ? 'I'
                                                            : 'W';
  const std::string piece =
      shape.chunks > 1 ? std::to_string(piece_of(placement, shape.stages, stage, slot.chunk)) : "";
  return fmt::format("{}{}{}", piece, letter, slot.micro_batch);
}

std::vector<Span> walk(const Table& table, const PipelineShape& shape, StagePlacement placement) {
  Progress progress(shape, placement);
  std::vector<Span> spans(table.size());
  std::vector<std::size_t> next(table.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < table.size(); ++s) {
      const auto stage = static_cast<std::int32_t>(s);
      while (next[s] < table[s].size()) {
        const auto together = together_at(table[s], next[s]);
        std::optional<double> begin = spans[s].end;
        for (const Slot& slot : together) {
          const auto ready = progress.ready(stage, slot);
          begin = begin && ready ? std::optional(std::max(*begin, *ready)) : std::nullopt;
        }
        if (!begin) break;
        if (next[s] == 0) spans[s].begin = *begin;
        spans[s].end = *begin;
        for (const Slot& slot : together) spans[s].end += progress.duration(slot);
        for (const Slot& slot : together) progress.finish(stage, slot, spans[s].end);
        next[s] += together.size();
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < table.size(); ++s) FORESHARD_CHECK(next[s] == table[s].size());
  return spans;
}

std::int32_t most_in_flight(const std::vector<Slot>& slots) {
  std::int32_t now = 0;
  std::int32_t most = 0;
  for (const Slot& slot : slots) {
    if (slot.direction == Direction::kForward)
      most = std::max(most, ++now);
    else if (slot.part != PassPart::kInput)
      --now;
  }
  return most;
}

std::optional<TableFault> fault_in(const Table& table, const PipelineShape& shape,
                                   StagePlacement placement) {
  if (std::cmp_not_equal(table.size(), shape.stages))
    return TableFault{.message = fmt::format("has {} stages, not {}", table.size(), shape.stages),
                      .help = fmt::format("give one list for each of the {} stages, or set "
                                          "pipeline_parallel: {}",
                                          shape.stages, table.size())};
  for (std::size_t s = 0; s < table.size(); ++s)
    if (auto fault = StageCheck(table[s], static_cast<std::int32_t>(s), shape, placement).fault())
      return fault;
  return DryRun(table, shape, placement).fault();
}

}  // namespace foreshard::schedule
