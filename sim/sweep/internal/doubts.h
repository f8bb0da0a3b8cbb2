/// \file
/// What a reader must know before the ranking of a sweep: options that it cannot rank, and points
/// that rest on unmeasured parameters.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep::internal {

/// What the points with an unknown price or energy lack, and what to give; the message has no "! "
/// mark.
struct Missing {
  std::string message{};
  std::vector<std::string> devices{};  ///< Device types without a price, or without power.
};
/// Empty message: nothing is missing.
Missing missing_of(const Results& results, const Ranking& ranking);

/// The remarks on evidence of all points that run (sim/study/evidence.h).
std::vector<std::string> evidence_of(const Results& results, const Ranking& ranking);

/// Lines that begin with "! ", the most decisive first; empty if there is nothing to say.
std::string doubts_text(const Results& results, const Ranking& ranking);

/// "The intervals of 2 other points overlap that of the first, 18.9 d to 23.4 d: ..."; or empty.
std::string overlap_text(const Results& results, const Ranking& ranking);

/// A measure of the sweep's ranking: "18.9 d", "1.2M USD", "3.4 GWh"; for tokens, per million.
std::string measure_words(double value, Measure by, Work work);

}  // namespace foreshard::sweep::internal
