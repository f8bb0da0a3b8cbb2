/// \file
/// A sweep as its results show it: what was asked, in names, and what came out. A results file
/// holds as much; the writers (output.h) need nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "sim/sweep/grid.h"
#include "sim/sweep/outcome.h"
#include "sim/sweep/sweep.h"

namespace foreshard::sweep {

struct Question {
  std::string name;
  std::string description;
  std::vector<AxisNames> axes;
  bool searched = false;
  std::optional<std::string> train;
  Measure rank = Measure::kTime;  ///< Of a goal: what it minimises.
  std::optional<Goal> goal;
  bool sensitivities = false;
  /// What the sweep's file says, by key: "study", "set.cluster.rent",
  /// "axes.adapters.400G.cluster...".
  std::map<std::string, std::string> said;
};
Question question_of(const LoadedSweep& sweep);

/// The command that repeats a point, run where the sweep's file is: `foreshard simulate` with all
/// that the sweep and, if one was made, the search set.
std::string command_of(const Question& question, std::size_t point, const Outcome& outcome);

/// One line, the same for the same question.
std::string text_of(const Question& question);
/// \return kInvalidInput if `text` is none that text_of writes.
Result<Question> question_in(std::string_view text);

struct Results {
  Question question;
  std::vector<std::optional<Outcome>> outcomes;  ///< By point; empty where it is not done.

  std::int64_t done() const;
};
/// \return kInvalidInput if `json` is not what sweep_json (output.h) writes.
Result<Results> results_in(std::string_view json);

}  // namespace foreshard::sweep
