/// \file
/// Writes a Report as text, JSON and CSV, for `foreshard accuracy --format`, and as a page of
/// documentation, for `--report FILE.md` (cli/accuracy.cc). The page names likely causes of errors,
/// derived from the scored rows alone: a correlation is a hint where to look, not a proof.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "evidence/accuracy.h"

#include "sim/study/records.h"
#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

/// Text for people: a table of summaries (all rows, tiers, files, sources, kernels) with the share
/// of measurements within their intervals; collectives by operation (CollectiveSummary); the
/// regret of searches; the five rows that are farthest off; and why rows have no prediction.
std::string to_text(const Report& report, const Paper& paper = {});

/// Schema foreshard.accuracy/1 (`foreshard schema accuracy`).
/// \param with_rows  whether "rows" is filled; otherwise it is empty.
std::string to_json(const Report& report, bool with_rows = true);
const record::Record<Report>& record_of(const Report*);

/// CSV with a header and one line per Outcome.
std::string to_csv(const Report& report);

/// The page in Markdown: rows, coverage, errors, bias, ranking and intervals of each table,
/// framework and kernel; the part of a step with which the errors of a table grow; errors of peak
/// memory; the ten rows that are farthest off, with their likely causes (likely_causes); and why
/// rows have no prediction. If some rows are of tier core, these sections cover tier core only,
/// except peak memory and missing predictions, and the other tiers have a section of their own.
std::string to_markdown(const Report& report);

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
