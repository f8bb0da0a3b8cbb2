#include "cli/calibrate_profile.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/given.h"
#include "base/yaml/loader.h"
#include "cli/busy.h"
#include "cli/output.h"

#include "sim/compute/operator_time.h"
#include "sim/simulate/communicators.h"
#include "sim/simulate/cost.h"
#include "sim/study/measured_times.h"
#include "sim/study/run.h"
#include "strategies/program/ir/program.h"
#include "validate/calibrate/nccl_tests.h"
#include "validate/profile/inspector.h"
#include "validate/profile/kineto.h"
#include "validate/profile/match.h"
#include "validate/profile/samples.h"

namespace foreshard::cli {
namespace {

constexpr Bytes kLargestProfile = 4_GiB;
constexpr const char* kShippedNames = "kernels";
/// A profile with less than this share of the time of a Program's kernels (Match::shown) is assumed
/// to be of another Program.
constexpr double kLeastShown = 0.1;

Result<std::string> text_of(const std::string& file) {
  FORESHARD_ASSIGN(auto bytes, read_file(file, kLargestProfile));
  if (is_gzip(bytes)) return gunzip(bytes, file, kLargestProfile);
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
std::map<const program::Task*, Seconds> expected_times(const Planned& planned,
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
void set_host(const profile::HostNumbers& host, const std::string& source, const Planned& planned,
              Found& found) {
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

}  // namespace

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
  FORESHARD_ASSIGN(const auto studies, planned(request.machine, environment));
  const Planned& profiled = studies.front();
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
    report += file + ": " + profile::to_text(program, trace, matched) + "\n";
    if (std::ranges::find(devices, trace.device) == devices.end()) devices.push_back(trace.device);
    ranks.push_back({.rank = rank, .trace = std::move(trace), .match = std::move(matched)});
  }
  if (!ranks.empty()) report += profile::to_text(program, ranks) + "\n";

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
  Found found{.machine = std::move(machine), .report = {}};
  if (const auto host = profile::host_numbers(ranks)) set_host(*host, source, profiled, found);
  found.files.push_back({"measured.csv", study::to_csv(profile::measured_times(samples, source))});
  found.report = report + calibrate::to_text(found.machine);
  return write_found(request.machine, studies, start, found);
}

}  // namespace foreshard::cli
