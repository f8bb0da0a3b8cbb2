#include "validate/loop/validation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/quantity.h"

#include "validate/compare/compare.h"

namespace foreshard::loop {
namespace {

using Json = nlohmann::ordered_json;
using compare::Comparison;
using compare::percent;
using compare::Row;

// The row with the largest error of its booked time.
const Row* worst(const Comparison& comparison) {
  return comparison.residuals.empty() ? nullptr : &comparison.residuals.front();
}

Json step_of(const Comparison& comparison) {
  const auto error = comparison.step.error();
  return {{"predicted_s", comparison.step.predicted.in_base()},
          {"error_pct", error ? Json(100 * *error) : Json()}};
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

std::string to_text(const Validation& of) {
  std::string out;
  const auto to = std::back_inserter(out);
  if (!of.machine.empty()) fmt::format_to(to, "measured on {}\n\n", of.machine);
  fmt::format_to(to, "{:<24} {:>10} {:>8} {:>12} {:>9} {:>12} {:>9}  {}\n", "study", "measured",
                 "spread", "uncalibrated", "error", "calibrated", "error", "");
  for (const StudyResult& one : of.studies) {
    const auto& before = one.before;
    fmt::format_to(to, "{:<24} {:>10} {:>7.1f} % {:>11} {:>9} {:>12} {:>9}  {}\n", one.study,
                   format(before.step.measured), 100 * before.spread, format(before.step.predicted),
                   percent(before.step.error()),
                   one.after ? format(one.after->step.predicted) : "-",
                   one.after ? percent(one.after->step.error()) : "-",
                   !one.after  ? ""
                   : one.blind ? "blind"
                               : "calibrated on");
  }
  if (!of.calibrated.empty())
    fmt::format_to(to, "\ncalibrated: the first study and microbenchmarks of all; see {}\n",
                   of.calibrated);
  out += "\nLargest residual of each (share of its step's error)\n";
  for (const StudyResult& one : of.studies) {
    if (const Row* row = worst(one.last()))
      fmt::format_to(to, "  {:<22} {}: booked {} predicted, {} measured ({})\n", one.study,
                     row->name, format(row->booked.predicted), format(row->booked.measured),
                     percent(row->share_of_error));
  }
  return out;
}

std::string to_json(const Validation& of) {
  Json json{{"schema", kValidationSchema},
            {"machine", of.machine},
            {"calibrated", of.calibrated.empty() ? Json() : Json(of.calibrated)},
            {"studies", Json::array()}};
  for (const StudyResult& one : of.studies) {
    const Comparison& before = one.before;
    json["studies"].push_back({{"study", one.study},
                               {"blind", one.blind},
                               {"repeats", before.repeats},
                               {"measured",
                                {{"step_s", before.step.measured.in_base()},
                                 {"low_s", before.low.in_base()},
                                 {"high_s", before.high.in_base()},
                                 {"spread_pct", 100 * before.spread}}},
                               {"before", step_of(before)},
                               {"after", one.after ? step_of(*one.after) : Json()}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foreshard::loop
