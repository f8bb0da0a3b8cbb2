#include "cli/calibrate_profile.h"

#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/yaml/given.h"
#include "base/yaml/loader.h"
#include "cli/busy.h"
#include "cli/output.h"

#include "sim/compute/operator_time.h"
#include "sim/simulate/communicators.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "validate/profile/kineto.h"
#include "validate/profile/match.h"
#include "validate/profile/samples.h"
#include "validate/profile/write.h"

namespace foreshard::cli {
namespace {

constexpr Bytes kLargestProfile = 4_GiB;

Result<std::string> text_of(const std::string& file) {
  FORESHARD_ASSIGN(auto bytes, read_file(file, kLargestProfile));
  if (is_gzip(bytes)) return gunzip(bytes, file, kLargestProfile);
  return bytes;
}

// The ranks of the group of `rank` in which it communicates.
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

}  // namespace

Result<ExitCode> fit_profile(const ProfileRequest& request, const Environment& environment) {
  if (request.machine.studies.empty())
    return fail(
        {Error::Code::kInvalidInput, "--profile needs the study of what was profiled: STUDY.yaml"});
  const Busy busy("matching");
  yaml::Loader loader({.catalogue = environment.catalogue});
  FORESHARD_ASSIGN(const auto names, yaml::read_given<profile::KernelNames>(
                                         request.kernel_names, loader, "kernel_names"));
  FORESHARD_ASSIGN(const auto studies, planned(request.machine, environment));
  const program::Program& program = studies.front().program;
  FORESHARD_ASSIGN(const auto cluster, study::cluster_of(studies.front().study));
  const auto communicators = sim::communicators_of(program);
  std::string report;
  std::vector<profile::ProfiledRank> ranks;
  for (const std::string& file : request.profiles) {
    FORESHARD_ASSIGN(const auto text, text_of(file));
    FORESHARD_ASSIGN(auto trace, profile::read_trace(text, file));
    const auto rank = static_cast<std::int32_t>(trace.rank < program.ranks() ? trace.rank : 0);
    const DeviceId device = sim::device_of(program, rank);
    CachedOperatorTime kernel_time(cluster.type_of(device));
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
        const sim::SimulatedCost cost(cluster, studies.front().study.communication, what->routing);
        const auto time = cost.communication_time(what->kind, what->bytes, devices);
        if (time) times[&tasks[t]] = *time;
      }
    }
    auto found = profile::match(program, rank, trace, names,
                                [&](const program::Task& task) { return times[&task]; });
    report += file + ": " + profile::to_text(program, trace, found) + "\n";
    ranks.push_back({.rank = rank, .trace = std::move(trace), .match = std::move(found)});
  }
  report += profile::to_text(program, ranks);
  FORESHARD_TRY(write_result("", report));
  return kDone;
}

}  // namespace foreshard::cli
