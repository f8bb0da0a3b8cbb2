/// \file
/// Writes a Report as text, JSON and CSV, for `foreshard accuracy --format` (cli/accuracy.cc).
#pragma once

#include <string>

#include "base/record/forward.h"
#include "evidence/accuracy.h"

namespace foreshard::accuracy {

/// Text for people: a table of summaries (all rows, tiers, files, sources, kernels) with the share
/// of measurements within their intervals; collectives by operation (collective_summary.h); the
/// regret of searches; the five rows that are farthest off; and why rows have no prediction.
std::string to_text(const Report& report);

/// Schema foreshard.accuracy/1 (`foreshard schema accuracy`).
/// \param with_rows  whether "rows" is filled; otherwise it is empty.
std::string to_json(const Report& report, bool with_rows = true);
const record::Record<Report>& record_of(const Report*);

/// CSV with a header and one line per Outcome.
std::string to_csv(const Report& report);

}  // namespace foreshard::accuracy
