/// \file
/// The results of a sweep as text for people, as JSON (schema foreshard.sweep/1) and as CSV. The
/// same results give the same bytes, whoever computed them.
///
/// In the JSON, `work` says what times, USD and kWh of points are about: the whole training, a
/// token or a sample (ranking.h). Unknown values are null. The CSV has one line per point, and
/// therefore no break-even points (crossings.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/page.h"
#include "base/record/forward.h"

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep {

inline constexpr std::string_view kSweepSchema = "foreshard.sweep/1";

/// Results and their ranking; output.cc defines it.
struct SweepReport;
const record::Record<SweepReport>& record_of(const SweepReport*);

/// The `top` best points, the `top` best points for each value of each axis, and the verdict on the
/// goal.
std::string sweep_text(const Results& results, const Ranking& ranking, std::int64_t top,
                       const Paper& paper = {});
std::string sweep_json(const Results& results, const Ranking& ranking);
/// One line for each point that is done, in the order of the grid.
std::string sweep_csv(const Results& results, const Ranking& ranking);

}  // namespace foreshard::sweep
