#include "validate/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/busy.h"
#include "cli/commands.h"
#include "cli/compare_studies.h"
#include "cli/compare_sweeps.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/percentage.h"

#include "sim/study/run.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "validate/compare/write.h"
#include "validate/measurement/json.h"

namespace foreshard::cli {
namespace {

Bytes largest(std::size_t characters) {
  return Bytes::from_base(static_cast<double>(characters));
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
    declaration.option("--trace", "FILE", trace_,
                       "Write both time lines, one above the other, for ui.perfetto.dev.");
    declaration.count("--residuals", residuals_, 0, "How many of the largest residuals to show.");
    add_format(declaration, format_, {"text", "json"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (holds_sweep(study_.study()) || holds_sweep(measurement_)) {
      FORESHARD_ASSIGN(const std::string text, compared_sweeps({.a = study_.study(),
                                                                .b = measurement_,
                                                                .options = declaration_->given(),
                                                                .format = format_}));
      FORESHARD_TRY(write_result(output_, text));
      return kDone;
    }
    FORESHARD_TRY(take_clusters(environment));
    FORESHARD_ASSIGN(const bool predicted, is_predicted(measurement_));
    if (predicted || !sets_of_b_.empty()) return put_beside(environment);
    FORESHARD_TRY(only_beside_studies());
    std::optional<double> limit;
    if (!limit_.empty()) {
      FORESHARD_ASSIGN(limit, percentage(limit_));
    }
    FORESHARD_TRY(refuse_trace(trace_, output_));
    FORESHARD_ASSIGN(const auto comparison, compared(environment));
    const std::string text =
        format_ == "json" ? compare::to_json(comparison)
                          : compare::to_text(comparison, static_cast<std::size_t>(residuals_));
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
    FORESHARD_TRY(
        write_result(output_, format_ == "json" ? report::to_json(sides) : report::to_text(sides)));
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
    FORESHARD_ASSIGN(const auto text,
                     read_file(measurement_, largest(measure::kLargestMeasurementText)));
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
    if (!comparison) return in_file(measurement_, comparison.error());
    if (!trace_.empty()) {
      FORESHARD_TRY(compare::write_trace(trace_, program, *prediction, *measurement));
    }
    return comparison;
  }

  Result<program::Program> program_of(const study::LoadedStudy& study,
                                      const ClusterView& cluster) const {
    if (program_.empty()) return study::program_of(study, cluster);
    FORESHARD_ASSIGN(const auto text, read_file(program_, largest(program::kLargestProgramText)));
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
