// Writes a step plan as text (step_plan.h, to_text), for `foreshard export --plan` and for tests.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>

#include "strategies/graph/mesh_axes.h"
#include "strategies/plan/step_plan.h"

namespace foreshard::plan {
namespace {

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

class Text {
 public:
  explicit Text(const StepPlan& plan) : plan_(plan) {}

  std::string whole() {
    line("{}", plan_.parts.name);
    line("states over data({}): {}", shards(), states());
    for (const Role& role : plan_.roles) write(role);
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  std::int64_t shards() const { return ways(shard_axes(plan_.parts.mesh), plan_.parts.mesh); }

  std::string states() const {
    using Gather = StateSharding::Gather;
    using Reduce = StateSharding::Reduce;
    const StateSharding& states = plan_.states;
    std::vector<std::string> cut;
    if (states.cuts_parameters) cut.emplace_back("parameters");
    if (states.cuts_gradients) cut.emplace_back("gradients");
    if (states.cuts_optimizer) cut.emplace_back("optimizer");
    std::vector<std::string> parts{cut.empty() ? "nothing is cut" : "cut " + joined(cut, ", ")};
    switch (states.gather) {
      case Gather::kNever:
        break;
      case Gather::kStartOfStep:
        parts.emplace_back("gather at the start of the step");
        break;
      case Gather::kBeforeUse:
        parts.emplace_back("gather before use");
        break;
      case Gather::kEndOfStep:
        parts.emplace_back("gather at the end of the step");
        break;
    }
    switch (states.reduce) {
      case Reduce::kNever:
        break;
      case Reduce::kEveryMicroBatch:
        parts.emplace_back("reduce every micro-batch");
        break;
      case Reduce::kLastMicroBatch:
        parts.emplace_back("reduce in the last micro-batch");
        break;
      case Reduce::kEndOfStep:
        parts.emplace_back("reduce at the end of the step");
        break;
    }
    return joined(parts, "; ");
  }

  // "embedding, layers 0..3, head"; in reverse order for a backward pass.
  std::string units(const UnitRange& run, Direction direction) const {
    std::vector<std::string> parts;
    for (std::int32_t i = 0; i < run.count;) {
      std::int32_t n = 1;
      while (i + n < run.count && &block(run, i + n) == &block(run, i)) ++n;
      const Unit& first = unit(run, i);
      const Unit& last = unit(run, i + n - 1);
      if (n == 1) {
        parts.push_back(first.name);
      } else {
        const bool is_forward = direction == Direction::kForward;
        parts.push_back(fmt::format("{}s {}..{}", block(run, i).name,
                                    is_forward ? first.layer : last.layer,
                                    is_forward ? last.layer : first.layer));
      }
      i += n;
    }
    if (direction == Direction::kBackward) std::ranges::reverse(parts);
    return joined(parts, ", ");
  }
  std::string units(const std::vector<UnitRange>& runs) const {
    std::vector<std::string> parts;
    for (const UnitRange& run : runs)
      if (run.count > 0) parts.push_back(units(run, Direction::kForward));
    return parts.empty() ? "nothing" : joined(parts, ", ");
  }
  const Unit& unit(const UnitRange& run, std::int32_t i) const {
    const std::int32_t index = run.first + i;
    return plan_.parts.units[static_cast<std::size_t>(index)];
  }
  const Block& block(const UnitRange& run, std::int32_t i) const {
    return plan_.parts.block_of(run.first + i);
  }

  // "layer_out -> stage 1", "d.layer_out <- stage 1".
  std::string transfer(const Action& action) const {
    const Crossing& crossing = plan_.crossings[static_cast<std::size_t>(action.what)];
    const bool is_forward = action.direction == Direction::kForward;
    const bool sends = action.kind == ActionKind::kSend;
    const std::int32_t role = is_forward == sends ? crossing.to_role : crossing.from_role;
    const std::vector<std::string>& names = plan_.parts.boundaries;
    return fmt::format("{}{} {} {}", is_forward ? "" : "d.",
                       names[names.size() == 1 ? 0 : static_cast<std::size_t>(action.what)],
                       sends ? "->" : "<-", plan_.roles[static_cast<std::size_t>(role)].name);
  }

  std::string copies(const GradientCopies& copies) const {
    std::vector<std::string> names;
    if (copies.roles.size() > 1) {
      for (const std::int32_t role : copies.roles)
        names.push_back(plan_.roles[static_cast<std::size_t>(role)].name);
      return "tied copies of " + joined(names, " and ");
    }
    for (const Axis axis : copies.axes)
      names.push_back(plan_.parts.mesh[static_cast<std::size_t>(axis)].name);
    return "replicated parameters over " + joined(names, ", ");
  }

  static std::string_view word(const Action& pass) {
    if (pass.direction == Direction::kForward) return "forward";
    switch (pass.part) {
      case PassPart::kWhole:
        break;
      case PassPart::kInput:
        return "backward-input";
      case PassPart::kWeight:
        return "backward-weight";
    }
    return "backward";
  }

  std::string what(const Action& action) const {
    const auto bucket = [&] {
      return units(plan_.buckets[static_cast<std::size_t>(action.what)].units);
    };
    switch (action.kind) {
      case ActionKind::kPass:
        return fmt::format("{} ", word(action)) + units(action.units, action.direction) +
               (action.reduces ? ", reducing" : "");
      case ActionKind::kGather:
        return "gather " + bucket();
      case ActionKind::kReduce:
        return "reduce " + bucket();
      case ActionKind::kReduceCopies:
        return "reduce " + copies(plan_.copies[static_cast<std::size_t>(action.what)]);
      case ActionKind::kSend:
        return "send " + transfer(action);
      case ActionKind::kReceive:
        return "receive " + transfer(action);
      case ActionKind::kOptimizer:
        return "optimizer";
      case ActionKind::kOffload:
        return "offload " + units(action.units, Direction::kForward);
      case ActionKind::kFetch:
        return "fetch " + units(action.units, Direction::kForward);
      case ActionKind::kOffloadGradients:
        return "offload gradients of " + bucket();
      case ActionKind::kSync:
        break;
    }
    return "sync";
  }

  void write(const Action& action, ActionId id) {
    std::string text = fmt::format("{:4} {}", id, what(action));
    if (!action.after.empty()) text += fmt::format(" < {}", fmt::join(action.after, " "));
    const auto buffers = [&](std::uint8_t set, char sign) {
      if ((set & kKept) != 0) text += fmt::format(" {}kept", sign);
      if ((set & kWhole) != 0) text += fmt::format(" {}whole", sign);
      if ((set & kGradient) != 0) text += fmt::format(" {}gradient", sign);
      if ((set & kKeptForWeight) != 0) text += fmt::format(" {}kept-for-weight", sign);
      if ((set & kHeld) != 0) text += fmt::format(" {}held", sign);
    };
    buffers(action.takes, '+');
    buffers(action.gives_back, '-');
    line("{}", text);
  }

  static std::string label(const PassSlot& slot) {
    const char backward = slot.part == PassPart::kWhole   ? 'B'
                          : slot.part == PassPart::kInput ? 'I'
                                                          : 'W';
    std::string text = fmt::format("{}{}", slot.direction == Direction::kForward ? 'F' : backward,
                                   slot.micro_batch);
    if (slot.chunk > 0) text += fmt::format(" chunk {}", slot.chunk);
    if (slot.beside) text += " beside";
    return text;
  }
  static std::string labels(const Role& role, std::size_t from, std::size_t count) {
    std::vector<std::string> parts;
    for (std::size_t i = from; i < from + count; ++i) parts.push_back(label(role.slots[i]));
    return joined(parts, ", ");
  }

  static bool splits(const Role& role) {
    return std::ranges::any_of(role.slots,
                               [](const PassSlot& slot) { return slot.part != PassPart::kWhole; });
  }

  static ActionId end_of(const Role& role, std::size_t slot) {
    return slot + 1 < role.slots.size() ? role.slots[slot + 1].first : role.end;
  }

  // Whether the two slots differ in the micro-batch only. Their actions must wait for actions that
  // stand equally far before them.
  static bool are_alike(const Role& role, std::size_t a, std::size_t b) {
    const PassSlot& one = role.slots[a];
    const PassSlot& other = role.slots[b];
    const ActionId count = end_of(role, a) - one.first;
    if (one.direction != other.direction || one.chunk != other.chunk || one.part != other.part ||
        one.beside != other.beside || count != end_of(role, b) - other.first)
      return false;
    const std::int32_t later = other.micro_batch - one.micro_batch;
    for (ActionId i = 0; i < count; ++i) {
      const ActionId id_of_first = one.first + i;
      const ActionId id_of_second = other.first + i;
      const Action& first = role.actions[static_cast<std::size_t>(id_of_first)];
      Action second = role.actions[static_cast<std::size_t>(id_of_second)];
      second.micro_batch -= later;
      for (ActionId& earlier : second.after) earlier -= other.first - one.first;
      if (second != first) return false;
    }
    return true;
  }

  // How often the `period` slots before `slot` are repeated from `slot` on.
  static std::size_t repeats(const Role& role, std::size_t slot, std::size_t period) {
    const auto step = [&](std::size_t i) {
      return role.slots[i].micro_batch - role.slots[i - period].micro_batch;
    };
    std::size_t n = 0;
    for (std::size_t i = slot; i < role.slots.size(); ++i) {
      if (step(i) != step(slot) || !are_alike(role, i - period, i)) break;
      if ((i - slot + 1) % period == 0) ++n;
    }
    return n;
  }

  void write(const Role& role) {
    std::vector<std::string> chunks;
    for (const Chunk& chunk : role.chunks)
      chunks.push_back(chunk.units.count > 0 ? units(chunk.units, Direction::kForward) : "nothing");
    line("{}: {}{}", role.name, joined(chunks, "; "),
         role.together > 1 ? fmt::format(", {} micro-batches a pass", role.together) : "");
    const auto all = [&](ActionId from, ActionId to) {
      for (ActionId id = from; id < to; ++id) write(role.actions[static_cast<std::size_t>(id)], id);
    };
    all(0, role.slots.empty() ? role.end : role.slots.front().first);
    for (std::size_t slot = 0; slot < role.slots.size();) {
      std::size_t period = 1;
      std::size_t times = 0;
      // An interleaved pipeline repeats p micro-batches through all chunks, forward and backward.
      const std::size_t longest = (splits(role) ? 3 : 2) * plan_.roles.size() * role.chunks.size();
      while (period <= std::min(slot, longest) && (times = repeats(role, slot, period)) == 0)
        ++period;
      if (times > 0) {
        const std::size_t last = slot + (times - 1) * period;
        line(" {}{}: as {}", labels(role, slot, period),
             times > 1 ? " to " + labels(role, last, period) : "",
             labels(role, slot - period, period));
        slot += times * period;
        continue;
      }
      line(" {}", label(role.slots[slot]));
      all(role.slots[slot].first, end_of(role, slot));
      ++slot;
    }
    if (role.end < static_cast<ActionId>(role.actions.size())) line(" end");
    all(role.end, static_cast<ActionId>(role.actions.size()));
  }

  const StepPlan& plan_;
  std::string text_;
};

}  // namespace

std::string to_text(const StepPlan& plan) {
  return Text(plan).whole();
}

}  // namespace foreshard::plan
