// Walks a step plan in an order that its dependencies allow (walk.h), for verify and for the
// search's peaks of memory.
#include "strategies/plan/walk.h"

#include <algorithm>
#include <tuple>

namespace foreshard::plan {

Walk::Walk(const StepPlan& plan, bool common_norm)
    : plan_(plan),
      common_norm_(common_norm),
      roles_(plan.roles.size()),
      role_of_piece_(plan.parts.pieces.size()) {
  for (std::size_t role = 0; role < roles_.size(); ++role) {
    const auto& actions = plan.roles[role].actions;
    roles_[role].done.assign(actions.size(), false);
    for (std::size_t id = 0; id < actions.size(); ++id)
      roles_[role].lanes[lane_index(actions[id])].push_back(static_cast<ActionId>(id));
    for (const Chunk& chunk : plan.roles[role].chunks)
      role_of_piece_[static_cast<std::size_t>(chunk.piece)] = role;
  }
}

std::vector<At> Walk::next(std::size_t role, Lane lane) const {
  const auto id = head(role, lane);
  if (!id) return {};
  const Action& wanted = action(role, *id);
  std::vector<At> together;
  for (const auto& [party, kind] : parties(role, wanted)) {
    const auto other = head(
        party,
        lane_of(Action{
            .kind = kind, .direction = wanted.direction, .returns = wanted.returns, .after = {}}));
    if (!other) return {};
    const Action& its = action(party, *other);
    if (std::tie(its.kind, its.direction, its.what, its.micro_batch) !=
            std::tie(kind, wanted.direction, wanted.what, wanted.micro_batch) ||
        !may_run(party, *other))
      return {};
    together.push_back({party, *other});
  }
  return together;
}

void Walk::finish(const std::vector<At>& together) {
  for (const At& at : together) {
    State& state = roles_[at.role];
    state.done[static_cast<std::size_t>(at.action)] = true;
    ++state.next[lane_index(action(at.role, at.action))];
    while (state.first_open < state.done.size() && state.done[state.first_open]) ++state.first_open;
  }
}

std::optional<At> Walk::open() const {
  for (std::size_t role = 0; role < roles_.size(); ++role)
    if (roles_[role].first_open < roles_[role].done.size())
      return At{role, static_cast<ActionId>(roles_[role].first_open)};
  return std::nullopt;
}

std::optional<ActionId> Walk::head(std::size_t role, Lane lane) const {
  const auto index = static_cast<std::size_t>(lane);
  const State& state = roles_[role];
  if (state.next[index] == state.lanes[index].size()) return std::nullopt;
  return state.lanes[index][state.next[index]];
}

// The roles that take part in an action of `role`, with what each of them does.
std::vector<std::pair<std::size_t, ActionKind>> Walk::parties(std::size_t role,
                                                              const Action& action) const {
  std::vector<std::pair<std::size_t, ActionKind>> all;
  if (action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive) {
    const Crossing& crossing = plan_.crossings[static_cast<std::size_t>(action.what)];
    std::size_t from = role_of_piece_[static_cast<std::size_t>(crossing.from_piece)];
    std::size_t to = role_of_piece_[static_cast<std::size_t>(crossing.to_piece)];
    if (action.direction == Direction::kBackward) std::swap(from, to);
    return {{from, ActionKind::kSend}, {to, ActionKind::kReceive}};
  }
  if (action.kind == ActionKind::kReduceCopies) {
    for (const std::int32_t other : plan_.copies[static_cast<std::size_t>(action.what)].roles)
      all.emplace_back(static_cast<std::size_t>(other), action.kind);
  } else if (action.kind == ActionKind::kOptimizer && common_norm_) {
    for (std::size_t other = 0; other < roles_.size(); ++other)
      all.emplace_back(other, action.kind);
  } else {
    all.emplace_back(role, action.kind);
  }
  return all;
}

bool Walk::may_run(std::size_t role, ActionId id) const {
  const State& state = roles_[role];
  // The host issues nothing after a sync until its wait there is over.
  if (const auto sync = head(role, Lane::kHost); sync && *sync < id) return false;
  const Action& it = action(role, id);
  if (it.kind == ActionKind::kSync && it.after.empty())
    return state.first_open == static_cast<std::size_t>(id);
  return std::ranges::all_of(
      it.after, [&](ActionId earlier) { return state.done[static_cast<std::size_t>(earlier)]; });
}

HappensBefore::HappensBefore(const Role& role, bool blocking_launches) : role_(role) {
  const auto join = [](Done& into, const Done& other) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      into[lane] = std::max(into[lane], other[lane]);
  };
  Done host;    // what the host has waited for
  Done issued;  // the latest action of each lane
  host.fill(-1);
  issued.fill(-1);
  std::vector<Done> at_end(role.actions.size());
  for (std::size_t id = 0; id < role.actions.size(); ++id) {
    const Action& action = role.actions[id];
    const auto lane = lane_index(action);
    Done done = host;
    if (issued[lane] >= 0) join(done, at_end[static_cast<std::size_t>(issued[lane])]);
    for (const ActionId earlier : action.after)
      join(done, at_end[static_cast<std::size_t>(earlier)]);
    const bool is_sync = action.kind == ActionKind::kSync;
    if (is_sync && action.after.empty()) join(done, issued);
    at_start_.push_back(done);
    done[lane] = static_cast<ActionId>(id);
    if (is_sync || (blocking_launches && !is_transfer(action))) join(host, done);
    at_end[id] = done;
    issued[lane] = static_cast<ActionId>(id);
  }
}

bool HappensBefore::waits(ActionId later, ActionId earlier) const {
  const Action& before = role_.actions[static_cast<std::size_t>(earlier)];
  return at_start_[static_cast<std::size_t>(later)][lane_index(before)] >= earlier;
}

}  // namespace foreshard::plan
