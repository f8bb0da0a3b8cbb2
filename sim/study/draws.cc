// Simulates steps of a graph whose conditions are drawn anew (draws.h), for `foreshard simulate`.
#include "sim/study/draws.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/study/run.h"

namespace foreshard::study {
namespace {

bool has_conditions(const Graph& graph) {
  return std::ranges::any_of(graph.operators,
                             [](const Operator& op) { return op.type == "condition"; }) ||
         std::ranges::any_of(graph.bodies, has_conditions);
}

// \pre `steps` ascends.
Seconds percentile(const std::vector<Seconds>& steps, double part) {
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(steps.size())));
  return steps[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

Result<DrawnSteps> drawn_steps(LoadedStudy study, const sim::SimulateOptions& options,
                               std::int64_t draws) {
  if (!study.graph || !has_conditions(study.graph->graph))
    return Error{Error::Code::kInvalidInput,
                 "nothing of the step is drawn: only graphs with conditions have branches"};
  std::vector<Seconds> steps;
  Seconds sum;
  for (std::int64_t i = 0; i < draws; ++i) {
    FORESHARD_ASSIGN(const StudyRun run, run_study(study, options));
    steps.push_back(run.prediction.step);
    sum += run.prediction.step;
    ++study.graph->seed;
  }
  std::ranges::sort(steps);
  constexpr double kLow = 0.1;
  constexpr double kMiddle = 0.5;
  constexpr double kHigh = 0.9;
  return DrawnSteps{.draws = draws,
                    .mean = sum / static_cast<double>(draws),
                    .low = percentile(steps, kLow),
                    .median = percentile(steps, kMiddle),
                    .high = percentile(steps, kHigh)};
}

}  // namespace foreshard::study
