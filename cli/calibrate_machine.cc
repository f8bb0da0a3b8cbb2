#include "cli/calibrate_machine.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/yaml/given.h"
#include "base/yaml/loader.h"
#include "cli/load.h"
#include "cli/output.h"

#include "sim/study/run.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "validate/calibrate/machine.h"
#include "validate/calibrate/plan.h"
#include "validate/measurement/measurement.h"

namespace foreshard::cli {
namespace {

namespace fs = std::filesystem;

// Communication file that calibration of processors starts from. For GPUs, studies name it
// (study::kDefaultCommunication).
constexpr std::string_view kHostCommunication = "host";

}  // namespace

Result<std::vector<PlannedStudy>> plan_studies(const MachineRequest& request,
                                               const Environment& environment) {
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  };
  std::vector<PlannedStudy> result;
  for (const std::string& name : request.studies) {
    FORESHARD_ASSIGN(
        auto study,
        study::load_study({.study = name,
                           .cluster = given(as_cluster(request.cluster, environment.catalogue)),
                           .communication = given(request.communication)},
                          {.catalogue = environment.catalogue}));
    FORESHARD_ASSIGN(const auto cluster, study::cluster_of(study));
    FORESHARD_ASSIGN(auto program, study::program_of(study, cluster));
    result.push_back({std::move(study), std::move(program)});
  }
  return result;
}

namespace {

// The device type of the cluster, whose nodes are all of one kind (calibrate_machine requires it).
DeviceType device_of(const ClusterConfig& cluster) {
  return *cluster.node_groups().front().node->device;
}

Result<program::Program> read_program(const std::string& file) {
  FORESHARD_ASSIGN(const auto text, read_file(file, limits::kTable));
  auto program = program::program_from_json(text);
  if (!program) return Error{program.error().code, file + ": " + program.error().message};
  if (const Status violation = program::verify(*program); !violation.ok())
    return Error{violation.error().code, file + ": " + violation.error().message};
  return program;
}

Result<measure::Measurement> read_measurement(const std::string& file) {
  FORESHARD_ASSIGN(const auto text, read_file(file, limits::kTable));
  auto measurement = measure::measurement_from_json(text);
  if (!measurement)
    return Error{measurement.error().code, file + ": " + measurement.error().message};
  return measurement;
}

// Pairs each measurement with the Program that has its fingerprint.
Result<std::vector<calibrate::MeasuredRun>> runs_of(const MachineRequest& request,
                                                    const std::vector<PlannedStudy>& studies) {
  std::vector<std::pair<std::string, program::Program>> programs;
  programs.reserve(studies.size() + request.programs.size());
  for (const PlannedStudy& one : studies) programs.emplace_back(one.study.name, one.program);
  for (const std::string& file : request.programs) {
    FORESHARD_ASSIGN(auto program, read_program(file));
    programs.emplace_back(file, std::move(program));
  }
  std::vector<calibrate::MeasuredRun> runs;
  for (const std::string& file : request.measurements) {
    FORESHARD_ASSIGN(auto measurement, read_measurement(file));
    const program::Program* found = nullptr;
    std::vector<std::string> names;
    for (const auto& [name, program] : programs) {
      names.push_back(name);
      if (measure::fingerprint_of(program) == measurement.fingerprint) found = &program;
    }
    if (found == nullptr)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("{}: measures the Program '{}' ({}), which is not among those given "
                               "({}); give its file with --program",
                               file, measurement.program, measurement.fingerprint,
                               names.empty() ? "none" : join(names))};
    runs.push_back({*found, std::move(measurement)});
  }
  return runs;
}

// One line per study, before and after calibration: "host-dp2: 812 ms -> 655 ms (-19.3 %)".
Result<std::string> predictions(const std::vector<PlannedStudy>& studies,
                                const calibrate::MachineStart& start, const MachineFit& found) {
  TextTable table({"<", ">", "<", ">", ">"});
  for (const PlannedStudy& one : studies) {
    study::LoadedStudy study{.name = one.study.name,
                             .description = one.study.description,
                             .cluster = start.cluster,
                             .model = one.study.model,
                             .graph = one.study.graph,
                             .strategy = one.study.strategy,
                             .communication = start.communication,
                             .errors = one.study.errors,
                             .measured_steps = one.study.measured_steps,
                             .disturbances = one.study.disturbances,
                             .pool = one.study.pool,
                             .train = {},
                             .inputs = {},
                             .loader = yaml::Loader()};
    FORESHARD_ASSIGN(const auto before, study::run_study(study, {}));
    study.cluster = found.machine.cluster;
    study.communication = found.machine.communication;
    if (found.framework) study.strategy.framework.value = *found.framework;
    FORESHARD_ASSIGN(const auto after, study::run_study(study, {}));
    const Seconds old_step = before.prediction.step;
    const Seconds new_step = after.prediction.step;
    table.row(study.name, format(old_step), "->", format(new_step),
              fmt::format("({:+.1f} %)", 100 * (new_step / old_step - 1)));
  }
  Page page(paper_for(""));
  if (!studies.empty()) page.line("\nstep, before and after");
  page.table(table);
  return std::move(page).take();
}

}  // namespace

Result<ExitCode> write_plan(const MachineRequest& request, const Environment& environment) {
  if (request.studies.empty())
    return fail({Error::Code::kInvalidInput, "--plan needs the studies to measure for"});
  const Busy busy("planning");
  FORESHARD_ASSIGN(const auto studies, plan_studies(request, environment));
  std::vector<program::Program> programs;
  programs.reserve(studies.size());
  for (const PlannedStudy& one : studies) programs.push_back(one.program);
  const auto plan =
      calibrate::microbenchmarks(programs, {.device = device_of(studies.front().study.cluster)});
  if (!plan) return plan.error();
  FORESHARD_TRY(write_result(request.output, program::to_json(*plan)));
  return kDone;
}

Result<ExitCode> fit_machine(const MachineRequest& request, const Environment& environment) {
  const Busy busy("fitting");
  const auto studies = plan_studies(request, environment);
  if (!studies) return studies.error();
  if (request.output.empty() && !request.dry_run)
    return fail(
        {Error::Code::kInvalidInput,
         "give the folder for the files with -o FOLDER, or --dry-run to see the numbers only"});
  FORESHARD_ASSIGN(const auto runs, runs_of(request, *studies));

  calibrate::MachineStart start;
  if (!studies->empty()) {
    start.cluster = studies->front().study.cluster;
    start.communication = studies->front().study.communication;
  } else {
    yaml::Loader loader({.catalogue = environment.catalogue});
    if (request.cluster.empty())
      return fail({Error::Code::kInvalidInput, "give the machine with --cluster, or a study"});
    FORESHARD_ASSIGN(auto cluster,
                     load_cluster(request.cluster, loader, environment.catalogue, "cluster"));
    const bool on_host = runs.front().measurement.backend == "host";
    const std::string usual(on_host ? kHostCommunication : study::kDefaultCommunication);
    FORESHARD_ASSIGN(auto communication,
                     yaml::read_given<comm::Parameters>(
                         request.communication.empty() ? usual : request.communication, loader,
                         "communication"));
    start = {std::move(cluster), std::move(communication)};
  }

  const auto machine =
      calibrate::calibrate_machine(start, runs, {.own_kernels = request.own_kernels});
  if (!machine) return machine.error();
  return write_fit(request, *studies, start,
                   {.machine = *machine, .report = calibrate::to_text(*machine, paper_for(""))});
}

Result<ExitCode> write_fit(const MachineRequest& request, const std::vector<PlannedStudy>& studies,
                           const calibrate::MachineStart& start, const MachineFit& found) {
  FORESHARD_ASSIGN(const auto steps, predictions(studies, start, found));
  const std::string told = found.report + steps;
  if (request.dry_run) {
    FORESHARD_TRY(write_result("", told));
    return kDone;
  }
  std::error_code status;
  fs::create_directories(request.output, status);
  if (status) return fail({Error::Code::kIo, request.output + ": " + status.message()});
  auto files = calibrate::files_of(found.machine);
  files.insert(files.end(), found.files.begin(), found.files.end());
  for (const calibrate::OutputFile& file : files)
    FORESHARD_TRY(write_file(fs::path(request.output) / file.name, file.text));
  note(told);
  return kDone;
}

}  // namespace foreshard::cli
