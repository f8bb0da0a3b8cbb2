/// \file
/// Likely causes of prediction errors, derived from the scored rows alone: which part of a step the
/// errors of a table correlate with, and what is uncertain about a single row. A correlation is a
/// hint where to look, not a proof. Used by markdown.cc for the page of `foreshard accuracy
/// --report`.
#pragma once

#include <optional>
#include <string>
#include <vector>


#include "sim/study/records.h"
#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

/// The part of a step whose share of the prediction correlates most with the errors of the rows.
struct Tendency {
  const sim::BreakdownPart* part = nullptr;
  double correlation = 0;  ///< Pearson's r of |error| and the part's share of the prediction.
};

/// A tendency needs at least this many rows and at least this correlation.
inline constexpr std::size_t kFewestOfTendency = 8;
inline constexpr double kWeakestTendency = 0.5;

/// \return Nothing if there are fewer than kFewestOfTendency rows with a breakdown, or no part's
///     correlation reaches kWeakestTendency.
std::optional<Tendency> tendency_of(const std::vector<const Outcome*>& rows);

/// The tendency as text, such as "farthest off where the share of tensor-parallel communication is
/// large (r = 0.81)".
std::string in_words(const Tendency& tendency);

/// Reasons why the row may be off, as text, the likeliest first: the remark on the row (such as
/// that it is predicted not to fit), the settings that were assumed, rates or links that were not
/// measured on its devices, and the tendency of its table. Last come the shares of computation and
/// of the largest other part.
/// \param table  the tendency of the row's table, if it has one.
std::string likely_causes(const Outcome& row, const std::optional<Tendency>& table);

}  // namespace foreshard::accuracy
