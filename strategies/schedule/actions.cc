#include "strategies/schedule/actions.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

struct Action {
  std::int32_t piece = -1;  // -1: not given
  char kind = 'F';
  std::int32_t micro_batch = 0;
};

constexpr std::string_view kOverlap = "OVERLAP_F_B";  // follows two passes that run side by side

constexpr std::string_view kHelp =
    "write the pass (F, B, I or W) and the micro-batch, F0, behind the piece of the model where a "
    "stage has several, 5F0";

std::vector<std::string_view> words(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,;()\"";
  std::vector<std::string_view> found;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return found;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(kBetween), text.size());
    found.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<Action> action_of(std::string_view word) {
  Action action;
  const char* begin = word.data();
  const char* const end = begin + word.size();
  if (const auto piece = std::from_chars(begin, end, action.piece); piece.ec == std::errc{})
    begin = piece.ptr;
  if (begin == end || std::string_view("FBIW").find(*begin) == std::string_view::npos ||
      action.piece < -1)
    return std::nullopt;
  action.kind = *begin++;
  const auto batch = std::from_chars(begin, end, action.micro_batch);
  if (batch.ec != std::errc{} || batch.ptr != end || action.micro_batch < 0) return std::nullopt;
  return action;
}

// Reads the rows of all stages.
class Reader {
 public:
  Reader(std::span<const std::string> stages, const PipelineShape& shape)
      : stages_(stages), shape_(shape) {
    read_.placement = placement_of(stages);
  }

  Actions run() && {
    for (std::size_t s = 0; s < stages_.size() && !read_.fault; ++s) stage(s);
    if (!read_.fault) read_.fault = fault_in(read_.table, shape_, read_.placement);
    return std::move(read_);
  }

 private:
  void refuse(std::size_t stage, std::string message, std::string help) {
    read_.fault = {static_cast<std::int32_t>(stage), std::move(message), std::move(help)};
  }

  // The stage's chunk that is the action's piece; empty if another stage holds the piece.
  std::optional<std::int32_t> chunk_of(std::size_t stage, const Action& action) const {
    if (action.piece < 0) return shape_.chunks == 1 ? std::optional(0) : std::nullopt;
    for (std::int32_t chunk = 0; chunk < shape_.chunks; ++chunk)
      if (piece_of(read_.placement, shape_.stages, static_cast<std::int64_t>(stage), chunk) ==
          action.piece)
        return chunk;
    return std::nullopt;
  }

  void stage(std::size_t s) {
    std::vector<Slot> slots;
    for (const std::string_view word : words(stages_[s])) {
      if (word == kOverlap) {
        if (slots.empty())
          return refuse(s, fmt::format("'{}' has no passes before it", kOverlap),
                        "let it follow the two passes that overlap: (0F1;3B0)OVERLAP_F_B");
        slots.back().beside = shape_.pairs;
        continue;
      }
      const auto action = action_of(word);
      if (!action) return refuse(s, fmt::format("'{}' is no pass", word), std::string(kHelp));
      const auto chunk = chunk_of(s, *action);
      if (!chunk)
        return refuse(s, fmt::format("'{}' is of no piece of the stage", word), places(s));
      slots.push_back({action->kind == 'F' ? Direction::kForward : Direction::kBackward, *chunk,
                       action->micro_batch,
                       action->kind == 'W'   ? PassPart::kWeight
                       : action->kind == 'I' ? PassPart::kInput
                                             : PassPart::kWhole});
    }
    split(slots);
    read_.table.push_back(std::move(slots));
  }

  // Turns each backward pass whose weight gradients are listed separately into one of input
  // gradients.
  static void split(std::vector<Slot>& slots) {
    std::set<std::pair<std::int32_t, std::int32_t>> apart;
    for (const Slot& slot : slots)
      if (slot.part == PassPart::kWeight) apart.insert({slot.chunk, slot.micro_batch});
    for (Slot& slot : slots)
      if (slot.direction == Direction::kBackward && slot.part == PassPart::kWhole &&
          apart.contains({slot.chunk, slot.micro_batch}))
        slot.part = PassPart::kInput;
  }

  std::string places(std::size_t s) const {
    std::vector<std::int64_t> wrapped;
    for (std::int32_t chunk = 0; chunk < shape_.chunks; ++chunk)
      wrapped.push_back(
          piece_of(StagePlacement::kWrap, shape_.stages, static_cast<std::int64_t>(s), chunk));
    const std::string in_v = shape_.chunks == 2
                                 ? fmt::format(", or in a V {} and {}", s,
                                               piece_of(StagePlacement::kV, shape_.stages,
                                                        static_cast<std::int64_t>(s), 1))
                                 : "";
    return fmt::format("stage {} of {} holds {} of the pieces (virtual_stages: {}): {}{}", s,
                       shape_.stages, shape_.chunks, shape_.chunks, fmt::join(wrapped, ", "), in_v);
  }

  std::span<const std::string> stages_;
  const PipelineShape& shape_;
  Actions read_;
};

}  // namespace

Result<Table> custom(const PipelineShape& shape) {
  Actions actions = read_actions(shape.actions, shape);
  if (!actions.fault) return std::move(actions.table);
  const TableFault& fault = *actions.fault;
  return fault_of(kCustom, fmt::format("stage {} {}; {}", fault.stage, fault.message, fault.help));
}

Actions read_actions(std::span<const std::string> stages, const PipelineShape& shape) {
  return Reader(stages, shape).run();
}

StagePlacement placement_of(std::span<const std::string> stages) {
  if (stages.size() < 2) return StagePlacement::kWrap;
  const auto last = static_cast<std::int32_t>(2 * stages.size()) - 1;
  const auto is_last = [&](std::string_view word) {
    const auto action = action_of(word);
    return action && action->piece == last;
  };
  const auto first = words(stages.front());
  // The last of 2p pieces is on stage 0 only in a V.
  return std::ranges::any_of(first, is_last) ? StagePlacement::kV : StagePlacement::kWrap;
}

bool pairs(std::span<const std::string> stages) {
  return std::ranges::any_of(stages, [](const std::string& text) {
    return std::ranges::count(words(text), kOverlap) > 0;
  });
}

bool splits(std::span<const std::string> stages) {
  return std::ranges::any_of(stages, [](const std::string& text) {
    return std::ranges::any_of(words(text), [](std::string_view word) {
      const auto action = action_of(word);
      return action && (action->kind == 'W' || action->kind == 'I');
    });
  });
}

}  // namespace foreshard::schedule
