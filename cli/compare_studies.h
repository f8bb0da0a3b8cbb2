/// \file
/// `compare A B` where both are predicted: two studies, or predictions that were written as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/options.h"

#include "sim/report/side_by_side.h"

namespace foreshard::cli {

/// Whether `name` stands for something predicted: a study's file, the name of one in the catalogue,
/// or a prediction's JSON. Else it is taken for a measurement.
/// \return kInvalidInput for JSON that says it is something else ("foreshard.search/1").
Result<bool> is_predicted(const std::string& name);

/// Whether `name` stands for a cluster: a file, or a name of the catalogue that no study
/// has.
bool is_cluster(const std::string& name, const Environment& environment);

struct SidesGiven {
  const StudyOptions& a;               ///< STUDY.yaml and its options.
  std::string b;                       ///< Empty: A with `sets_of_b`.
  std::vector<std::string> sets_of_b;  ///< --set-b
  std::string break_even;              ///< "KEY=LOW..HIGH", or empty
  std::string metric = "time";         ///< "time", "usd" or "energy"
};

/// \return kInvalidInput where an option does not go with what is compared, and what loading and
///     simulating the sides return.
Result<report::SideBySide> side_by_side(const SidesGiven& given, const Environment& environment);

}  // namespace foreshard::cli
