// The planner of copies to and from the host's memory, a row of planners() (planner.h,
// plan_offloads): activations of layers, and gradients for an optimizer on the CPU. Without
// offloading it adds nothing.
#include <algorithm>
#include <map>
#include <utility>

#include "strategies/plan/planner.h"

namespace foreshard::plan {
namespace {

// Copies the activations of the first layers of each chunk to the host after their forward pass,
// and fetches them before their backward pass.
class Activations {
 public:
  Activations(const PlannedModel& parts, DraftRole& role, std::int64_t layers)
      : parts_(parts), role_(role), most_(layers) {}

  void add() {
    for (Section& section : role_.slots) {
      const UnitRange& chunk =
          role_.role.chunks[static_cast<std::size_t>(section.slot->chunk)].units;
      layers_ = layers_of(chunk);
      const auto all = static_cast<std::int32_t>(layers_.size());
      offloaded_ = static_cast<std::int32_t>(std::min<std::int64_t>(most_, all));
      window_ = std::max(1, all - offloaded_);
      if (offloaded_ == 0) continue;
      role_.split_passes(section);
      const std::vector<ActionRef> actions = std::exchange(section.actions, {});
      const bool is_forward = section.slot->direction == Direction::kForward;
      if (!is_forward)
        for (std::int32_t i = offloaded_ - 1; i + window_ >= all; --i)
          fetch(section, i, pass_before_);
      for (const ActionRef ref : actions) {
        section.actions.push_back(ref);
        if (!role_.is_pass(ref)) continue;
        const std::int32_t layer = place_of(role_[ref].units.first);
        if (layer >= 0)
          is_forward ? behind_forward(section, ref, layer) : behind_backward(section, ref, layer);
        pass_before_ = ref;
      }
    }
  }

 private:
  std::vector<std::int32_t> layers_of(const UnitRange& chunk) const {
    std::vector<std::int32_t> layers;
    for (std::int32_t unit = chunk.first; unit < chunk.first + chunk.count; ++unit)
      if (parts_.units[static_cast<std::size_t>(unit)].is_layer &&
          parts_.block_of(unit).has_backward)
        layers.push_back(unit);
    return layers;
  }
  // Position of the unit among the layers of the chunk; -1: it is none of them.
  std::int32_t place_of(std::int32_t unit) const {
    const auto it = std::ranges::find(layers_, unit);
    return it == layers_.end() ? -1 : static_cast<std::int32_t>(it - layers_.begin());
  }

  ActionRef copy(Section& section, ActionKind kind, std::int32_t layer,
                 std::vector<ActionId> after) {
    const PassSlot& slot = *section.slot;
    const bool goes = kind == ActionKind::kOffload;
    section.actions.push_back(role_.make({.kind = kind,
                                          .direction = slot.direction,
                                          .chunk = slot.chunk,
                                          .micro_batch = slot.micro_batch,
                                          .units = {layers_[static_cast<std::size_t>(layer)], 1},
                                          .takes = static_cast<std::uint8_t>(goes ? 0 : kKept),
                                          .gives_back = static_cast<std::uint8_t>(goes ? kKept : 0),
                                          .after = std::move(after)}));
    return section.actions.back();
  }
  std::pair<std::int32_t, std::int32_t> key(const Section& section, std::int32_t layer) const {
    return {layers_[static_cast<std::size_t>(layer)], section.slot->micro_batch};
  }

  void behind_forward(Section& section, ActionRef pass, std::int32_t layer) {
    if (layer >= window_ && layer - window_ < offloaded_)
      role_.wait(pass, offloads_.at(key(section, layer - window_)));
    if (layer < offloaded_)
      offloads_[key(section, layer)] = copy(section, ActionKind::kOffload, layer, {pass});
  }

  void fetch(Section& section, std::int32_t layer, ActionRef room) {
    fetches_[key(section, layer)] =
        copy(section, ActionKind::kFetch, layer, {offloads_.at(key(section, layer)), room});
  }

  void behind_backward(Section& section, ActionRef pass, std::int32_t layer) {
    if (layer < offloaded_) role_.wait(pass, fetches_.at(key(section, layer)));
    if (layer >= window_ && layer - window_ < offloaded_) fetch(section, layer - window_, pass);
  }

  const PlannedModel& parts_;
  DraftRole& role_;
  std::int64_t most_;
  std::vector<std::int32_t> layers_;  // units that are layers of the current chunk
  std::int32_t offloaded_ = 0;        // how many of them, from the first on
  std::int32_t window_ = 1;
  std::map<std::pair<std::int32_t, std::int32_t>, ActionRef> offloads_;  // by unit, micro-batch
  std::map<std::pair<std::int32_t, std::int32_t>, ActionRef> fetches_;
  ActionRef pass_before_ = kNone;
};

// Copies reduced gradients to the CPU, which takes the optimizer's step.
void gradients_to_host(DraftRole& role) {
  const ActionRef optimizer = role.optimizer();
  const auto add = [&](Section& section) {
    for (const ActionRef ref : std::exchange(section.actions, {})) {
      section.actions.push_back(ref);
      if (role[ref].kind != ActionKind::kReduce) continue;
      Action copy = role[ref];
      copy.kind = ActionKind::kOffloadGradients;
      copy.takes = copy.gives_back = 0;
      copy.after = {ref};
      section.actions.push_back(role.make(std::move(copy)));
      role.wait(optimizer, section.actions.back());
    }
  };
  for (Section& section : role.slots) add(section);
  add(role.end);
}

}  // namespace

Status plan_offloads(Draft& draft) {
  for (DraftRole& role : draft.roles) {
    if (draft.trains() && draft.strategy.offload_activation_layers > 0)
      Activations(draft.plan.parts, role, draft.strategy.offload_activation_layers).add();
    if (draft.trains() && draft.strategy.offload_optimizer == OptimizerOffload::kCpu)
      gradients_to_host(role);
  }
  return {};
}

}  // namespace foreshard::plan
