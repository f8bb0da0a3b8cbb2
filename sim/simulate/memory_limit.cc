#include "sim/simulate/memory_limit.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/text.h"

#include "strategies/program/ir/expand.h"

namespace foreshard::sim {
namespace {

constexpr double kBytesOfTask = 256;
constexpr double kBytesOfTimeline = 64;
constexpr double kBytesOfMessage = 512;

// Upper bound on the messages of the group's stepwise form: a ring sends p (p - 1) messages a
// round, in at most two rounds, and there are as many rings as the smallest node has members; other
// algorithms send no more than that.
double messages_of(const ClusterView& cluster, const program::Program& program,
                   const Communicators& communicators, std::size_t communicator) {
  if (communicators.all[communicator].kind == program::CollectiveKind::kSend) return 1;
  const auto group = participants_of(cluster, program, communicators, communicator);
  std::map<std::int32_t, double> on_node;
  for (const DeviceId device : group.devices) ++on_node[cluster.devices()[device.index()].node];
  const auto members = static_cast<double>(group.devices.size());
  const double rings =
      on_node.size() == 1 ? 1 : std::ranges::min_element(on_node, {}, [](const auto& node) {
                                  return node.second;
                                })->second;
  return 2 * members * (members - 1) * rings;
}

// Messages of one rank of a role. `of` is the number of messages per communicator, which its
// members share equally.
double messages_of(const Communicators& communicators, const program::Role& role, std::int32_t rank,
                   const std::vector<double>& of) {
  double messages = 0;
  for (const program::Call& call : role.calls) {
    for (const std::int32_t endpoint : communicators.endpoint_of_task[call.block.index()]) {
      if (endpoint == Communicators::kNone) continue;
      const auto communicator = static_cast<std::size_t>(
          communicators
              .of_rank[static_cast<std::size_t>(endpoint)][static_cast<std::size_t>(rank)]);
      messages += call.repeat * of[communicator] /
                  static_cast<double>(communicators.all[communicator].ranks.size());
    }
  }
  return messages;
}

}  // namespace

MemoryEstimate estimate_memory(const ClusterView& cluster, const program::Program& program,
                               const Communicators& communicators, const Folding& folding,
                               const SimulateOptions& options) {
  std::vector<std::size_t> role_of(static_cast<std::size_t>(program.ranks()));
  std::vector<double> tasks;
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    for (const std::int32_t rank : program.roles[r].ranks)
      role_of[static_cast<std::size_t>(rank)] = r;
    tasks.push_back(static_cast<double>(program::count_instances(program, program.roles[r])));
  }
  std::vector<double> of_communicator;
  for (std::size_t c = 0;
       options.granularity == Granularity::kStepwise && c < communicators.all.size(); ++c)
    of_communicator.push_back(messages_of(cluster, program, communicators, c));
  MemoryEstimate estimate{.classes = std::ssize(folding.rank_representative), .bytes = {}};
  for (const std::int32_t rank : folding.rank_representative) {
    const std::size_t r = role_of[static_cast<std::size_t>(rank)];
    estimate.tasks += tasks[r];
    if (options.granularity == Granularity::kStepwise)
      estimate.messages += messages_of(communicators, program.roles[r], rank, of_communicator);
  }
  const double of_task = kBytesOfTask + (options.timeline ? kBytesOfTimeline : 0);
  estimate.bytes = Bytes::from_base(estimate.tasks * of_task + estimate.messages * kBytesOfMessage);
  return estimate;
}

Status beyond_memory(const ClusterView& cluster, const program::Program& program,
                     const Communicators& communicators, const Folding& folding,
                     const SimulateOptions& options) {
  const MemoryEstimate estimate =
      estimate_memory(cluster, program, communicators, folding, options);
  if (estimate.bytes <= options.max_memory) return {};
  std::string remedies;
  const auto add = [&](bool applies, std::string_view what) {
    if (applies) remedies += (remedies.empty() ? "" : "; ") + std::string(what);
  };
  add(options.granularity == Granularity::kStepwise, "simulate collectives as a whole (flat)");
  add(!options.fold, "simulate one device of each class (without --no-fold)");
  add(options.timeline, "leave out the trace");
  add(folding.method == FoldMethod::kRefined,
      "use routing: spread, with which equal devices can be recognised");
  add(true, "raise --max-memory, or use a machine with more memory");
  return Error{
      Error::Code::kInvalidInput,
      fmt::format("{:.0f} tasks{} of {} {} of devices would take about {}, more than "
                  "the {} of --max-memory (by default what is free here)\n  help: {}",
                  estimate.tasks,
                  estimate.messages > 0 ? fmt::format(" and {:.0f} messages", estimate.messages)
                                        : std::string(),
                  estimate.classes, plural(static_cast<std::int64_t>(estimate.classes), "class"),
                  format_quantity(estimate.bytes.in_base(), Dimension::kBytes),
                  format_quantity(options.max_memory.in_base(), Dimension::kBytes), remedies)};
}

std::optional<Bytes> free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word != "MemAvailable:") continue;
    double kibibytes = 0;
    if (file >> kibibytes) return Bytes::from_base(1024 * kibibytes);
  }
  return std::nullopt;
}

}  // namespace foreshard::sim
