#include "sim/simulate/internal/shapes.h"

#include <algorithm>
#include <vector>

namespace foreshard::sim::internal {
namespace {

// Whether the communicator's shape names no links and instead has the rate of idle links.
bool has_links_for_itself(const Folding& folding, std::size_t communicator) {
  return !folding.meets_alone.empty() && folding.meets_alone[communicator];
}

// Load of a class of communicators on a link.
struct Sum {
  double weight = 0;  // largest load of one communicator
  double total = 0;   // sum over all of them
};
// (communicator class, bytes) -> link class -> load.
using Loads = std::map<std::pair<std::int32_t, double>, std::map<std::int32_t, Sum>>;

// The load of each class of communicators on one link of each class of links: adds up the loads of
// all users of the representative links.
Loads loads_of_classes(const ClusterView& cluster, const Communicators& communicators,
                       const CommunicatorForms& forms, const Folding& folding) {
  // Link -> its class, if it is that class's representative.
  std::vector<std::int32_t> class_if_first(cluster.links().size(), -1);
  for (std::size_t l = 0; l < folding.link_representative.size(); ++l)
    class_if_first[folding.link_representative[l].index()] = static_cast<std::int32_t>(l);
  Loads loads;
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    for (const auto& [bytes, form] : forms.of(c)) {
      auto& of = loads[{folding.class_of_communicator[c], bytes}];
      if (has_links_for_itself(folding, c)) continue;
      const double fraction = form.bandwidth_fraction;
      forms.each_load(c, form, [&](LinkId link, double bytes_per_byte) {
        const std::int32_t link_class = class_if_first[link.index()];
        if (link_class < 0) return;
        Sum& sum = of[link_class];
        const double weight = bytes_per_byte / fraction;
        sum.weight = std::max(sum.weight, weight);
        sum.total += weight;
      });
    }
  }
  return loads;
}

// An activity's share of a link depends on its largest load (workload.h). If the link with the
// largest load was left out, the connections compensate for it.
double part_of_largest_load(const comm::FlatCollective& form, const engine::Shape& shape) {
  double largest = 0;
  for (const comm::LinkLoad& load : form.loads)
    largest = std::max(largest, load.bytes_per_byte / form.bandwidth_fraction);
  double kept = 0;
  for (const engine::Usage& usage : shape.usages) kept = std::max(kept, usage.weight);
  return kept > 0 ? kept / largest : 1;
}

}  // namespace

CommunicationShapes communication_shapes(const ClusterView& cluster,
                                         const Communicators& communicators,
                                         const CommunicatorForms& forms, const Folding& folding,
                                         std::span<const engine::ResourceId> links,
                                         std::span<const engine::ResourceId> sm) {
  CommunicationShapes shapes;
  for (const auto& [key, loads] : loads_of_classes(cluster, communicators, forms, folding)) {
    const auto representative = static_cast<std::size_t>(
        folding.communicator_representative[static_cast<std::size_t>(key.first)]);
    const comm::FlatCollective& form = forms.of(representative).at(key.second);
    engine::Shape shape{.usages = {}, .occupations = {}};
    shape.connections = form.connections;
    const bool alone = has_links_for_itself(folding, representative);
    shape.rate_cap = (alone ? form.idle_rate(cluster) : form.rate_cap).in_base();
    for (const auto& [link_class, sum] : loads) {
      shape.usages.push_back({.resource = links[static_cast<std::size_t>(link_class)],
                              .weight = sum.weight,
                              .multiplicity = sum.total / sum.weight});
    }
    shape.connections *= part_of_largest_load(form, shape);
    if (form.sm_share > 0) {
      std::map<std::int32_t, int> members;
      for (const std::int32_t rank : communicators.all[representative].ranks)
        members[folding.class_of_rank[static_cast<std::size_t>(rank)]] = 1;
      for (const auto& [device_class, one] : members) {
        shape.occupations.push_back(
            {.resource = sm[static_cast<std::size_t>(device_class)], .amount = form.sm_share});
      }
    }
    shapes[key] = std::move(shape);
  }
  return shapes;
}

}  // namespace foreshard::sim::internal
