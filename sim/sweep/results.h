/// \file
/// A sweep as its results show it: the question, in names, and the outcomes. A results file holds
/// the same; the writers (output.h) need nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"
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
  /// Measure that ranks the points; with a goal: the measure that it minimises.
  Measure rank = Measure::kTime;
  std::optional<Goal> goal;
  bool sensitivities = false;
  /// The content of the sweep's file, by key: "study", "set.cluster.rent",
  /// "axes.adapters.400G.cluster...".
  std::map<std::string, std::string> said;
};
Question question_of(const LoadedSweep& sweep);

/// The command that repeats a point, to be run in the folder of the sweep's file: `foreshard
/// simulate` with everything that the sweep and, if there was one, the search set.
std::string command_of(const Question& question, std::size_t point, const Outcome& outcome);

const record::Record<AxisNames>& record_of(const AxisNames*);
const record::Record<Goal>& record_of(const Goal*);

/// The question in one line; equal for equal questions.
std::string text_of(const Question& question);
/// \return kInvalidInput if `text` does not come from text_of.
Result<Question> question_in(std::string_view text);

struct Results {
  Question question;
  std::vector<std::optional<Outcome>> outcomes;  ///< Indexed by point; empty: not done.

  std::int64_t done() const;
};
/// \return kInvalidInput if `json` does not come from sweep_json (output.h).
Result<Results> results_in(std::string_view json);

}  // namespace foreshard::sweep
