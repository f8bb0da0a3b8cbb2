/// \file
/// Ranks that behave alike: roles, split until all ranks of a class meet the same classes in each
/// of their groups (colour refinement). What holds for one rank of a class holds for all, so that
/// matching and deadlocks are checked on one representative each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program::internal {

/// A class that meets in a group, and which of its role's groups it knows it as.
struct Attendee {
  std::int32_t rank_class = 0;
  std::int32_t group = 0;
  auto operator<=>(const Attendee&) const = default;
};

struct RankClass {
  std::int32_t role = 0;
  std::int32_t representative = 0;  ///< The lowest rank.
  /// Per group of the role: the first of its groups with the same ranks (itself, mostly). Groups
  /// written differently that hold the same ranks are one.
  std::vector<std::int32_t> same_as;
  /// Per group of the role: who meets there, ascending, itself included; of an AxisPeer the other
  /// side only.
  std::vector<std::vector<Attendee>> attendees;
};

struct RankClasses {
  /// Per role: its distinct groups, in the order of first use by block and task.
  std::vector<std::vector<const Group*>> groups_of_role;
  std::vector<RankClass> classes;  ///< By role, then lowest rank.
};

/// \pre invariants 1 to 14.
/// \return invariant 16 or 17 if a rank names a group that it is not in, sends to itself, or
///     belongs to a group that it never names.
Result<RankClasses> rank_classes(const Program& program);

}  // namespace foreshard::program::internal
