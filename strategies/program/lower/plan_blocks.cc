// The blocks of a plan's actions (block_for in calls.h): passes with the allocations and frees
// around their tasks, and all other actions as ActionBlocks makes them. Sizes are elements on one
// rank.
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"

#include "strategies/program/lower/action_blocks.h"
#include "strategies/program/lower/calls.h"

namespace foreshard::lower {
namespace {

using plan::Action;
using plan::ActionKind;
using plan::StepPlan;
using plan::Target;
using program::Allocate;
using program::Block;
using program::Free;
using program::MemoryKind;
using program::Task;

std::string_view word(const Action& pass) {
  if (pass.direction == Direction::kForward) return "forward";
  if (pass.part == plan::PassPart::kWhole) return "backward";
  return pass.part == plan::PassPart::kInput ? "backward_input" : "backward_weight";
}

// Makes the blocks of one role's actions.
class PlanBlocks {
 public:
  PlanBlocks(const StepPlan& plan, const Strategy& strategy, const PlannedBlocks& blocks,
             const plan::Role& role)
      : plan_(plan),
        strategy_(strategy),
        blocks_(blocks),
        role_(role),
        actions_(strategy, plan.states, plan.parts.mesh, blocks.split_over) {}

  Block make(const Action& action, const BlockKey& key) const {
    return action.kind == ActionKind::kPass ? pass(action, key)
                                            : actions_.make(subject_of(action, key));
  }

 private:
  const plan::Unit& unit(std::int32_t index) const {
    return plan_.parts.units[static_cast<std::size_t>(index)];
  }
  const plan::Bucket& bucket(std::int32_t index) const {
    return plan_.buckets[static_cast<std::size_t>(index)];
  }
  const std::string& block_name(std::int32_t block) const {
    return plan_.parts.blocks[static_cast<std::size_t>(block)].name;
  }
  const LoweredBlock& lowered(std::int32_t block) const {
    return *blocks_.blocks[static_cast<std::size_t>(block)];
  }
  DType gradient_dtype() const { return strategy_.framework->gradients_of(strategy_.precision); }

  // What an action that is no pass works on.
  Subject subject_of(const Action& action, const BlockKey& key) const {
    Subject subject{.kind = action.kind, .direction = action.direction, .part = action.part};
    const Target target = plan::target_of(action.kind);
    if (target == Target::kUnits || plan::of_one_unit(plan_.states, action)) {
      subject.unit = block_name(key.of);
      subject.block = &lowered(key.of);
    }
    switch (target) {
      case Target::kBucket:
        subject.bucket = bucket(action.what);
        subject.frees = (action.gives_back & plan::kGradient) != 0;
        break;
      case Target::kCopies:
        subject.copies = plan_.copies[static_cast<std::size_t>(action.what)];
        break;
      case Target::kCrossing:
        add_transfer(action, key.syncs, subject);
        break;
      case Target::kRole:
        subject.parameters = role_.parameters;
        subject.copied = copied_elements();
        break;
      case Target::kNone:
        subject.mark = action.what < 0 ? "pass" : "pipeline";
        break;
      case Target::kUnits:
        break;
    }
    return subject;
  }

  void add_transfer(const Action& action, bool syncs, Subject& subject) const {
    const plan::Crossing& crossing = plan_.crossings[static_cast<std::size_t>(action.what)];
    const bool to_later =
        (action.kind == ActionKind::kSend) == (action.direction == Direction::kForward);
    const bool is_one = blocks_.boundaries.size() == 1;
    const bool differ = std::ranges::adjacent_find(blocks_.boundaries, std::not_equal_to{}) !=
                        blocks_.boundaries.end();
    subject.boundaries = &blocks_.boundaries[is_one ? 0 : static_cast<std::size_t>(action.what)];
    subject.peer = to_later ? crossing.to_role : crossing.from_role;
    subject.returns = action.returns;
    subject.mark = fmt::format("{}{}", action.returns ? ".returning" : "",
                               differ ? fmt::format(".crossing{}", action.what) : "");
    subject.syncs = syncs;
  }

  // Elements whose gradients were copied to the host after their reduction.
  std::int64_t copied_elements() const {
    std::set<std::int32_t> copied;
    for (const Action& action : role_.actions)
      if (action.kind == ActionKind::kOffloadGradients) copied.insert(action.what);
    std::int64_t sum = 0;
    for (const std::int32_t index : copied)
      sum += actions_.reduced_elements(bucket(index).elements, bucket(index).over);
    return sum;
  }

  // The tasks of a pass, between the allocations before them and the frees after them.
  Block pass(const Action& action, const BlockKey& key) const {
    const LoweredBlock& from = lowered(key.of);
    const std::string& kind = block_name(key.of);
    const std::string work = fmt::format("{}.{}.work", kind, word(action));
    const Bytes transient = transient_of(from, action);
    const auto& [kept, kept_for_weight, held] = activations_of(from, action);
    Block block = *key.tasks;
    if ((action.takes & plan::kKeptForWeight) != 0) block.name += ".split";
    if (key.begins) {
      std::vector<Task> tasks;
      const auto keep = [&](std::uint8_t buffer, const std::string& name, Bytes bytes) {
        if ((action.takes & buffer) != 0 && bytes > 0_B)
          tasks.push_back(
              {.name = "keep", .body = Allocate{kind + name, MemoryKind::kActivations, bytes}});
      };
      keep(plan::kKept, ".activations", kept);
      keep(plan::kKeptForWeight, ".activations_for_weights", kept_for_weight);
      keep(plan::kHeld, ".held_for_weights", held);
      if (transient > 0_B)
        tasks.push_back({.name = "work", .body = Allocate{work, MemoryKind::kBuffers, transient}});
      if ((action.takes & plan::kGradient) != 0) take_gradients(action, key.of, tasks);
      put_before(block, std::move(tasks));
    }
    if (key.ends) {
      const std::vector<std::int32_t> uses =
          reduces_inside(block) ? last_uses(block) : std::vector<std::int32_t>{};
      const auto free = [&](std::string name, std::string buffer) {
        block.tasks.push_back(
            Task{.name = std::move(name), .body = Free{std::move(buffer)}, .after = uses});
      };
      if (transient > 0_B) free("work done", work);
      if ((action.gives_back & plan::kWhole) != 0)
        for (const auto& group : plan_.parts.cut_groups(from.parameters))
          free("release", actions_.parameters_of(group.over, kind));
      const auto forget = [&](std::uint8_t buffer, const std::string& name, Bytes bytes) {
        if ((action.gives_back & buffer) != 0 && bytes > 0_B) free("forget", kind + name);
      };
      forget(plan::kKept, ".activations", kept);
      forget(plan::kKeptForWeight, ".activations_for_weights", kept_for_weight);
      forget(plan::kHeld, ".held_for_weights", held);
    }
    return block;
  }

  static Bytes transient_of(const LoweredBlock& block, const Action& pass) {
    if (pass.direction == Direction::kForward) return block.transient_forward;
    if (pass.part == plan::PassPart::kWhole) return block.transient_backward;
    return pass.part == plan::PassPart::kInput ? block.split->transient_input
                                               : block.split->transient_weight;
  }

  // Sizes of the buffers plan::kKept, kKeptForWeight and kHeld.
  struct Activations {
    Bytes kept;
    Bytes kept_for_weight{};
    Bytes held{};
  };
  static Activations activations_of(const LoweredBlock& block, const Action& pass) {
    const bool apart =
        pass.part != plan::PassPart::kWhole || (pass.takes & plan::kKeptForWeight) != 0;
    if (!apart) return {block.saved};
    const Bytes for_weight = std::min(block.saved, block.split->kept_for_weight);
    return {block.saved - for_weight, for_weight, block.split->held};
  }

  // Whether the block reduces gradients: such tasks can outlast its use of activations.
  static bool reduces_inside(const Block& block) {
    return std::ranges::find(block.tasks, stream(kDataStream), &Task::stream) != block.tasks.end();
  }

  // Allocates the gradient buckets that the pass of a unit of block `of` is the first to add to.
  void take_gradients(const Action& action, std::int32_t of, std::vector<Task>& tasks) const {
    std::vector<std::int32_t> opened;
    for (const Action& other : role_.actions)
      if (other.kind == ActionKind::kReduce && action.units.contains(bucket(other.what).opened_by))
        opened.push_back(other.what);
    // In the order of the model: with a tied table, the embedding's bucket before the head's.
    std::ranges::sort(opened, {},
                      [&](std::int32_t i) { return std::pair(bucket(i).units.front(), i); });
    opened.erase(std::unique(opened.begin(), opened.end()), opened.end());
    FORESHARD_CHECK(!opened.empty() && unit(action.units.first).block == of);
    for (const std::int32_t index : opened) {
      const plan::Bucket& one = bucket(index);
      const Bytes whole = size_of(gradient_dtype()) * static_cast<double>(one.elements);
      const std::string& name = block_name(unit(one.units.front().first).block);
      tasks.push_back(
          {.name = "gradients",
           .body = Allocate{actions_.gradients_of(one.over, name), MemoryKind::kGradients, whole}});
    }
  }

  const StepPlan& plan_;
  const Strategy& strategy_;
  const PlannedBlocks& blocks_;
  const plan::Role& role_;
  ActionBlocks actions_;
};

}  // namespace

Block block_for(const StepPlan& plan, const Strategy& strategy, const PlannedBlocks& blocks,
                const plan::Role& role, const Action& action, const BlockKey& key) {
  return PlanBlocks(plan, strategy, blocks, role).make(action, key);
}

}  // namespace foreshard::lower
