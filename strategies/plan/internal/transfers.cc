// The planner of a pipeline's transfers (plan_transfers of planner.h): adds to each role the sends
// and receives of its passes, and the waits of the host for them. The model's pieces lie one behind
// the other; crossing i lies between piece i and piece i + 1.
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "strategies/parallelism/pipeline.h"
#include "strategies/plan/planner.h"

namespace foreshard::plan {
namespace {

// Adds the transfers of one role. "Slot" below excludes slots of weight gradients: those transfer
// nothing.
class Transfers {
 public:
  Transfers(Draft& draft, DraftRole& role)
      : draft_(draft),
        role_(role),
        framework_(*draft.strategy.framework),
        may_block_(schedule::find_schedule(draft.strategy.schedule)->may_block),
        waits_inside_(std::ranges::any_of(draft.plan.parts.blocks, &Block::host_waits)),
        blocking_(transfers_block(draft.strategy) && !(in_ring() && waits_inside_ && !may_post())),
        hosts_wait_(hosts_wait_for_transfers(draft.strategy) && !(in_ring() && waits_inside_)) {}

  void add() {
    for (Section& section : role_.slots) add_to(section);
    if (role_.optimizer() == kNone) return;
    for (const ActionRef sent : unfinished_) role_.wait(role_.optimizer(), sent);
  }

 private:
  // Whether the stages could wait for each other's transfers in a circle: in an interleaved
  // pipeline, and in schedules whose transfers are posted ahead of use.
  bool in_ring() const { return role_.role.chunks.size() > 1 || !may_block_; }
  // Whether a receive can be issued ahead of its slot: nothing but the slot's passes may wait for
  // it, neither the host nor the gather of what pipeline_scatter_gather has cut.
  bool may_post() const {
    return !hosts_wait_for_transfers(draft_.strategy) && !framework_.pipeline_scatter_gather;
  }

  void add_to(Section& section) {
    const PassSlot& slot = *section.slot;
    if (slot.part == PassPart::kWeight) return;
    const std::int32_t piece = role_.role.chunks[static_cast<std::size_t>(slot.chunk)].piece;
    const auto crossings = static_cast<std::int32_t>(draft_.plan.crossings.size());
    const bool is_forward = slot.direction == Direction::kForward;
    const std::int32_t in = is_forward ? piece - 1 : piece;
    const std::int32_t out = is_forward ? piece : piece - 1;
    const ActionRef first = role_.first_pass(section);
    const ActionRef last = role_.last_pass(section);

    // Actions for which the first pass waits or, in a slot without passes, the send. If a slot runs
    // beside the slot before it, it does not wait for the send of that slot; the slot after both
    // does.
    std::vector<ActionRef> awaited;
    if (slot.beside)
      awaited = std::exchange(awaited_by_both_, {});
    else
      awaited_by_both_ = awaited = std::exchange(unfinished_, {});
    ActionRef input = kNone;  // the action that brings the slot's input
    if (in >= 0 && in < crossings) {
      if (is_local(in))
        awaited.push_back(local_outputs_.at({slot.direction, in, slot.micro_batch}));
      else
        std::ranges::copy(receive(section, in), std::back_inserter(awaited));
      input = awaited.back();
    }
    if (first != kNone) {
      for (const ActionRef ref : std::exchange(awaited, {})) role_.wait(first, ref);
      last_pass_ = last;
    }
    if (framework_.pass_host_sync && !in_ring())
      section.actions.push_back(role_.make(transfer(ActionKind::kSync, slot, -1)));
    const bool has_output = out >= 0 && out < crossings;
    if (has_output && !is_local(out)) {
      send(section, out, std::move(awaited));
    } else {
      if (has_output)
        local_outputs_[{slot.direction, out, slot.micro_batch}] = last != kNone ? last : input;
      // Not empty only in a slot without passes, where nothing waited: the next slot waits instead.
      unfinished_.insert(unfinished_.end(), awaited.begin(), awaited.end());
    }
    two_slots_back_ = std::exchange(one_slot_back_, last_pass_);
    posts_two_back_ = std::exchange(posts_one_back_, &section);
  }

  const Crossing& crossing_at(std::int32_t index) const {
    return draft_.plan.crossings[static_cast<std::size_t>(index)];
  }
  bool is_local(std::int32_t crossing) const { return crossing_at(crossing).is_local(); }

  // A transfer of the slot over the crossing, or a host's wait (kSync), which may have none (-1).
  // `message` is its index among the slot's messages over the crossing.
  Action transfer(ActionKind kind, const PassSlot& slot, std::int32_t crossing,
                  std::int32_t message = 0) const {
    const std::int32_t together = crossing >= 0 ? crossing_at(crossing).together : 1;
    return {.kind = kind,
            .direction = slot.direction,
            .chunk = slot.chunk,
            .micro_batch = slot.micro_batch + message * together,
            .returns = crossing >= 0 && crossing_at(crossing).returns,
            .what = crossing};
  }

  // Number of messages of one slot over the crossing.
  std::int32_t messages(std::int32_t crossing) const {
    return role_.role.together / crossing_at(crossing).together;
  }

  // The earlier slot behind whose actions the receives of the present slot are issued; nullptr:
  // they are issued before the slot's own actions.
  Section* posts_receives() const {
    if (!blocking_ || !in_ring() || !waits_inside_) return nullptr;
    return posts_two_back_ != nullptr ? posts_two_back_ : posts_one_back_;
  }

  // Receives all messages of the slot, in their order; returns the receives.
  std::vector<ActionRef> receive(Section& section, std::int32_t crossing) {
    std::vector<ActionRef> received;
    std::vector<ActionRef> actions;  // the receives, and the host's waits
    Section* const earlier = posts_receives();
    for (std::int32_t m = 0; m < messages(crossing); ++m) {
      Action one = transfer(ActionKind::kReceive, *section.slot, crossing, m);
      if (blocking_) one.after = {in_ring() ? two_slots_back_ : one_slot_back_};
      const ActionRef ref = received.emplace_back(role_.make(std::move(one)));
      (earlier != nullptr ? earlier->actions : actions).push_back(ref);
      if (!hosts_wait_) continue;
      Action sync = transfer(ActionKind::kSync, *section.slot, crossing, m);
      if (in_ring()) sync.after = {ref};
      actions.push_back(role_.make(std::move(sync)));
    }
    section.actions.insert(section.actions.begin(), actions.begin(), actions.end());
    return received;
  }

  // Sends all messages of the slot, each after `after` and after the role's last pass.
  void send(Section& section, std::int32_t crossing, std::vector<ActionRef> after) {
    after.push_back(last_pass_);
    for (std::int32_t m = 0; m < messages(crossing); ++m) {
      Action sent = transfer(ActionKind::kSend, *section.slot, crossing, m);
      sent.after = after;
      const ActionRef ref = role_.make(std::move(sent));
      section.actions.push_back(ref);
      if (blocking_) unfinished_.push_back(ref);
    }
  }

  Draft& draft_;
  DraftRole& role_;
  const Framework& framework_;
  bool may_block_;     // The schedule works with blocking transfers.
  bool waits_inside_;  // Hosts wait inside passes.
  bool blocking_;      // Passes wait for transfers.
  bool hosts_wait_;    // Hosts wait for receives.
  // Outputs that stay on the role: (direction, crossing, micro-batch) -> the pass that makes it.
  std::map<std::tuple<Direction, std::int32_t, std::int32_t>, ActionRef> local_outputs_;
  ActionRef last_pass_ = kNone;        // the role's last pass so far
  ActionRef one_slot_back_ = kNone;    // last_pass_ at the end of the previous slot
  ActionRef two_slots_back_ = kNone;   // last_pass_ at the end of the slot before that
  Section* posts_one_back_ = nullptr;  // the previous slot
  Section* posts_two_back_ = nullptr;  // the slot before that
  std::vector<ActionRef> unfinished_;  // actions that the next pass waits for: blocking sends
                                       // and, after a slot without passes, what it waited for
  // Actions that the last slot with `beside` unset waited for: a slot beside it waits for them too.
  std::vector<ActionRef> awaited_by_both_;
};

}  // namespace

Status plan_transfers(Draft& draft) {
  const auto pieces = static_cast<std::int32_t>(draft.plan.parts.pieces.size());
  std::vector<std::int32_t> role_of(static_cast<std::size_t>(pieces), 0);
  for (std::size_t role = 0; role < draft.roles.size(); ++role)
    for (const Chunk& chunk : draft.roles[role].role.chunks)
      role_of[static_cast<std::size_t>(chunk.piece)] = static_cast<std::int32_t>(role);
  const auto together_of = [&](std::int32_t piece) {
    return draft.roles[static_cast<std::size_t>(role_of[static_cast<std::size_t>(piece)])]
        .role.together;
  };
  const bool is_v = placement_of(draft.strategy) == schedule::StagePlacement::kV;
  for (std::int32_t piece = 0; piece + 1 < pieces; ++piece)
    draft.add(Crossing{.from_piece = piece,
                       .to_piece = piece + 1,
                       .from_role = role_of[static_cast<std::size_t>(piece)],
                       .to_role = role_of[static_cast<std::size_t>(piece) + 1],
                       .together = std::min(together_of(piece), together_of(piece + 1)),
                       .returns = is_v && piece >= draft.strategy.pipeline_parallel});
  for (DraftRole& role : draft.roles) Transfers(draft, role).add();
  return {};
}

}  // namespace foreshard::plan
