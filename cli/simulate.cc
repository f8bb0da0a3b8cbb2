#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/page/page.h"
#include "sim/report/csv.h"
#include "sim/report/json.h"
#include "sim/report/predict.h"
#include "sim/report/report.h"
#include "sim/report/text.h"
#include "sim/report/trace.h"

namespace foreshard::cli {
namespace {

class Simulate final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration_ = declaration;
    study_.declare(declaration);
    declaration.choice("--engine", engine_, {"fluid", "simgrid"},
                       "The event engine; simgrid is the reference.");
    declaration.choice("--granularity", granularity_, {"flat", "stepwise"},
                       "flat: a collective is one activity; stepwise: each of its messages is a "
                       "flow, the default with simgrid.");
    declaration.flag("--no-fold", no_fold_,
                     "Simulate every device, not one of each class of equal devices.");
    declaration.option("--max-memory", "SIZE", max_memory_,
                       "Most memory for simulated tasks, estimated in advance; by default the free "
                       "memory of this machine.");
    declaration.flag("--sensitivity", sensitivity_,
                     "Tell how much shorter the step gets with each part faster: devices, memory, "
                     "links, latencies, hosts.");
    declaration.count("--draws", draws_, 1,
                      "Of a graph with conditions: steps whose branches are drawn anew, for their "
                      "mean and percentiles.");
    declaration.output("--trace", "FILE", trace_,
                       "Write a time line for ui.perfetto.dev to this file: .pftrace, with flows, "
                       "memory and use of links, or .json, for other viewers; .gz behind it "
                       "compresses.");
    declaration.output(
        "--bundle", "FILE", bundle_,
        "Write the result with its time line, memory over time and loads of links to "
        "this file (.fsr), for plot and report.");
    add_format(declaration, format_, {"text", "json", "csv", "markdown"});
    declaration.flag("--timing", timing_, "Report how long the prediction took.");
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    const auto start = std::chrono::steady_clock::now();
    FORESHARD_TRY(refuse_trace(trace_, output_, report::trace_endings()));
    if (bundle_ == "-") return fail("--bundle: a bundle goes to a file, not to stdout");
    FORESHARD_TRY(refuse_same_place("--output", output_, "--bundle", bundle_));
    FORESHARD_TRY(refuse_same_place("--trace", trace_, "--bundle", bundle_));
    if (sensitivity_ && format_ == "csv")
      return fail("--sensitivity: the line of --format csv has no place for it",
                  "write text or json, or leave it out");
    if (draws_ > 0 && format_ == "csv")
      return fail("--draws: the line of --format csv has no place for them",
                  "write text or json, or leave it out");
    FORESHARD_ASSIGN(auto study, study_.load(environment));
    FORESHARD_ASSIGN(report::Report report, predict(study));
    if (draws_ > 0) {
      const Busy busy("drawing branches");
      auto drawn = study::drawn_steps(std::move(study), options(), draws_);
      if (!drawn) return fail("--draws: " + drawn.error().message);
      report.drawn = *drawn;
    }
    if (timing_) {
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
      report.wall = wall.count() * 1_s;
    }
    if (report.bundle) {
      FORESHARD_TRY(write_file(bundle_, report::to_bundle(report)));
      report.bundle.reset();
    }
    FORESHARD_ASSIGN(const std::string text, written(report));
    FORESHARD_TRY(write_result(output_, text));
    return report.prediction.fits && !report.prediction.interruption ? kDone : kInfeasible;
  }

 private:
  Result<report::Report> predict(const study::LoadedStudy& study) const {
    const Busy busy("simulating");
    sim::SimulateOptions chosen = options();
    if (!max_memory_.empty()) {
      const auto given = parse<Bytes>(max_memory_);
      if (!given || !(*given > 0_B)) {
        return Error{Error::Code::kInvalidInput,
                     "--max-memory: " + (given ? "must be positive" : given.error().message)};
      }
      chosen.max_memory = *given;
    }
    return report::predict(
        study, chosen,
        {.trace = trace_, .sensitivities = sensitivity_, .bundle = !bundle_.empty()});
  }

  sim::SimulateOptions options() const {
    const auto given = declaration_->given();
    const bool asked = std::ranges::find(given, "--granularity") != given.end();
    const bool simgrid = engine_ == "simgrid";
    const bool stepwise = asked ? granularity_ == "stepwise" : simgrid;
    return {.engine = simgrid ? sim::EngineKind::kSimgrid : sim::EngineKind::kFluid,
            .granularity = stepwise ? sim::Granularity::kStepwise : sim::Granularity::kFlat,
            .fold = !no_fold_,
            .timeline = !trace_.empty() || !bundle_.empty()};
  }

  Result<std::string> written(const report::Report& report) const {
    if (format_ == "json") return report::to_json(report);
    if (format_ == "csv") return report::to_csv(report);
    if (format_ == "markdown") return page::markdown_of(report::to_json(report));
    return report::to_text(report, paper_for(output_));
  }

  std::optional<Declaration> declaration_;
  StudyOptions study_;
  std::string engine_;
  std::string granularity_;
  bool no_fold_ = false;
  std::string max_memory_;
  bool sensitivity_ = false;
  std::string trace_;
  std::string bundle_;
  std::int64_t draws_ = 0;
  std::string format_;
  bool timing_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_simulate() {
  return std::make_unique<Simulate>();
}

}  // namespace foreshard::cli
