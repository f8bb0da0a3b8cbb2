/// \file
/// What a reader must know before the ranking of a sweep: options that it cannot rank, and points
/// that rest on numbers which nobody measured.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep::internal {

/// What is missing of points whose price or energy is not known, and what to give; without its
/// mark.
struct Missing {
  std::string message{};
  std::vector<std::string> devices{};  ///< Device types without a price, or without power.
};
/// Nothing is missing: an empty message.
Missing missing_of(const Results& results, const Ranking& ranking);

/// The remarks on evidence of all points that run (sim/study/evidence.h).
std::vector<std::string> evidence_of(const Results& results, const Ranking& ranking);

/// Lines that begin with "! ", what decides first; empty where there is nothing to say.
std::string doubts_text(const Results& results, const Ranking& ranking);

/// "The intervals of 2 other points overlap that of the first, 18.9 d to 23.4 d: ..."; or empty.
std::string overlap_text(const Results& results, const Ranking& ranking);

/// A measure of the sweep's ranking: "18.9 d", "1.2M USD", "3.4 GWh". Of tokens, of a million.
std::string measure_words(double value, Measure by, Work work);

}  // namespace foreshard::sweep::internal
