#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/given.h"
#include "base/yaml/loader.h"
#include "cli/calibrate_machine.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/compute/operator_time.h"
#include "sim/simulate/communicators.h"
#include "sim/simulate/cost.h"
#include "sim/study/measured_times.h"
#include "sim/study/run.h"
#include "strategies/program/ir/program.h"
#include "validate/calibrate/collective_fit.h"
#include "validate/calibrate/nccl_tests.h"
#include "validate/profile/inspector.h"
#include "validate/profile/kineto.h"
#include "validate/profile/match.h"
#include "validate/profile/samples.h"
#include "validate/tables/outcome.h"

namespace foreshard::cli {
namespace {

struct ProfileRequest {
  MachineRequest machine;                 // The first study describes the profiled training.
  std::vector<std::string> profiles;      // Paths of profiles.
  std::vector<std::string> kernel_names;  // Files or catalogue names, in order of precedence.
};

constexpr const char* kShippedNames = "kernels";
/// A profile with less than this share of the time of a Program's kernels (Match::shown) is assumed
/// to be of another Program.
constexpr double kLeastShown = 0.1;

Result<std::string> text_of(const std::string& file) {
  FORESHARD_ASSIGN(auto bytes, read_file(file, limits::kProfile));
  if (is_gzip(bytes)) return gunzip(bytes, file, limits::kProfile);
  return bytes;
}

// The rows of nccl-tests, if Programs have the operation, with the shorter of the out-of-place and
// in-place times.
std::vector<profile::InspectedCollective> collectives_of(const calibrate::NcclTestsRun& run) {
  std::vector<profile::InspectedCollective> result;
  const auto kind =
      program::find_collective(run.operation == "alltoall" ? "all_to_all" : run.operation);
  if (!kind) return result;
  for (const calibrate::NcclTestsRow& row : run.rows) {
    Seconds time{};
    for (const auto& way : {row.out_of_place, row.in_place})
      if (way && (time == 0_s || way->time < time)) time = way->time;
    if (time > 0_s && row.size > 0_B)
      result.push_back({.kind = *kind,
                        .bytes = row.size,
                        .ranks = std::ssize(run.ranks),
                        .nodes = run.nodes(),
                        .time = time});
  }
  return result;
}

// The devices of the group with which `rank` runs the communication.
std::vector<DeviceId> devices_of(const program::Program& program,
                                 const sim::Communicators& communicators, std::size_t block,
                                 std::size_t task, std::int32_t rank) {
  const std::int32_t endpoint = communicators.endpoint_of_task[block][task];
  if (endpoint < 0) return {};
  const std::int32_t own =
      communicators.of_rank[static_cast<std::size_t>(endpoint)][static_cast<std::size_t>(rank)];
  if (own < 0) return {};
  std::vector<DeviceId> devices;
  for (const std::int32_t other : communicators.all[static_cast<std::size_t>(own)].ranks)
    devices.push_back(sim::device_of(program, other));
  return devices;
}

// Task -> its time according to the model, for each task that the rank runs.
std::map<const program::Task*, Seconds> expected_times(const PlannedStudy& planned,
                                                       const ClusterView& cluster,
                                                       std::int32_t rank) {
  const program::Program& program = planned.program;
  const auto communicators = sim::communicators_of(program);
  CachedOperatorTime kernel_time(cluster.type_of(sim::device_of(program, rank)));
  std::map<const program::Task*, Seconds> times;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const auto& tasks = program.blocks[b].tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      if (const auto* kernel = std::get_if<Kernel>(&tasks[t].body))
        times[&tasks[t]] = kernel_time(*kernel);
      const auto* what = std::get_if<program::Communication>(&tasks[t].body);
      if (what == nullptr) continue;
      const auto devices = devices_of(program, communicators, b, t, rank);
      if (devices.empty()) continue;
      const sim::SimulatedCost cost(cluster, planned.study.communication, what->routing);
      // A communication without an expected time is matched by order alone.
      if (const auto time = cost.communication_time(what->kind, what->bytes, devices))
        times[&tasks[t]] = *time;
    }
  }
  return times;
}

// Puts the measured host times into the node and the framework.
void set_host(const profile::HostNumbers& host, const std::string& source,
              const PlannedStudy& planned, MachineFit& found) {
  ClusterConfig& cluster = found.machine.cluster;
  HostConfig& own = cluster.host ? *cluster.host : cluster.node->value.host;
  own.launch_time = {host.call.median, source, yaml::Evidence::kMeasured};
  Framework framework = *planned.study.strategy.framework;
  framework.host_time = *own.speed * std::max(0_s, host.per_task - host.call.median);
  found.files.push_back(
      {"framework.yaml",
       fmt::format(
           "# Written by foreshard calibrate.\n# {}\n# host_time: {} launches for each task "
           "of the Program, {} from one to the next in the mean, {} in the middle (95 %: {} .. "
           "{})\n{}",
           source, fmt::format("{:.2f}", host.per_task / host.mean_interval),
           format(host.mean_interval), format(host.interval.median), format(host.interval.low),
           format(host.interval.high), yaml::echo(framework))});
  found.framework = std::move(framework);
}

// Matches the profiles with the study's Program, fits the machine to the matched times, and writes
// its files; with `dry_run`, it only prints the numbers.
Result<ExitCode> fit_profile(const ProfileRequest& request, const Environment& environment) {
  if (request.machine.studies.empty())
    return fail(
        {Error::Code::kInvalidInput, "--profile needs the study of what was profiled: STUDY.yaml"});
  if (request.machine.output.empty() && !request.machine.dry_run)
    return fail(
        {Error::Code::kInvalidInput,
         "give the folder for the files with -o FOLDER, or --dry-run to see the numbers only"});
  const Busy busy("matching");
  yaml::Loader loader({.catalogue = environment.catalogue});
  profile::KernelNames names;
  std::vector<std::string> lists = request.kernel_names;
  lists.emplace_back(kShippedNames);
  for (const std::string& list : lists) {
    FORESHARD_ASSIGN(auto one,
                     yaml::read_given<profile::KernelNames>(list, loader, "kernel_names"));
    names.kernels.insert(names.kernels.end(), one.kernels.begin(), one.kernels.end());
    names.ranges.insert(names.ranges.end(), one.ranges.begin(), one.ranges.end());
  }
  FORESHARD_ASSIGN(const auto studies, plan_studies(request.machine, environment));
  const PlannedStudy& profiled = studies.front();
  const program::Program& program = profiled.program;
  FORESHARD_ASSIGN(const auto cluster, study::cluster_of(profiled.study));

  std::string report;
  std::vector<profile::ProfiledRank> ranks;
  std::vector<profile::InspectedCollective> collectives;
  std::vector<std::string> devices;
  for (const std::string& file : request.profiles) {
    FORESHARD_ASSIGN(const auto text, text_of(file));
    if (calibrate::is_nccl_tests(text)) {
      FORESHARD_ASSIGN(const auto run, calibrate::read_nccl_tests(text, file));
      const auto all = collectives_of(run);
      collectives.insert(collectives.end(), all.begin(), all.end());
      continue;
    }
    if (profile::is_inspector(text)) {
      FORESHARD_ASSIGN(const auto all, profile::read_inspector(text, file));
      collectives.insert(collectives.end(), all.begin(), all.end());
      continue;
    }
    FORESHARD_ASSIGN(auto trace, profile::read_trace(text, file));
    const auto rank = static_cast<std::int32_t>(trace.rank < program.ranks() ? trace.rank : 0);
    const auto times = expected_times(profiled, cluster, rank);
    auto matched = profile::match(program, rank, trace, names, [&](const program::Task& task) {
      const auto known = times.find(&task);
      return known == times.end() ? 0_s : known->second;
    });
    const DeviceType& device = cluster.type_of(sim::device_of(program, rank));
    if (const auto why = calibrate::other_maker(device, trace.device))
      return fail({Error::Code::kInvalidInput, file + ": the profile " + *why});
    if (const double shown = matched.shown(); shown < kLeastShown)
      return fail(
          {Error::Code::kInvalidInput,
           fmt::format("{}: no profile of study '{}': its {} {} {:.1f} % of the time of the "
                       "study's kernels by their shapes and order; give the study of what was "
                       "profiled, and a profile of whole steps (record_shapes=True)",
                       file, profiled.study.name, trace.kernels.size(),
                       trace.kernels.size() == 1 ? "kernel shows" : "kernels show", 100 * shown)});
    report += file + ": " + profile::to_text(program, trace, matched, paper_for("")) + "\n";
    if (std::ranges::find(devices, trace.device) == devices.end()) devices.push_back(trace.device);
    ranks.push_back({.rank = rank, .trace = std::move(trace), .match = std::move(matched)});
  }
  if (!ranks.empty()) report += profile::to_text(program, ranks, paper_for("")) + "\n";

  auto samples = profile::samples_of(program, ranks);
  const bool waits = ranks.size() == 1 && !samples.collectives.empty();
  const auto left_out = profile::add_collectives(samples, program, collectives);
  const std::string source = fmt::format("profile {}{}", join(request.profiles),
                                         devices.empty() ? "" : " on " + join(devices));
  const calibrate::MachineStart start{profiled.study.cluster, profiled.study.communication};
  FORESHARD_ASSIGN(
      auto machine,
      calibrate::calibrate_machine(
          start, samples,
          {.text = source, .short_text = source, .device_of_rank = program.device_of_rank}));
  for (const std::string& device : devices)
    if (calibrate::is_another(*start.cluster.node->value.device, device))
      machine.notes.push_back(
          fmt::format("the profile is of '{}', but the numbers go into device "
                      "'{}'",
                      device, start.cluster.node->value.device->name));
  for (const std::string& what : left_out) machine.notes.push_back(what);
  if (waits)
    machine.notes.emplace_back(
        "collectives were fitted to one rank's times, which hold what it waited for others: give "
        "the traces of all ranks of a group");
  MachineFit found{.machine = std::move(machine), .report = {}};
  if (const auto host = profile::host_numbers(ranks)) set_host(*host, source, profiled, found);
  found.files.push_back({"measured.csv", study::to_csv(profile::measured_times(samples, source))});
  found.report = report + calibrate::to_text(found.machine, paper_for(""));
  return write_fit(request.machine, studies, start, found);
}

constexpr double kBarBelow = 20;  // accepted error in percent, operations below 1 MiB
constexpr double kBarFrom = 10;   // accepted error in percent, operations from 1 MiB on

class Calibrate final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.arguments_if_any(
        "STUDY.yaml", studies_,
        "With --plan: studies whose kernels and collectives are to be measured. With "
        "--measurement: studies whose predictions are compared before and after.");
    declaration.flag("--plan", plan_,
                     "Write a Program that measures what the studies need, for foreshard-replay.");
    declaration.repeatable("--measurement", "FILE", measurements_,
                           "A measurement by foreshard-replay, to which the device and the "
                           "communication library are fitted. May be given again.");
    declaration.repeatable("--profile", "FILE", profiles_,
                           "A trace of PyTorch's profiler of one rank (.json, .json.gz), whose "
                           "kernels are matched with the first study; a dump of the NCCL "
                           "Inspector, or what nccl-tests printed. May be given again.");
    declaration.repeatable(
        "--kernel-names", "FILE", kernel_names_,
        "With --profile: what kernels do by their names, a file whose lines come "
        "before the catalogue's (profiles/kernels). May be given again.");
    declaration.repeatable(
        "--program", "FILE", programs_,
        "The Program of a measurement, where it is not that of a study. May be given again.");
    declaration.option("--cluster", "FILE", cluster_,
                       "The machine before it was measured: a file or a catalogue name. Default: "
                       "that of the first study.");
    declaration.option(
        "--communication", "FILE", communication_,
        "The communication library before it was measured: a file or a catalogue name. Default: "
        "that of the first study; without a study nccl, for processors host.");
    declaration.list("--collectives", "TABLE.csv", tables_,
                     "Tables of measured collectives, or what nccl-tests printed (text, JSON).");
    add_operation(declaration, operation_);
    declaration.option("--machine", "CLUSTER", machine_,
                       "Cluster on which the collectives were measured: a file or a catalogue "
                       "name. Default: the usual machine of the rows' devices.");
    declaration.repeatable("--machines", "NAME", machines_,
                           "Fit to the rows of this machine (a part of its name is enough). May be "
                           "given again. Default: all.");
    declaration.choice("--half", half_, {"both", "first", "second"},
                       "Fit to this half of the machines.");
    declaration.flag("--cross-validate", cross_validate_,
                     "Fit to each half of the machines and predict the other one.");
    declaration.option("--start", "NAME", start_,
                       "Communication library from which the fit starts: a file or a catalogue "
                       "name (nccl-start).");
    declaration.flag("--own-kernels", own_kernels_,
                     "Fit the device to foreshard-replay's own kernels too: on a GPU attention and "
                     "passes, which frameworks do not run. For predictions of replays.");
    declaration.flag("--dry-run", dry_run_, "Print the numbers; write no file.");
    declaration.output("-o,--output", "PATH", output_,
                       "Write the Program or the communication file here (default: stdout), or the "
                       "machine's files into this folder.");
  }

  Result<ExitCode> run(const Environment& environment) override {
    const MachineRequest request{.studies = studies_,
                                 .cluster = cluster_,
                                 .communication = communication_,
                                 .programs = programs_,
                                 .measurements = measurements_,
                                 .own_kernels = own_kernels_,
                                 .dry_run = dry_run_,
                                 .output = output_};
    if (plan_ + !measurements_.empty() + !tables_.empty() + !profiles_.empty() > 1)
      return fail({Error::Code::kInvalidInput,
                   "--plan, --measurement, --profile and --collectives exclude each other: give "
                   "one of them"});
    if (!kernel_names_.empty() && profiles_.empty())
      return fail({Error::Code::kInvalidInput, "--kernel-names applies only with --profile"});
    if (own_kernels_ && measurements_.empty())
      return fail({Error::Code::kInvalidInput, "--own-kernels applies only with --measurement"});
    if (const std::string option = of_another_call(); !option.empty())
      return fail({Error::Code::kInvalidInput, option});
    if (plan_) return write_plan(request, environment);
    if (!measurements_.empty()) return fit_machine(request, environment);
    if (!profiles_.empty())
      return fit_profile({.machine = request, .profiles = profiles_, .kernel_names = kernel_names_},
                         environment);
    if (tables_.empty())
      return fail({Error::Code::kInvalidInput,
                   "nothing to fit to: give --measurement FILE, --profile FILE or --collectives "
                   "TABLE.csv, or --plan to write a Program that measures"});
    if (const std::string fault = fault_of_tables(); !fault.empty())
      return fail({Error::Code::kInvalidInput, fault});
    yaml::Loader loader({.catalogue = environment.catalogue});
    std::optional<ClusterConfig> machine;
    if (!machine_.empty()) {
      FORESHARD_ASSIGN(machine, load_cluster(machine_, loader, environment.catalogue, "machine"));
    }
    FORESHARD_ASSIGN(const auto start, yaml::read_given<comm::Parameters>(start_, loader, "start"));
    FORESHARD_ASSIGN(auto input,
                     calibrate::read_input({tables_.begin(), tables_.end()}, environment.catalogue,
                                           start, machine, told_operation(operation_)));
    if (cross_validate_) return both_ways(input, start);

    const auto chosen = this->chosen(input);
    if (chosen.empty())
      return fail({Error::Code::kInvalidInput,
                   "no machine is chosen by --machines and --half; "
                   "there are " +
                       join(calibrate::machines_of(input))});
    const calibrate::Input part = calibrate::only(input, chosen);
    FORESHARD_ASSIGN(const auto fit, calibrate::fit(part, start));
    FORESHARD_ASSIGN(const auto rows, calibrate::predictions(part, fit.parameters));
    FORESHARD_ASSIGN(const auto before, calibrate::predictions(part, start));
    const auto summary = accuracy::collective_summary(rows);
    const auto errors = [&](const Paper& paper) {
      Page page(paper);
      accuracy::write(page, summary);
      page.add(unmet(summary, accuracy::collective_summary(before)));
      return std::move(page).take();
    };
    const Paper paper = paper_for("");
    if (dry_run_) return written("", calibrate::to_text(fit, paper) + errors(paper));
    note(calibrate::to_text(fit, paper) + errors(paper));
    return written(output_, calibrate::to_yaml(fit.parameters, header(part, errors({}))));
  }

 private:
  static Result<ExitCode> written(const std::string& file, const std::string& text) {
    FORESHARD_TRY(write_result(file, text));
    return kDone;
  }

  // An option that would be ignored, because it belongs to another source of measurements than the
  // one that is given; empty: none.
  std::string of_another_call() const {
    if (!tables_.empty()) {
      for (const auto& [name, given] : {std::pair{"--cluster", !cluster_.empty()},
                                        {"--communication", !communication_.empty()},
                                        {"--program", !programs_.empty()},
                                        {"a study", !studies_.empty()}})
        if (given)
          return fmt::format(
              "{} does not apply to --collectives; give the machine with --machine, the numbers to "
              "start from with --start",
              name);
      return {};
    }
    if (!machine_.empty() && (plan_ || !measurements_.empty() || !profiles_.empty()))
      return "--machine applies only with --collectives; here the option is --cluster";
    if (!told_operation(operation_).empty()) return "--op applies only with --collectives";
    return {};
  }

  std::string fault_of_tables() const {
    std::set<std::filesystem::path> known;
    for (const std::string& table : tables_) {
      if (table.starts_with("--"))
        return fmt::format("--collectives: a TABLE.csv is missing before {}", table);
      std::error_code fault;
      const auto place = std::filesystem::weakly_canonical(table, fault);
      if (!known.insert(fault ? std::filesystem::path(table) : place).second)
        return fmt::format("--collectives: {} is given twice; its rows would count twice", table);
    }
    return {};
  }

  std::vector<std::string> chosen(const calibrate::Input& input) const {
    std::vector<std::string> names;
    const auto halves = calibrate::halves_of(input);
    for (const std::string& machine : calibrate::machines_of(input)) {
      if (half_ == "first" && halves.at(machine)) continue;
      if (half_ == "second" && !halves.at(machine)) continue;
      const bool is = machines_.empty() ||
                      std::any_of(machines_.begin(), machines_.end(), [&](const std::string& part) {
                        return machine.find(part) != std::string::npos;
                      });
      if (is) names.push_back(machine);
    }
    return names;
  }

  std::string of_machines() const {
    std::string text;
    for (const std::string& machine : machines_) text += fmt::format(" --machines \"{}\"", machine);
    return text;
  }

  std::string header(const calibrate::Input& input, const std::string& errors) const {
    std::string text =
        "# NCCL's algorithms and protocols, with times fitted to measurements. Made by\n"
        "#\n"
        "#     foreshard calibrate --collectives TABLE.csv ... --start " +
        start_ + (machine_.empty() ? "" : " --machine " + machine_) +
        (half_ == "both" ? "" : " --half " + half_) + of_machines() +
        "\n"
        "#\n"
        "# from " +
        std::to_string(input.rows) + " rows of these machines:\n";
    for (const std::string& machine : calibrate::machines_of(input))
      text += "#   " + machine + "\n";
    text +=
        "# A generation of GPUs that was not measured takes the common numbers (evidence:\n"
        "# transferred). A hop's time excludes the wire. Fit error in percent:\n";
    std::size_t begin = 0;
    while (begin < errors.size()) {
      const std::size_t end = std::min(errors.find('\n', begin), errors.size());
      if (end > begin) text += "#   " + errors.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    return text;
  }

  Result<ExitCode> both_ways(const calibrate::Input& input, const comm::Parameters& start) const {
    const auto halves = calibrate::halves_of(input);
    std::vector<std::string> half[2];
    for (const auto& [machine, second] : halves) half[second ? 1 : 0].push_back(machine);
    if (half[0].empty() || half[1].empty())
      return fail(
          {Error::Code::kInvalidInput, "--cross-validate takes at least two machines; there are " +
                                           join(calibrate::machines_of(input))});
    Page page(paper_for(output_));
    for (int side = 0; side < 2; ++side) {
      FORESHARD_ASSIGN(const auto fit, calibrate::fit(calibrate::only(input, half[side]), start));
      page.line(fmt::format("fitted to the {} half:", side == 0 ? "first" : "second"));
      for (const std::string& machine : half[side]) page.line("  " + machine);
      TextTable table({"<the other half, median of |error| in %", ">rows",
                       fmt::format("><1 MiB (bar {:.0f})", kBarBelow), ">rows",
                       fmt::format(">>=1 MiB (bar {:.0f})", kBarFrom), "<"});
      const auto add = [&](const std::string& what, const accuracy::OperationError& one,
                           const std::string& operation) {
        table.row(what, one.rows_below, beside(one.below_pct, kBarBelow), one.rows_from,
                  beside(one.from_pct, kBarFrom), operation);
      };
      const auto rows =
          calibrate::predictions(calibrate::only(input, half[1 - side]), fit.parameters);
      if (!rows) return rows.error();
      for (const auto& [operation, one] : accuracy::collective_summary(*rows).operations)
        add(operation, one, "");
      for (const std::string& machine : half[1 - side]) {
        const auto of_machine =
            calibrate::predictions(calibrate::only(input, {machine}), fit.parameters);
        if (!of_machine) return of_machine.error();
        for (const auto& [operation, one] : accuracy::collective_summary(*of_machine).operations)
          add("  " + machine, one, operation);
      }
      page.table(table);
      page.line();
    }
    return written(output_, std::move(page).take());
  }

  // The operations whose rows the fitted numbers do not reproduce, in words.
  std::string unmet(const accuracy::CollectiveSummary& fitted,
                    const accuracy::CollectiveSummary& before) const {
    std::string text;
    for (const auto& fit : fitted.operations) {
      const std::string& operation = fit.first;
      const accuracy::OperationError& one = fit.second;
      const accuracy::OperationError& at_start = before.operations.at(operation);
      const auto add = [&](const char* sizes, const std::optional<double>& error,
                           const std::optional<double>& old, double bar) {
        if (!error || *error <= bar) return;
        text += fmt::format("  {} {}: {:.1f} % off in the median, bar {:.0f} % ({} {:.1f} %)\n",
                            operation, sizes, *error, bar,
                            *error < *old ? "before" : "no better than before,", *old);
      };
      add("below 1 MiB", one.below_pct, at_start.below_pct, kBarBelow);
      add("from 1 MiB", one.from_pct, at_start.from_pct, kBarFrom);
    }
    if (text.empty()) return text;
    return "\nthe fit does not meet its own rows:\n" + text +
           "  no numbers of this model do, on this machine: compare it with what ran (--machine: "
           "adapters, links, NVLS), and rows of several machines or settings (--machines)\n";
  }

  static std::string beside(const std::optional<double>& error, double bar) {
    if (!error) return "-";
    return fmt::format("{:.1f}{}", *error, *error <= bar ? " ok" : " --");
  }

  std::vector<std::string> studies_;
  bool plan_ = false;
  std::vector<std::string> measurements_;
  std::vector<std::string> profiles_;
  std::vector<std::string> kernel_names_;
  std::vector<std::string> programs_;
  std::string cluster_;
  std::string communication_;
  std::vector<std::string> tables_;
  std::string operation_;
  std::string machine_;
  std::vector<std::string> machines_;
  std::string half_;
  bool cross_validate_ = false;
  std::string start_ = "nccl-start";
  bool own_kernels_ = false;
  bool dry_run_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate() {
  return std::make_unique<Calibrate>();
}

}  // namespace foreshard::cli
