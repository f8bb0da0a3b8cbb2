#include "sim/simulate/critical_use.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/compute/measured.h"

namespace foreshard::sim {
namespace {

using yaml::Evidence;

using Key = std::tuple<ParameterGroup, std::string, Evidence, bool>;

// Evidence of the links that a communicator's messages cross, for devices with this name.
Evidence of_links(const std::map<std::string, LinkEvidence>& links, const std::string& device,
                  const Communicator& group, const program::Program& program,
                  const ClusterView& cluster) {
  const auto known = links.find(device);
  if (known == links.end()) return Evidence::kMeasured;
  const auto node_of = [&](std::int32_t rank) {
    return cluster.devices()[device_of(program, rank).index()].node;
  };
  const std::int32_t first = node_of(group.ranks.front());
  const bool inside =
      std::ranges::all_of(group.ranks, [&](std::int32_t rank) { return node_of(rank) == first; });
  return inside ? known->second.inside : std::max(known->second.inside, known->second.network);
}

}  // namespace

Evidence evidence_of(const comm::Parameters& communication, std::string_view algorithm,
                     std::string_view protocol, const DeviceType& device) {
  const std::string generation = generation_of(device);
  for (const comm::FormParameters& form : communication.forms) {
    if (form.algorithm != algorithm || comm::name_of(form.protocol) != protocol) continue;
    if (form.architectures.empty() ||
        std::ranges::find(form.architectures, generation) != form.architectures.end()) {
      FitRecord fit;
      fit.evidence = form.evidence;
      return foreshard::evidence_of(device, fit);
    }
  }
  return Evidence::kUser;
}

std::vector<CriticalUse> critical_uses(const program::Program& program, const ClusterView& cluster,
                                       const comm::Parameters& communication,
                                       const Communicators& communicators,
                                       const CommunicatorForms& forms, const Folding& folding,
                                       const std::vector<DeviceClass>& classes,
                                       const std::vector<CriticalTask>& path,
                                       const std::map<std::string, LinkEvidence>& links) {
  // The same task of a class recurs for each layer and micro-batch.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Seconds> times;
  for (const CriticalTask& one : path)
    times[{one.device_class, one.block, one.task}] += one.finish - one.start;
  std::map<Key, Seconds> sums;
  std::map<std::string, MeasuredKernels> measured;  // by name of the device type
  for (const auto& [place, time] : times) {
    const auto c = static_cast<std::size_t>(std::get<0>(place));
    const auto b = static_cast<std::size_t>(std::get<1>(place));
    const auto t = static_cast<std::size_t>(std::get<2>(place));
    const DeviceType& type = cluster.type_of(classes[c].device);
    const auto& body = program.blocks[b].tasks[t].body;
    if (const auto* kernel = std::get_if<Kernel>(&body)) {
      const bool itself = lists_measured(type) &&
                          measured.try_emplace(type.name, type).first->second.holds(*kernel);
      const Evidence evidence =
          itself ? Evidence::kMeasured : foreshard::evidence_of(*kernel, type);
      sums[{group_of(*kernel), type.name, evidence, itself}] += time;
    } else if (const auto* what = std::get_if<program::Communication>(&body)) {
      const auto endpoint = static_cast<std::size_t>(communicators.endpoint_of_task[b][t]);
      const auto communicator = static_cast<std::size_t>(
          communicators
              .of_rank[endpoint][static_cast<std::size_t>(folding.rank_representative[c])]);
      const comm::FlatCollective& form = forms.at(communicator, what->bytes);
      if (form.measured) {
        sums[{ParameterGroup::kCommunication, type.name, Evidence::kMeasured, true}] += time;
        continue;
      }
      const Evidence of_form = evidence_of(communication, form.algorithm, form.protocol, type);
      const Evidence weakest = std::max(
          of_form, of_links(links, type.name, communicators.all[communicator], program, cluster));
      sums[{ParameterGroup::kCommunication, type.name, weakest, false}] += time;
    }
  }
  std::vector<CriticalUse> uses;
  uses.reserve(sums.size());
  for (const auto& [key, time] : sums)
    uses.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), time, std::get<3>(key)});
  std::ranges::stable_sort(uses, std::greater{}, &CriticalUse::time);
  return uses;
}

}  // namespace foreshard::sim
