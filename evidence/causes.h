/// \file
/// Where an error is likely to come from, as far as the rows themselves tell. A correlation is a
/// hint where to look, not a proof.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/step_parts.h"

#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

/// The part of a step with whose share the errors of rows grow most.
struct Tendency {
  const StepPart* part = nullptr;
  double correlation = 0;  ///< Pearson's, of |error| against the part's share of the prediction.
};

/// Fewer rows than that, or a weaker correlation, tell nothing.
inline constexpr std::size_t kFewestOfTendency = 8;
inline constexpr double kWeakestTendency = 0.5;

/// \return empty where no part's correlation is at least kWeakestTendency.
std::optional<Tendency> tendency_of(const std::vector<const Outcome*>& rows);

/// "farthest off where the share of tensor-parallel communication is large (r = 0.81)".
std::string in_words(const Tendency& tendency);

/// Why the row may be off, the likeliest first: it is predicted not to fit; its framework or its
/// sizes leave something open; its rates are those of another device; its table has a tendency; or
/// only which part is the largest.
std::string likely_causes(const Outcome& row, const std::optional<Tendency>& table);

}  // namespace foreshard::accuracy
