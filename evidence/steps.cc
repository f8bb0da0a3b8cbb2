// Tables of studies and their measured seconds (steps.h), and the file of measured steps.
#include "evidence/steps.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/yaml/quoted.h"
#include "evidence/training.h"

#include "sim/study/run.h"
#include "sim/study/study.h"
#include "validate/tables/cells.h"

namespace foreshard::accuracy {
namespace {

Outcome evaluate(Outcome outcome, const std::filesystem::path& file, const Context& context) {
  const auto failed = [&](const Error& error) {
    outcome.status =
        error.code == Error::Code::kInfeasible ? RowStatus::kInfeasible : RowStatus::kUnsupported;
    outcome.reason = error.message;
    return outcome;
  };
  if (!outcome.reason.empty()) return failed({Error::Code::kUnsupported, outcome.reason});
  const auto study = study::load_study(
      {.study = file,
       .parameters = context.communication_is_given ? &context.communication : nullptr},
      {.catalogue = context.catalogue});
  if (!study) return failed(study.error());
  const auto run = study::run_study(*study, {.every_class = false});
  if (!run) return failed(run.error());
  const double ratio = *outcome.measured / run->prediction.step.in_base();
  if (!(ratio >= study::kLeastRatio && ratio <= 1 / study::kLeastRatio))
    return failed({Error::Code::kUnsupported,
                   fmt::format("measured {:.3g} s, predicted {:.3g} s: that is another step",
                               *outcome.measured, run->prediction.step.in_base())});
  set_time(outcome, run->prediction);
  if (study->strategy.mode == Mode::kTrain) outcome.kind = study::kind_of(*study);
  outcome.strategy = study->strategy;
  outcome.assumed = study->assumed;
  return outcome;
}

}  // namespace

const std::vector<std::string>& step_columns() {
  static const std::vector<std::string> columns{"study", "seconds"};
  return columns;
}

Jobs step_jobs(const Table& table, const Context& context) {
  Jobs result{.jobs = {}, .outcomes = table.cells.rows.size()};
  const std::string name = table.path.string();
  for (std::size_t i = 0; i < table.cells.rows.size(); ++i) {
    Cells cells(table.cells, table.cells.rows[i], name);
    const auto file = table.path.parent_path() / cells.text("study");
    if (cells.text("study") == "-") cells.fault("a study on stdin cannot be read for each row");
    Outcome outcome;
    outcome.id = cells.id();
    outcome.family = "own steps";
    outcome.measured = cells.required("seconds");
    outcome.reason = cells.fault_text();
    result.jobs.push_back(
        {{i}, [file, outcome, &context] { return std::vector{evaluate(outcome, file, context)}; }});
  }
  return result;
}

std::string to_yaml(const study::MeasuredSteps& steps) {
  std::string text =
      "# Measured over predicted times of training steps, by what the steps are. Made by\n"
      "# `foreshard accuracy TABLE.csv ... --write-steps FILE`.\n"
      "measured_steps:\n";
  for (const study::MeasuredStepGroup& group : steps.groups) {
    std::string kind;
    for (const study::StepProperty& one : study::step_properties())
      kind += fmt::format("{}{}: {}", kind.empty() ? "" : ", ", one.key,
                          yaml::quoted(group.kind.*one.value));
    text += fmt::format("  - source: {}\n    steps: {}\n", yaml::quoted(group.source), group.steps);
    if (group.weight < 1) text += fmt::format("    weight: {}\n", group.weight);
    text += fmt::format("    kind: {{{}}}\n    ratios: [{:.4g}]\n", kind,
                        fmt::join(group.ratios, ", "));
  }
  return text;
}

}  // namespace foreshard::accuracy
