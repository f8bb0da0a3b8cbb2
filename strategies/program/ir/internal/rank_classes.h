/// \file
/// Classes of ranks that behave alike: roles, split until all ranks of a class meet the same
/// classes in each of their groups (colour refinement). What holds for one rank of a class holds
/// for all, so matching and deadlocks are checked on one representative of each class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/program.h"

namespace foreshard::program::internal {

/// `number`: the invariant's number in verify.h.
inline Error violation(int number, const std::string& place, const std::string& why) {
  return {Error::Code::kInvalidInput, "program: " + (place.empty() ? "" : place + ": ") + why +
                                          " (invariant " + std::to_string(number) + ")"};
}

inline std::string in_quotes(const std::string& name) {
  return "'" + name + "'";
}

/// "block 'layer fwd' task 3 'qkv'".
inline std::string place_of(const Block& block, std::size_t task) {
  return "block " + in_quotes(block.name) + " task " + std::to_string(task) + " " +
         in_quotes(block.tasks[task].name);
}
/// "role 'stage 0' call 12".
inline std::string place_of(const Role& role, std::size_t call) {
  return "role " + in_quotes(role.name) + " call " + std::to_string(call);
}

/// A class that takes part in a group, and the index of that group among the groups of its role.
struct GroupMember {
  std::int32_t rank_class = 0;
  std::int32_t group = 0;
  auto operator<=>(const GroupMember&) const = default;
};

struct RankClass {
  std::int32_t role = 0;
  std::int32_t representative = 0;  ///< The lowest rank.
  /// Per group of the role: the first of the role's groups with the same ranks (mostly itself).
  /// Groups that are written differently but hold the same ranks count as one.
  std::vector<std::int32_t> same_as;
  /// Per group of the role: the classes that take part, ascending, this class included; for an
  /// AxisPeer only the class on the other side.
  std::vector<std::vector<GroupMember>> attendees;
};

struct RankClasses {
  /// Per role: its distinct groups, in the order of first use by block and task.
  std::vector<std::vector<const Group*>> groups_of_role;
  std::vector<RankClass> classes;  ///< Sorted by role, then lowest rank.
};

/// \pre invariants 1 to 14.
/// \return invariant 16 or 17 if a rank names a group that it is not in, sends to itself, or
///     belongs to a group that it never names.
Result<RankClasses> rank_classes(const Program& program);

// The step without times: operations of the rank classes are matched and run in any order that the
// rules of program.h allow. Whether the step ends does not depend on the order: once a task may
// start, nothing that happens later prevents it.

/// Invariants 17 (operations match) and 18 (no deadlock).
/// \param expansions  one per role.
/// \pre invariants 1 to 16.
Status dry_run(const Program& program, const RankClasses& classes,
               const std::vector<Expansion>& expansions);

}  // namespace foreshard::program::internal
