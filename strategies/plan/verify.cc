// Checks the invariants of a plan (step_plan.h, verify), which tests do for every plan.
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "strategies/plan/internal/verify_role.h"
#include "strategies/plan/walk.h"

namespace foreshard::plan {
namespace {

std::optional<std::string> places_fault(const StepPlan& plan) {
  std::vector<std::int32_t> uses(plan.parts.units.size(), 0);
  for (const Role& role : plan.roles) {
    for (const Chunk& chunk : role.chunks)
      for (std::size_t unit = 0; unit < uses.size(); ++unit)
        if (chunk.units.contains(static_cast<std::int32_t>(unit))) ++uses[unit];
  }
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i] != 1)
      return fmt::format("invariant 1: {} is in {} chunks", plan.parts.units[i].name, uses[i]);
  return std::nullopt;
}

std::optional<std::string> micro_batches_fault(const StepPlan& plan) {
  std::optional<std::set<std::int32_t>> of_first;
  for (const Role& role : plan.roles) {
    std::set<std::int32_t> own;
    for (const PassSlot& slot : role.slots)
      for (std::int32_t m = 0; m < role.together; ++m) own.insert(slot.micro_batch + m);
    if (!of_first) of_first = own;
    if (own != *of_first)
      return fmt::format("invariant 2: {} has other micro-batches than {}", role.name,
                         plan.roles.front().name);
  }
  return std::nullopt;
}

std::optional<std::string> pairs_fault(const StepPlan& plan) {
  std::map<std::pair<std::int32_t, Direction>, std::array<std::vector<std::int32_t>, 2>> order;
  for (const Role& role : plan.roles) {
    for (const Action& action : role.actions) {
      if (!is_transfer(action)) continue;
      order[{action.what, action.direction}][action.kind == ActionKind::kSend ? 0 : 1].push_back(
          action.micro_batch);
    }
  }
  for (const auto& [crossing, sides] : order)
    if (sides[0] != sides[1])
      return fmt::format("invariant 6: crossing {}: sends and receives differ in order",
                         crossing.first);
  return std::nullopt;
}

// Runs the lanes of all roles as far as they get.
std::optional<std::string> walk_fault(const StepPlan& plan) {
  Walk walk(plan, true);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t role = 0; role < plan.roles.size(); ++role) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        for (auto ready = walk.next(role, static_cast<Lane>(lane)); !ready.empty();
             ready = walk.next(role, static_cast<Lane>(lane))) {
          walk.finish(ready);
          moved = true;
        }
      }
    }
  }
  const auto open = walk.open();
  if (!open) return std::nullopt;
  return fmt::format("invariant 9: {} waits for ever at action {}", plan.roles[open->role].name,
                     open->action);
}

}  // namespace

Status verify(const StepPlan& plan) {
  const auto error = [&](const std::string& text) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("step plan '{}': {}", plan.parts.name, text)};
  };
  if (const auto fault = places_fault(plan)) return error(*fault);
  for (std::size_t role = 0; role < plan.roles.size(); ++role)
    if (const auto fault = internal::fault_in_role(plan, role)) return error(*fault);
  if (const auto fault = micro_batches_fault(plan)) return error(*fault);
  if (const auto fault = pairs_fault(plan)) return error(*fault);
  if (const auto fault = walk_fault(plan)) return error(*fault);
  return {};
}

}  // namespace foreshard::plan
