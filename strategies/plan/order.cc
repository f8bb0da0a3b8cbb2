#include "strategies/plan/order.h"

#include <algorithm>

namespace foreshard::plan {

Order::Order(const Role& role, bool blocking_launches) : role_(role) {
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

bool Order::waits(ActionId later, ActionId earlier) const {
  const Action& before = role_.actions[static_cast<std::size_t>(earlier)];
  return at_start_[static_cast<std::size_t>(later)][lane_index(before)] >= earlier;
}

}  // namespace foreshard::plan
