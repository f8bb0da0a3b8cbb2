/// \file
/// `compare A B` where both sides are predictions: studies, or predictions written as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/options.h"

#include "sim/report/side_by_side.h"

namespace foreshard::cli {

/// Whether `name` is a study's file, the name of a study in the catalogue, or a prediction's JSON.
/// Otherwise it is taken for a measurement.
/// \return kInvalidInput for JSON that says it is something else ("foreshard.search/1").
Result<bool> is_predicted(const std::string& name);

/// Whether `name` is a cluster: a file, or a name in the catalogue that no study has.
bool is_cluster(const std::string& name, const Environment& environment);

struct SidesGiven {
  const StudyOptions& a;               ///< STUDY.yaml and its options.
  std::string b;                       ///< Second side; empty: A with `sets_of_b`.
  std::vector<std::string> sets_of_b;  ///< --set-b
  std::string break_even;              ///< "KEY=LOW..HIGH", or empty
  std::string metric = "time";         ///< "time", "usd" or "energy"
};

/// Simulates both sides and compares them.
/// \return kInvalidInput if an option does not apply to what is compared; errors of loading and
///     simulating the sides.
Result<report::SideBySide> side_by_side(const SidesGiven& given, const Environment& environment);

}  // namespace foreshard::cli
