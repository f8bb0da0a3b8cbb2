/// \file
/// The cheapest paths through the attributes of one mesh (R2.6). Attributes are the states of a
/// graph; its edges are primitives on one axis, or on several axes as one collective over the
/// joined group.
///
/// Not tried, since it cannot help or helps too rarely: moving an axis that is already where the
/// target has it; gathering an axis to cut it where the target does not want it. Replicated axes
/// that the target does not split may be *parked* on some dimension meanwhile: the following steps
/// then move fewer bytes, and an all-gather at the end restores them (an all-reduce becomes
/// reduce-scatter, a step on fewer bytes, all-gather).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "strategies/reshard/internal/draft.h"

namespace foreshard::reshard::internal {

struct Route {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};
  Attribute to{};
};

/// The edges that leave `at` on the way from `from` to `to`. All three are canonical.
std::vector<Route> routes_from(const Attribute& at, const Attribute& from, const Attribute& to,
                               const Grid& grid);

/// The axes that a local pad must still make partial to get from `at` to `to`, if nothing else is
/// missing.
/// \return no value if more is missing; an empty list at `to` itself
std::optional<std::vector<Axis>> pad_to(const Attribute& at, const Attribute& to, const Grid& grid);

/// A step without a price, and the reason.
struct Failure {
  DraftStep step{};
  std::string reason{};
};
inline constexpr Seconds kNoLimit = Seconds::from_base(std::numeric_limits<double>::infinity());
/// Up to `most` paths that take at most `limit`, cheapest first, none through a state twice.
/// Considers up to 1,500 states, nearest first; where a tensor has more (beyond about four axes) a
/// path may be missed. A step is priced only if a path with it may be among the results. `failures`
/// receives the steps without a price, each with the reason.
std::vector<Draft> cheapest_paths(const Place& from, const Place& to, std::size_t most,
                                  Seconds limit, Pricer& pricer, std::vector<Failure>& failures);

}  // namespace foreshard::reshard::internal
