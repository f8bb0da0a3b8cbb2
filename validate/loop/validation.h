/// \file
/// What `foreshard validate` found: of each study the prediction before calibration, what a replay
/// measured, and the prediction after. The first study is calibrated on (with microbenchmarks of
/// all); the others are predicted *blind*: nothing of their steps went into the numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/compare/compare.h"

namespace foreshard::loop {

inline constexpr std::string_view kValidationSchema = "foreshard.validation/1";

struct StudyResult {
  std::string study{};
  bool blind = false;
  compare::Comparison before{};
  std::optional<compare::Comparison> after{};  ///< Empty without calibration.

  const compare::Comparison& last() const { return after ? *after : before; }
};

struct Validation {
  std::vector<StudyResult> studies{};
  std::string machine{};     ///< Of the first measurement, for people.
  std::string calibrated{};  ///< Folder of the fitted files; empty without calibration.
};

/// How far off a step may be: `limit` (a ratio), or twice the spread of the measured steps where
/// that is more; nothing can be predicted better than it repeats.
double allowance(const compare::Comparison& comparison, double limit);

/// The studies whose last prediction is further off than its allowance.
std::vector<std::string> beyond(const Validation& validation, double limit);

std::string to_text(const Validation& validation);
/// Schema "foreshard.validation/1" (docs/validation.md).
std::string to_json(const Validation& validation);

}  // namespace foreshard::loop
