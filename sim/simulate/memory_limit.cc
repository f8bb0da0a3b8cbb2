// Estimates the memory of a simulation before it is made (memory_limit.h); simulate.cc and
// sensitivity.cc refuse what exceeds the limit. They are bytes of the machine that simulates.
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

// Memory of the machine that simulates; the header says how it was measured.
constexpr double kBytesPerTask = 256;
constexpr double kBytesPerTimelineEntry = 64;
constexpr double kBytesPerMessage = 512;

// Upper bound on the messages of one run of the communicator's collective, if each message is
// simulated (stepwise): a ring of p members sends p (p - 1) messages a round, in at most two
// rounds. There is one ring within a node; between nodes there are as many as the node with the
// fewest members has. Other algorithms send no more than that.
double messages_of_communicator(const ClusterView& cluster, const program::Program& program,
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

// Messages of one rank in a whole step. `per_communicator`: communicator -> messages of one run of
// its collective, which its members share equally.
double messages_of_rank(const Communicators& communicators, const program::Role& role,
                        std::int32_t rank, const std::vector<double>& per_communicator) {
  double messages = 0;
  for (const program::Call& call : role.calls) {
    // task of the block -> its endpoint
    for (const std::int32_t endpoint : communicators.endpoint_of_task[call.block.index()]) {
      if (endpoint == Communicators::kNone) continue;  // The task is no communication.
      const auto communicator = static_cast<std::size_t>(
          communicators
              .of_rank[static_cast<std::size_t>(endpoint)][static_cast<std::size_t>(rank)]);
      messages += call.repeat * per_communicator[communicator] /
                  static_cast<double>(communicators.all[communicator].ranks.size());
    }
  }
  return messages;
}

}  // namespace

MemoryEstimate estimate_memory(const ClusterView& cluster, const program::Program& program,
                               const Communicators& communicators, const Folding& folding,
                               const SimulateOptions& options) {
  std::vector<std::size_t> role_of(static_cast<std::size_t>(program.ranks()));  // rank -> role
  std::vector<double> tasks;  // role -> task instances of one rank
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    for (const std::int32_t rank : program.roles[r].ranks)
      role_of[static_cast<std::size_t>(rank)] = r;
    tasks.push_back(static_cast<double>(program::count_instances(program, program.roles[r])));
  }
  const bool stepwise = options.granularity == Granularity::kStepwise;
  std::vector<double> per_communicator;  // communicator -> messages of one run
  if (stepwise)
    for (std::size_t c = 0; c < communicators.all.size(); ++c)
      per_communicator.push_back(messages_of_communicator(cluster, program, communicators, c));
  MemoryEstimate estimate{.classes = std::ssize(folding.rank_representative), .bytes = {}};
  for (const std::int32_t rank : folding.rank_representative) {
    const std::size_t r = role_of[static_cast<std::size_t>(rank)];
    estimate.tasks += tasks[r];
    if (stepwise)
      estimate.messages +=
          messages_of_rank(communicators, program.roles[r], rank, per_communicator);
  }
  const double bytes_per_task = kBytesPerTask + (options.timeline ? kBytesPerTimelineEntry : 0);
  estimate.bytes =
      Bytes::from_base(estimate.tasks * bytes_per_task + estimate.messages * kBytesPerMessage);
  return estimate;
}

Status check_memory(const ClusterView& cluster, const program::Program& program,
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
