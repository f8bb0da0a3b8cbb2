#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "base/yaml/quoted.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/study/run.h"
#include "strategies/launch/launch.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/lower/lower.h"
#include "validate/compare/timeline.h"
#include "validate/replay/bundle/bundle.h"

namespace foreshard::cli {
namespace {

class Export final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.output("-o,--output,--program", "FILE", program_,
                       "Write the Program (JSON) to this file; - is stdout.");
    declaration.output("--plan", "FILE", plan_,
                       "Write the step plan, for people: what each pipeline stage "
                       "does, in order, and what it waits for; - is stdout.");
    declaration.output("--arrivals", "FILE", arrivals_,
                       "Write the simulated times at which the results of one rank's "
                       "communications arrive, for foreshard-replay --as-rank; - is stdout.");
    declaration.count("--rank", rank_, 0,
                      "With --arrivals: the rank whose results are written (default: 0).");
    declaration.option("--as", "FORMAT", as_,
                       "Write the strategy (to -o, or stdout) as another framework reads it: " +
                           quoted_choice(format_names()) + ".");
    declaration.option("--replay-bundle", "FOLDER", bundle_,
                       "Write the sources of foreshard-replay, for machines that have only cmake "
                       "and a compiler (and CUDA or MPI); needs no study.");
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (!as_.empty()) return write_strategy(environment);
    const bool needs_study = !program_.empty() || !plan_.empty() || !arrivals_.empty();
    if (!needs_study && bundle_.empty())
      return fail("nothing to write",
                  "give --program FILE (or -o FILE), --plan FILE, --arrivals FILE, --as FORMAT or "
                  "--replay-bundle FOLDER");
    if (rank_ >= 0 && arrivals_.empty())
      return fail("--rank applies only with --arrivals", "add --arrivals FILE, or omit --rank");
    const std::string& given =
        study_.study().empty() ? study_.first_study_option() : study_.study();
    if (!needs_study && !given.empty())
      return fail(fmt::format("--replay-bundle needs no study, but {} was given", given),
                  "omit it, or add --program FILE, --plan FILE or --arrivals FILE");
    for (const auto& error : {refuse_same_place("--program", program_, "--arrivals", arrivals_),
                              refuse_same_place("--program", program_, "--plan", plan_),
                              refuse_same_place("--plan", plan_, "--arrivals", arrivals_)})
      FORESHARD_TRY(error);
    if (!bundle_.empty()) {
      FORESHARD_TRY(replay::write_bundle(bundle_));
      if (!needs_study) return kDone;
    }
    const Busy busy("lowering");
    FORESHARD_ASSIGN(const auto study, study_.load(environment));
    if (!plan_.empty()) {
      FORESHARD_TRY(write_plan(study));
      if (program_.empty() && arrivals_.empty()) return kDone;
    }
    FORESHARD_ASSIGN(const auto cluster, study::cluster_of(study));
    FORESHARD_ASSIGN(const auto program, study::program_of(study, cluster));
    if (!arrivals_.empty()) {
      FORESHARD_TRY(write_arrivals(study, cluster, program));
    }
    if (program_.empty()) return kDone;
    FORESHARD_TRY(write_result(program_, program::to_json(program)));
    return kDone;
  }

 private:
  static std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const launch::FormatInfo& format : launch::formats()) names.emplace_back(format.name);
    return names;
  }

  // Writes the strategy for another framework. Settings that its format cannot express are listed
  // in comments, if it has comments, and on stderr.
  Result<ExitCode> write_strategy(const Environment& environment) const {
    if (!plan_.empty() || !arrivals_.empty() || !bundle_.empty() || rank_ >= 0)
      return fail("--as writes the strategy alone",
                  "give --plan, --arrivals, --rank and "
                  "--replay-bundle in a command of their own");
    FORESHARD_ASSIGN(const auto study, study_.load(environment));
    FORESHARD_ASSIGN(auto exported, launch::export_launch(as_, study.strategy,
                                                          study.graph ? nullptr : &study.model));
    std::string head;
    for (const std::string& remark : exported.elsewhere) head += yaml::comment(remark);
    if (exported.suffix == ".json") head.clear();
    FORESHARD_TRY(write_result(program_, head + exported.text));
    for (const std::string& remark : exported.elsewhere) note("not in the file: " + remark);
    if (!exported.has_model) note("not in the file: the model");
    return kDone;
  }

  Status write_plan(const study::LoadedStudy& study) const {
    FORESHARD_ASSIGN(const auto plan, study::plan_of(study));
    FORESHARD_TRY(plan::verify(plan));
    return write_result(plan_, plan::to_text(plan));
  }

  Status write_arrivals(const study::LoadedStudy& study, const ClusterView& cluster,
                        const program::Program& program) const {
    FORESHARD_ASSIGN(
        const auto prediction,
        study::simulated(study, cluster, program, {.timeline = true, .critical_path = false}));
    const auto arrivals =
        compare::arrivals_of(program, prediction, std::max<std::int64_t>(0, rank_));
    if (!arrivals) return arrivals.error();
    return write_result(arrivals_, measure::to_json(*arrivals));
  }

  StudyOptions study_;
  std::string program_;
  std::string as_;
  std::string plan_;
  std::string arrivals_;
  std::string bundle_;
  std::int64_t rank_ = -1;
};

}  // namespace

std::unique_ptr<Command> make_export() {
  return std::make_unique<Export>();
}

}  // namespace foreshard::cli
