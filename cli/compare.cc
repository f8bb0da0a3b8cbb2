#include "validate/compare/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/compare_studies.h"
#include "cli/declaration.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/page/page.h"
#include "sim/study/run.h"
#include "sim/sweep/comparison.h"
#include "sim/sweep/output.h"
#include "sim/sweep/store.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "validate/measurement/measurement.h"

namespace foreshard::cli {
namespace {

// `compare A B` of two results files of `foreshard study`: SQLite files written with --results, or
// JSON written with --format json.

struct SweepsGiven {
  std::string a;
  std::string b;
  std::vector<std::string> options;  // Names of the options that were given: "--set".
  std::string format;                // "text" or "json"
};

constexpr std::int64_t kMostPairs = 20;  // pairs of points listed in the text

// Whether a file is a results file of `foreshard study`, by its content; it may be damaged.
bool holds_sweep(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return false;
  if (sweep::is_database(path)) return true;
  if (!path.ends_with(".json")) return false;
  const auto text = read_file(path, limits::kSweep);
  if (!text) return false;
  return schema_in(*text) == sweep::kSweepSchema;
}

Result<sweep::Results> sweep_in(const std::string& path) {
  if (sweep::is_database(path)) {
    std::vector<std::string> remarks;
    auto results = sweep::read_results(path, remarks);
    for (const std::string& remark : remarks) note(remark);
    return results;
  }
  FORESHARD_ASSIGN(const std::string text, read_file(path, limits::kSweep));
  auto results = sweep::results_in(text);
  if (!results) return Error{results.error().code, path + ": " + results.error().message};
  return results;
}

Status fault_in(const SweepsGiven& given) {
  const auto fault = [](std::string why) {
    return Error{Error::Code::kInvalidInput, std::move(why)};
  };
  constexpr std::array<std::string_view, 2> kAllowed{"--format", "--output"};
  for (const std::string& option : given.options)
    if (option.starts_with("--") && std::ranges::find(kAllowed, option) == kAllowed.end())
      return fault(fmt::format(
          "{} is of studies, but results of grids of them are given; leave it out", option));
  const std::string& sweep = holds_sweep(given.a) ? given.a : given.b;
  const std::string& other = holds_sweep(given.a) ? given.b : given.a;
  if (other.empty())
    return fault(
        fmt::format("{} holds results of a grid of studies: name the other ones that they "
                    "are compared with",
                    sweep));
  std::error_code status;
  if (!std::filesystem::exists(other, status)) return fault(other + ": there is no such file");
  if (!holds_sweep(other))
    return fault(
        fmt::format("{} holds results of a grid of studies, {} does not; foreshard study "
                    "SWEEP.yaml --results FILE makes them",
                    sweep, other));
  return {};
}

Error no_markdown(std::string_view what) {
  return {Error::Code::kInvalidInput,
          fmt::format("--format markdown: there is none of {}; use text or json", what)};
}

// The comparison as text or JSON.
// \pre holds_sweep(a) or holds_sweep(b).
// \return kInvalidInput if the other file is something else or an option has no effect; errors of
//     sweep::compare and the readers of results files (kInvalidInput, kIo).
Result<std::string> compared_sweeps(const SweepsGiven& given, const Paper& paper) {
  FORESHARD_TRY(fault_in(given));
  if (given.format == "markdown") return no_markdown("two results of study");
  FORESHARD_ASSIGN(const sweep::Results a, sweep_in(given.a));
  FORESHARD_ASSIGN(const sweep::Results b, sweep_in(given.b));
  FORESHARD_ASSIGN(const sweep::Comparison comparison, sweep::compare(a, b));
  return given.format == "json" ? sweep::comparison_json(a, b, comparison)
                                : sweep::comparison_text(a, b, comparison, kMostPairs, paper);
}

class Compare final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration_ = declaration;
    study_.declare(declaration);
    declaration.argument("OTHER", measurement_,
                         "Measurement of the study's Program by foreshard-replay; or another study "
                         "(file or catalogue name), or a prediction as JSON, to put beside the "
                         "first, which may be a prediction, too. Or a cluster, to put in the first "
                         "one's place; the first may be one, too, with --model and --strategy. Or "
                         "both are results of foreshard study: --results files, or JSON.");
    declaration.repeatable("--set-b", "KEY=VALUE", sets_of_b_,
                           "Beside another study: set a value of that one alone; without one, of "
                           "the study itself, which is then put beside what it was.");
    declaration.option("--break-even", "KEY=LOW..HIGH", break_even_,
                       "Beside another study: find the value of KEY there at which both are the "
                       "same.");
    declaration.choice("--by", metric_, {"time", "usd", "energy"},
                       "What --break-even makes the same, of a step.");
    declaration.option("--program", "FILE", program_,
                       "The Program that was replayed, on the study's cluster; by default the one "
                       "that the study makes.");
    declaration.option("--max-error", "PERCENT", limit_,
                       "Exit with code 4 if the error of the predicted step is larger.");
    declaration.output("--trace", "FILE", trace_,
                       "Write both time lines, one above the other, for ui.perfetto.dev: .json or "
                       ".json.gz.");
    declaration.count("--residuals", residuals_, 0, "How many of the largest residuals to show.");
    add_format(declaration, format_, {"text", "json", "markdown"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (holds_sweep(study_.study()) || holds_sweep(measurement_)) {
      FORESHARD_ASSIGN(const std::string text, compared_sweeps({.a = study_.study(),
                                                                .b = measurement_,
                                                                .options = declaration_->given(),
                                                                .format = format_},
                                                               paper_for(output_)));
      FORESHARD_TRY(write_result(output_, text));
      return kDone;
    }
    FORESHARD_TRY(take_clusters(environment));
    FORESHARD_ASSIGN(const bool predicted, is_predicted(measurement_));
    if (predicted || !sets_of_b_.empty()) return put_beside(environment);
    FORESHARD_TRY(only_beside_studies());
    if (format_ == "markdown") return no_markdown("a study beside a measurement");
    std::optional<double> limit;
    if (!limit_.empty()) {
      FORESHARD_ASSIGN(limit, percentage(limit_));
    }
    FORESHARD_TRY(refuse_trace(trace_, output_, std::array<std::string_view, 1>{".json"}));
    FORESHARD_ASSIGN(const auto comparison, compared(environment));
    const std::string text =
        format_ == "json" ? compare::to_json(comparison)
                          : compare::to_text(comparison, static_cast<std::size_t>(residuals_),
                                             paper_for(output_));
    FORESHARD_TRY(write_result(output_, text));
    return limit ? gate(comparison, *limit) : kDone;
  }

 private:
  // Handles clusters that are given in place of studies. A cluster as A becomes --cluster of A's
  // parts; a cluster as B replaces A's cluster.
  Status take_clusters(const Environment& environment) {
    if (is_cluster(study_.study(), environment)) {
      if (is_given("--cluster"))
        return Error{Error::Code::kInvalidInput,
                     fmt::format("{} is a cluster, and --cluster names one too; leave it out",
                                 study_.study())};
      study_ = study_.on_cluster();
    }
    if (is_cluster(measurement_, environment)) {
      sets_of_b_.insert(sets_of_b_.begin(), "cluster=" + measurement_);
      measurement_.clear();
    }
    return {};
  }

  // Compares two predictions.
  Result<ExitCode> put_beside(const Environment& environment) const {
    for (const auto& [flag, value] :
         {std::pair("--program", &program_), std::pair("--max-error", &limit_),
          std::pair("--trace", &trace_)})
      if (!value->empty())
        return Error{Error::Code::kInvalidInput,
                     fmt::format("{} is of a study beside a measurement; leave it out", flag)};
    if (is_given("--residuals"))
      return Error{Error::Code::kInvalidInput,
                   "--residuals is of a study beside a measurement; leave it out"};
    if (break_even_.empty() && is_given("--by"))
      return Error{
          Error::Code::kInvalidInput,
          "--by says what --break-even makes the same; give --break-even KEY=LOW..HIGH, or "
          "leave it out"};
    const Busy busy("comparing");
    FORESHARD_ASSIGN(const auto sides, side_by_side({.a = study_,
                                                     .b = measurement_,
                                                     .sets_of_b = sets_of_b_,
                                                     .break_even = break_even_,
                                                     .metric = metric_},
                                                    environment));
    std::string text =
        format_ == "text" ? report::to_text(sides, paper_for(output_)) : report::to_json(sides);
    if (format_ == "markdown") {
      FORESHARD_ASSIGN(text, page::markdown_of(text));
    }
    FORESHARD_TRY(write_result(output_, text));
    return kDone;
  }

  bool is_given(std::string_view option) const {
    return std::ranges::count(declaration_->given(), option) > 0;
  }

  Status only_beside_studies() const {
    if (measurement_.empty())
      return Error{Error::Code::kInvalidInput,
                   "give what the study is compared with: MEASUREMENT.json of foreshard-replay, "
                   "another study, a prediction as JSON, or --set-b KEY=VALUE"};
    if (is_given("--by") && break_even_.empty())
      return Error{Error::Code::kInvalidInput,
                   "--by is of two studies; " + measurement_ + " is a measurement"};
    if (break_even_.empty()) return {};
    return Error{Error::Code::kInvalidInput,
                 "--break-even is of two studies; " + measurement_ + " is a measurement"};
  }

  Result<compare::Comparison> compared(const Environment& environment) const {
    const Busy busy("comparing");
    FORESHARD_ASSIGN(const auto text, read_file(measurement_, limits::kMeasurement));
    auto measurement = measure::measurement_from_json(text);
    if (!measurement) return in_file(measurement_, measurement.error());
    FORESHARD_ASSIGN(const auto study, study_.load(environment));
    FORESHARD_ASSIGN(const auto cluster, study::cluster_of(study));
    FORESHARD_ASSIGN(const auto program, program_of(study, cluster));
    const auto prediction = study::simulated(
        study, cluster, program, {.coalesce = false, .timeline = true, .critical_path = false});
    if (!prediction) return prediction.error();
    auto comparison =
        compare::compare(program, *prediction, *measurement, compare::options_for(cluster));
    if (!comparison) {
      Error fault = in_file(measurement_, comparison.error());
      if (!program_.empty()) fault.message += " (--program " + program_ + ")";
      return fault;
    }
    if (!trace_.empty()) {
      FORESHARD_TRY(compare::write_trace(trace_, program, *prediction, *measurement));
    }
    return comparison;
  }

  Result<program::Program> program_of(const study::LoadedStudy& study,
                                      const ClusterView& cluster) const {
    if (program_.empty()) return study::program_of(study, cluster);
    FORESHARD_ASSIGN(const auto text, read_file(program_, limits::kProgram));
    auto program = program::program_from_json(text);
    if (!program) return in_file(program_, program.error());
    if (const Status violation = program::verify(*program); !violation.ok())
      return in_file(program_, violation.error());
    return program;
  }

  static Error in_file(const std::string& path, const Error& error) {
    return {error.code, path + ": " + error.message};
  }

  static ExitCode gate(const compare::Comparison& comparison, double limit) {
    const auto error = comparison.step.error();
    if (error && 100 * std::abs(*error) <= limit) return kDone;
    note(error ? fmt::format("the predicted step is {:.1f} % off, more than --max-error {} %",
                             100 * std::abs(*error), limit)
               : "the measured step took no time, so --max-error cannot be checked");
    return kGateFailed;
  }

  std::optional<Declaration> declaration_;
  StudyOptions study_;
  std::string measurement_;
  std::vector<std::string> sets_of_b_;
  std::string break_even_;
  std::string metric_;
  std::string program_;
  std::string limit_;
  std::string trace_;
  std::int64_t residuals_ = 10;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace foreshard::cli
