#include "validate/loop/validation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "base/quantity.h"
#include "base/record/record.h"

#include "validate/compare/compare.h"

namespace foreshard::loop {
namespace {

using compare::Comparison;
using compare::percent;
using compare::Row;
using record::at;
using record::Record;

// The row with the largest error of its booked time.
const Row* worst(const Comparison& comparison) {
  return comparison.residuals.empty() ? nullptr : &comparison.residuals.front();
}

struct Predicted {
  Seconds step;
  std::optional<double> error_pct;
};

Predicted predicted_by(const Comparison& comparison) {
  return {comparison.step.predicted, compare::error_percentage(comparison.step)};
}

const Record<Predicted>& record_of(const Predicted*) {
  static const auto record = Record<Predicted>("prediction")
                                 .field("predicted_s", &Predicted::step)
                                 .field("error_pct", &Predicted::error_pct);
  return record;
}

}  // namespace

double allowance(const Comparison& comparison, double limit) {
  return std::max(limit, 2 * comparison.spread);
}

std::vector<std::string> beyond(const Validation& validation, double limit) {
  std::vector<std::string> names;
  for (const StudyResult& one : validation.studies) {
    const auto error = one.last().step.error();
    if (std::abs(error.value_or(std::numeric_limits<double>::infinity())) >
        allowance(one.last(), limit))
      names.push_back(one.study);
  }
  return names;
}

std::string to_text(const Validation& of, const Paper& paper) {
  Page page(paper);
  if (!of.machine.empty()) page.line(fmt::format("measured on {}\n", of.machine));
  TextTable table(
      {"<study", ">measured", ">spread", ">uncalibrated", ">error", ">calibrated", ">error", "<"});
  for (const StudyResult& one : of.studies) {
    const auto& before = one.before;
    table.row(one.study, format(before.step.measured), fmt::format("{:.1f} %", 100 * before.spread),
              format(before.step.predicted), percent(before.step.error()),
              one.after ? format(one.after->step.predicted) : "-",
              one.after ? percent(one.after->step.error()) : "-",
              !one.after  ? ""
              : one.blind ? "blind"
                          : "calibrated on");
  }
  page.table(table);
  if (!of.calibrated.empty())
    page.line(fmt::format("\ncalibrated: the first study and microbenchmarks of all; see {}",
                          of.calibrated));
  page.line("\nLargest residual of each (share of its step's error)");
  TextTable residuals({"<", "<"});
  for (const StudyResult& one : of.studies)
    if (const Row* row = worst(one.last()))
      residuals.row(one.study,
                    fmt::format("{}: booked {} predicted, {} measured ({})", row->name,
                                format(row->booked.predicted), format(row->booked.measured),
                                percent(row->share_of_error)));
  page.table(residuals);
  return std::move(page).take();
}

const Record<StudyResult>& record_of(const StudyResult*) {
  using Of = StudyResult;
  using compare::Pair;
  static const auto measured =
      Record<Comparison>()
          .field("step_s", at<&Comparison::step, &Pair::measured>)
          .field("low_s", &Comparison::low, "10th percentile.")
          .field("high_s", &Comparison::high, "90th percentile.")
          .field("spread_pct", at<&Comparison::spread, &compare::percentage>);
  static const auto record =
      Record<Of>("study")
          .field("study", &Of::study)
          .field("blind", &Of::blind, "Whether nothing of it was calibrated on.")
          .field("repeats", at<&Of::before, &Comparison::repeats>)
          .group("measured", &Of::before, measured)
          .field("before", at<&Of::before, &predicted_by>)
          .field("after", [](const Of& of) {
            return of.after ? std::optional(predicted_by(*of.after)) : std::nullopt;
          });
  return record;
}

const Record<Validation>& record_of(const Validation*) {
  static const auto record =
      Record<Validation>::result("foreshard.validation/1",
                                 "Predictions before and after calibration beside what was "
                                 "measured, as `validate` writes them (docs/validation.md).")
          .field("machine", &Validation::machine)
          .field("calibrated", record::unless_empty<&Validation::calibrated>,
                 "The file of the calibrated numbers.")
          .field("studies", &Validation::studies);
  return record;
}

std::string to_json(const Validation& of) {
  return record::text_of(record::write(of), 2);
}

}  // namespace foreshard::loop
