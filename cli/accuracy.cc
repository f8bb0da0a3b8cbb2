#include "evidence/accuracy.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <thread>
#include <vector>

#include "base/yaml/given.h"
#include "cli/commands.h"
#include "cli/declaration.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "evidence/report.h"
#include "evidence/steps.h"

#include "sim/study/study.h"

namespace foreshard::cli {
namespace {

class Accuracy final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.arguments(
        "TABLE.csv", tables_,
        "Tables of measured training steps, collectives or kernels; of studies and the seconds "
        "of their steps (study,seconds); or what nccl-tests printed (text, JSON).");
    declaration.option("--max-error", "PERCENT", limit_,
                       "Exit with code 4 if the mean error of the times is larger. Where TIERS.csv "
                       "beside the tables names rows of tier core, only these count.");
    declaration.count("-j,--jobs", threads_, 0,
                      "Number of rows predicted at the same time; 0: as many as there are cores.");
    declaration.option(
        "--communication", "FILE", communication_,
        "Communication library: a file (as calibrate writes it) or a catalogue name.");
    declaration.option("--machine", "CLUSTER", machine_,
                       "Cluster on which collectives were measured: a file or a catalogue name. "
                       "Default: the usual machine of the rows' devices.");
    add_operation(declaration, operation_);
    declaration.option("--row", "ID", row_, "Predict the row with this id alone.");
    declaration.flag(
        "--as-study", as_study_,
        "Print the study that --row is predicted as, for `foreshard simulate`; for rows "
        "of training steps.");
    declaration.flag("--regret", regret_,
                     "Also search each group of five or more measured strategies of one model: how "
                     "much slower than the fastest the search's choice was measured (text, JSON).");
    declaration.flag("--summary", summary_, "Summaries alone, without the rows (text, JSON).");
    declaration.output("--report", "FILE.md", page_,
                       "Also write a page of documentation in Markdown: tables and frameworks with "
                       "errors, ranking, regret and intervals, and likely causes of what is off.");
    declaration.output("--write-steps", "FILE.yaml", steps_,
                       "Also write the measured steps for a study's key measured_steps, which "
                       "narrows the intervals of steps like them.");
    add_format(declaration, format_, {"text", "json", "csv"});
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    std::optional<double> limit;
    if (!limit_.empty()) {
      FORESHARD_ASSIGN(limit, percentage(limit_));
    }
    for (const std::string& table : tables_)
      if (table.ends_with(".yaml") || table.ends_with(".yml"))
        return fail(table + " is no table of measurements (CSV)",
                    "foreshard accuracy TABLE.csv; foreshard compare STUDY.yaml MEASUREMENT.json "
                    "compares one step");
    if (summary_ && format_ == "csv")
      return fail({Error::Code::kInvalidInput,
                   "--summary leaves out the rows, which are all that CSV has; use --format json"});
    if (regret_ && format_ == "csv")
      return fail({Error::Code::kInvalidInput,
                   "--regret is told of groups, not of rows, which are all that CSV has; use "
                   "--format json"});
    if (page_ == "-")
      return fail({Error::Code::kInvalidInput, "--report: a page goes to a file, not to stdout"});
    if (steps_ == "-")
      return fail({Error::Code::kInvalidInput, "--write-steps: a file, not stdout"});
    FORESHARD_TRY(refuse_same_place("--report", page_, "--output", output_));
    FORESHARD_TRY(refuse_same_place("--write-steps", steps_, "--output", output_));
    FORESHARD_TRY(refuse_same_place("--write-steps", steps_, "--report", page_));
    if (as_study_) return write_study(environment);
    FORESHARD_ASSIGN(const auto report, scored(environment));
    if (!page_.empty()) FORESHARD_TRY(write_result(page_, accuracy::to_markdown(report)));
    if (!steps_.empty()) FORESHARD_TRY(write_steps(report));
    FORESHARD_TRY(write_result(output_, written(report)));
    return limit ? gate(report, *limit) : kDone;
  }

 private:
  Result<ExitCode> write_study(const Environment& environment) const {
    if (row_.empty()) return fail("--as-study prints the study of one row", "give --row ID");
    if (communication_ != study::kDefaultCommunication)
      return fail("--communication is no part of the row's study", "give it to simulate");
    FORESHARD_ASSIGN(const auto text,
                     accuracy::study_of_row({tables_.begin(), tables_.end()},
                                            {.catalogue = environment.catalogue, .row = row_}));
    FORESHARD_TRY(write_result(output_, text));
    return kDone;
  }

  Result<accuracy::Report> scored(const Environment& environment) const {
    yaml::Loader loader({.catalogue = environment.catalogue});
    auto communication =
        yaml::read_given<comm::Parameters>(communication_, loader, "communication");
    if (!communication) return communication.error();
    accuracy::Options options{.catalogue = environment.catalogue};
    if (communication_ != study::kDefaultCommunication)
      options.communication = *std::move(communication);
    if (!machine_.empty()) {
      FORESHARD_ASSIGN(options.machine,
                       load_cluster(machine_, loader, environment.catalogue, "machine"));
    }
    options.operation = told_operation(operation_);
    options.row = row_;
    options.threads = static_cast<int>(
        threads_ > 0 ? threads_ : std::max(1U, std::thread::hardware_concurrency()));
    options.progress = true;
    options.regret = regret_ || !page_.empty();
    return accuracy::score({tables_.begin(), tables_.end()}, options);
  }

  Status write_steps(const accuracy::Report& report) const {
    const auto steps = accuracy::steps_of(report);
    if (steps.groups.empty())
      return Error{Error::Code::kInvalidInput,
                   "--write-steps: no row is a training step that could be predicted; give a table "
                   "of training steps, or one with the columns study and seconds"};
    return write_result(steps_, accuracy::to_yaml(steps));
  }

  std::string written(const accuracy::Report& report) const {
    if (format_ == "json") return accuracy::to_json(report, !summary_);
    return format_ == "csv" ? accuracy::to_csv(report)
                            : accuracy::to_text(report, paper_for(output_));
  }

  static ExitCode gate(const accuracy::Report& report, double limit) {
    const auto error = report.score().time.mape_pct;
    if (!error) {
      note("no row has a prediction to compare with --max-error");
      return kGateFailed;
    }
    if (*error <= limit) return kDone;
    note(fmt::format("mean error {:.2f} % is above --max-error {} %", *error, limit));
    return kGateFailed;
  }

  std::vector<std::string> tables_;
  std::string limit_;
  std::string row_;
  bool as_study_ = false;
  std::string communication_ = std::string(study::kDefaultCommunication);
  std::string machine_;
  std::string operation_;
  std::int64_t threads_ = 0;
  bool regret_ = false;
  bool summary_ = false;
  std::string page_;
  std::string steps_;
  std::string format_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_accuracy() {
  return std::make_unique<Accuracy>();
}

}  // namespace foreshard::cli
