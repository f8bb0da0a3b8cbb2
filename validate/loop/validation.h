/// \file
/// The result of `foreshard validate`: for each study the prediction before calibration, the
/// measurement of a replay, and the prediction after calibration. Calibration uses the first study
/// and microbenchmarks of all studies. The other studies are predicted *blind*: their measured
/// steps were not used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"

#include "validate/compare/compare.h"

namespace foreshard::loop {

struct StudyResult {
  std::string study{};
  bool blind = false;
  compare::Comparison before{};
  std::optional<compare::Comparison> after{};  ///< Empty without calibration.

  const compare::Comparison& last() const { return after ? *after : before; }
};

struct Validation {
  std::vector<StudyResult> studies{};
  std::string machine{};     ///< Machine of the first measurement, as text for people.
  std::string calibrated{};  ///< Folder of the fitted files; empty without calibration.
};

/// The largest relative error allowed for a step: `limit`, or twice the spread of the measured
/// steps if that is more, because no prediction can be better than the repeatability.
double allowance(const compare::Comparison& comparison, double limit);

/// Names of the studies whose last prediction has an error beyond its allowance.
std::vector<std::string> beyond(const Validation& validation, double limit);

std::string to_text(const Validation& validation, const Paper& paper = {});
/// Schema "foreshard.validation/1" (docs/validation.md).
std::string to_json(const Validation& validation);
const record::Record<Validation>& record_of(const Validation*);

}  // namespace foreshard::loop
