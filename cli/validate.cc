#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/declaration.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/replay.h"

#include "sim/study/run.h"
#include "strategies/program/ir/json.h"
#include "validate/calibrate/machine.h"
#include "validate/calibrate/plan.h"
#include "validate/compare/compare.h"
#include "validate/loop/validation.h"
#include "validate/measurement/measurement.h"

namespace foreshard::cli {
namespace {

namespace fs = std::filesystem;

Error in_file(const fs::path& path, const Error& error) {
  return {error.code, path.string() + ": " + error.message};
}

// A study with one description of the machine.
struct Case {
  std::string name;
  fs::path folder;
  study::LoadedStudy study;
  ClusterView cluster;
  program::Program program;
};

class Validate final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.arguments("STUDY.yaml", studies_,
                          "Studies of one machine. The machine is calibrated on the first study "
                          "(and microbenchmarks of all); the others are predicted blind.");
    declaration.flag("--host", call_.host, "Replay on CPU cores, with BLAS and MPI.");
    declaration.option(
        "--launch", "COMMAND", call_.launch,
        "Command that starts the ranks, for example \"mpirun -n 8\" or \"srun -n 8\".");
    declaration.count("--repeats", repeats_, 1, "Number of measured steps of each study.");
    declaration.option("--until", "PERCENT", until_,
                       "Repeat microbenchmarks until their medians are known to this accuracy.");
    declaration.count("--most-repeats", most_repeats_, 1,
                      "Number of repetitions with --until, at most.");
    declaration.flag("--no-calibrate", no_calibrate_, "Only predict, replay and compare.");
    declaration.flag("--fresh", fresh_, "Measure again, even what the folder holds already.");
    declaration.option("--max-error", "PERCENT", limit_,
                       "Exit with code 4 if the error of a step's last prediction is larger than "
                       "this, or than twice the spread of the measured steps if that is more.");
    declaration.option("-o,--output", "DIR", folder_, "Folder for all files.");
    add_format(declaration, format_, {"text", "json"});
  }

  Result<ExitCode> run(const Environment& environment) override {
    catalogue_ = environment.catalogue;
    std::optional<double> limit;
    if (!limit_.empty()) {
      FORESHARD_ASSIGN(const auto read, percentage(limit_));
      limit = read / 100;
    }
    const auto until = percentage(until_);  // checked before the first replay
    if (!until || !(*until > 0 && *until < 100))
      return fail({Error::Code::kInvalidInput,
                   fmt::format("--until: '{}' is not a percentage like '2%'", until_)});
    until_ = fmt::format("{}%", *until);
    const auto validation = validated();
    if (!validation) {
      const ExitCode code = fail(validation.error());
      return ended_ == kInfeasible || ended_ == kInterrupted ? *ended_ : code;
    }
    FORESHARD_TRY(written(*validation));
    return limit ? gate(*validation, *limit) : kDone;
  }

 private:
  Result<loop::Validation> validated() {
    FORESHARD_ASSIGN(auto cases, load({}, {}));
    loop::Validation out;
    std::vector<measure::Measurement> measurements;
    for (const Case& one : cases) {
      FORESHARD_ASSIGN(auto measurement, measured(one.program, one.folder, one.name, {}));
      FORESHARD_ASSIGN(auto before, compared(one, measurement, "before"));
      out.studies.push_back(
          {.study = one.name, .blind = !out.studies.empty(), .before = std::move(before)});
      measurements.push_back(std::move(measurement));
    }
    out.machine = machine_of(measurements.front());
    if (no_calibrate_) return out;

    const fs::path calibrated = fs::path(folder_) / "calibrated";
    FORESHARD_TRY(calibrate(cases, measurements.front(), calibrated));
    out.calibrated = calibrated.string();
    // Loaded from the files, as `simulate --cluster --communication` would do.
    auto again =
        load((calibrated / "cluster.yaml").string(), (calibrated / "communication.yaml").string());
    if (!again) return again.error();
    for (std::size_t i = 0; i < again->size(); ++i) {
      FORESHARD_ASSIGN(auto after, compared((*again)[i], measurements[i], "after"));
      out.studies[i].after = std::move(after);
    }
    return out;
  }

  Result<std::vector<Case>> load(const std::optional<std::string>& cluster,
                                 const std::optional<std::string>& communication) const {
    const Busy busy("lowering");
    std::vector<Case> cases;
    for (const std::string& file : studies_) {
      auto study =
          study::load_study({.study = file, .cluster = cluster, .communication = communication},
                            {.catalogue = catalogue_});
      if (!study) return study.error();
      FORESHARD_ASSIGN(auto view, study::cluster_of(*study));
      FORESHARD_ASSIGN(auto program, study::program_of(*study, view));
      const std::string name = study->name;
      for (const Case& other : cases)
        if (other.name == name)
          return Error{
              Error::Code::kInvalidInput,
              fmt::format("two studies are called '{}', but each needs a folder of its own name",
                          name)};
      cases.push_back(
          {name, fs::path(folder_) / name, *std::move(study), std::move(view), std::move(program)});
    }
    return cases;
  }

  // The measurement of this Program in the folder, or else a new replay.
  Result<measure::Measurement> measured(const program::Program& program, const fs::path& folder,
                                        const std::string& name, const std::string& until) {
    std::error_code status;
    fs::create_directories(folder, status);
    if (status) return Error{Error::Code::kIo, folder.string() + ": " + status.message()};
    const fs::path at = folder / "measurement.json";
    if (!fresh_ && fs::exists(at)) {
      auto known = read(at);
      if (!known)
        return Error{known.error().code,
                     known.error().message + "\n   help: --fresh measures again"};
      if (known->fingerprint == measure::fingerprint_of(program) &&
          (known->backend == "host") == call_.host &&
          known->repeats >= (until.empty() ? repeats_ : 1)) {
        note(fmt::format("{}: measured {} already ({})", name, known->date, at.string()));
        return known;
      }
    }
    const fs::path what = folder / "program.json";
    FORESHARD_TRY(write_file(what, program::to_json(program)));
    note(fmt::format("{}: replaying on {} {}", name, program.ranks(),
                     plural(program.ranks(), "rank")));
    ReplayCall call = call_;
    call.program = what.string();
    call.output = at.string();
    call.ranks = program.ranks();
    call.repeats = until.empty() ? repeats_ : std::min(repeats_, most_repeats_);
    call.until = until;
    if (!until.empty()) call.more = {"--most-repeats", std::to_string(most_repeats_)};
    call.results_to_stderr = true;
    FORESHARD_ASSIGN(const auto code, replay(call));
    if (code != 0) {
      ended_ = static_cast<ExitCode>(code);
      return Error{Error::Code::kIo,
                   fmt::format("{}: the replay ended with exit code {}; its messages stand above",
                               name, code)};
    }
    return read(at);
  }

  static Result<measure::Measurement> read(const fs::path& path) {
    const auto text = read_file(path, limits::kMeasurement);
    if (!text) return text.error();
    auto measurement = measure::measurement_from_json(*text);
    if (!measurement) return in_file(path, measurement.error());
    return measurement;
  }

  // Compares prediction and measurement, and writes <stage>.json, <stage>.txt and
  // <stage>.trace.json into the measurement's folder.
  static Result<compare::Comparison> compared(const Case& of,
                                              const measure::Measurement& measurement,
                                              const std::string& stage) {
    const auto prediction =
        study::simulated(of.study, of.cluster, of.program,
                         {.coalesce = false, .timeline = true, .critical_path = false});
    if (!prediction) return prediction.error();
    auto comparison =
        compare::compare(of.program, *prediction, measurement, compare::options_for(of.cluster));
    if (!comparison) return in_file(of.folder / "measurement.json", comparison.error());
    const fs::path base = of.folder / stage;
    FORESHARD_TRY(write_file(base.string() + ".json", compare::to_json(*comparison)));
    FORESHARD_TRY(write_file(base.string() + ".txt", compare::to_text(*comparison)));
    FORESHARD_TRY(
        compare::write_trace(base.string() + ".trace.json", of.program, *prediction, measurement));
    return comparison;
  }

  Status calibrate(const std::vector<Case>& cases, const measure::Measurement& first,
                   const fs::path& folder) {
    std::vector<program::Program> programs;
    programs.reserve(cases.size());
    for (const Case& one : cases) programs.push_back(one.program);
    const Case& start = cases.front();
    auto plan =
        calibrate::microbenchmarks(programs, {.device = start.cluster.device_types().front()});
    if (!plan) return plan.error();
    auto measurement =
        measured(*plan, fs::path(folder_) / "microbenchmarks", "microbenchmarks", until_);
    if (!measurement) return measurement.error();
    const Busy busy("calibrating");
    const auto machine = calibrate::calibrate_machine(
        {.cluster = start.study.cluster, .communication = start.study.communication},
        {{*std::move(plan), *std::move(measurement)}, {start.program, first}},
        {.own_kernels = true});  // because replays are predicted
    if (!machine) return machine.error();
    std::error_code status;
    fs::create_directories(folder, status);
    if (status) return Error{Error::Code::kIo, folder.string() + ": " + status.message()};
    for (const calibrate::OutputFile& file : calibrate::files_of(*machine))
      FORESHARD_TRY(write_file(folder / file.name, file.text));
    return write_file(folder / "report.txt", calibrate::to_text(*machine));
  }

  static std::string machine_of(const measure::Measurement& measurement) {
    const measure::Machine& machine = measurement.machines.front();
    std::vector<std::string> words{machine.name};
    for (const auto& name : {"device", "processor", "nccl", "mpi", "blas"}) {
      const auto fact = machine.facts.find(name);
      if (fact == machine.facts.end()) continue;
      // Versions often continue with build information after a comma.
      words.push_back(fact->second.substr(0, std::min<std::size_t>(fact->second.find(','), 40)));
    }
    words.push_back(fmt::format("{} {}", measurement.ranks.size(),
                                plural(std::ssize(measurement.ranks), "rank")));
    return join(words);
  }

  Status written(const loop::Validation& validation) const {
    const std::string text = loop::to_text(validation);
    const std::string json = loop::to_json(validation);
    const fs::path folder(folder_);
    FORESHARD_TRY(write_file(folder / "validation.txt", text));
    FORESHARD_TRY(write_file(folder / "validation.json", json));
    return write_result("", format_ == "json" ? json : loop::to_text(validation, paper_for("")));
  }

  static ExitCode gate(const loop::Validation& validation, double limit) {
    const auto names = loop::beyond(validation, limit);
    if (names.empty()) return kDone;
    note(fmt::format("beyond --max-error {:.3g} % (or twice the measured spread): {}", 100 * limit,
                     join(names)));
    return kGateFailed;
  }

  std::vector<fs::path> catalogue_;
  std::vector<std::string> studies_;
  ReplayCall call_;
  std::int64_t repeats_ = 10;
  std::string until_ = "2%";
  std::int64_t most_repeats_ = 20;
  bool no_calibrate_ = false;
  bool fresh_ = false;
  std::string limit_;
  std::string folder_ = "validation";
  std::string format_;
  std::optional<ExitCode> ended_;  // exit code of a replay that failed
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<Validate>();
}

}  // namespace foreshard::cli
