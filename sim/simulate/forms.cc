// Chooses how every communicator runs its operations (forms.h), for simulate.cc, sensitivity.cc and
// the cost model. Sizes are bytes.
#include "sim/simulate/forms.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/caller.h"
#include "base/check.h"

#include "sim/simulate/internal/part_list.h"
#include "sim/simulate/internal/signature.h"
#include "strategies/comm/choose.h"

namespace foreshard::sim {
namespace {

using internal::joined;
using internal::rounded;
using program::Program;

// communicator -> sizes of its operations, as an index into `lists`.
struct Sizes {
  std::vector<std::vector<double>> lists;
  std::vector<std::int32_t> of;
};

Sizes sizes_of(const Program& program, const Communicators& communicators) {
  std::vector<std::set<double>> of_endpoint(communicators.of_rank.size());
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    for (std::size_t t = 0; t < program.blocks[b].tasks.size(); ++t) {
      const std::int32_t endpoint = communicators.endpoint_of_task[b][t];
      if (endpoint == Communicators::kNone) continue;
      const auto& what = std::get<program::Communication>(program.blocks[b].tasks[t].body);
      of_endpoint[static_cast<std::size_t>(endpoint)].insert(what.bytes.in_base());
    }
  }
  // Endpoints are few, so the sizes are merged once for each set of endpoints.
  std::vector<std::vector<std::int32_t>> endpoints(communicators.all.size());
  for (std::size_t e = 0; e < of_endpoint.size(); ++e) {
    for (const std::int32_t c : communicators.of_rank[e]) {
      if (c == Communicators::kNone) continue;
      auto& list = endpoints[static_cast<std::size_t>(c)];
      if (list.empty() || list.back() != static_cast<std::int32_t>(e))
        list.push_back(static_cast<std::int32_t>(e));
    }
  }
  Sizes sizes;
  std::map<std::vector<std::int32_t>, std::int32_t> known;
  for (const auto& list : endpoints) {
    const auto [it, added] = known.try_emplace(list, static_cast<std::int32_t>(sizes.lists.size()));
    if (added) {
      std::set<double> all;
      for (const std::int32_t e : list) {
        const auto& one = of_endpoint[static_cast<std::size_t>(e)];
        all.insert(one.begin(), one.end());
      }
      sizes.lists.emplace_back(all.begin(), all.end());
    }
    sizes.of.push_back(it->second);
  }
  return sizes;
}

// Lists everything that determines the forms of a communicator, and the parts of the cluster that
// it runs over.
void describe(const ClusterView& cluster, const RouteSymmetry& congruence,
              program::CollectiveKind kind, const comm::Participants& group, std::int32_t sizes,
              internal::PartList& list) {
  list.start();
  list.add({static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(sizes),
            static_cast<std::uint64_t>(group.root), group.devices.size(), group.transfers.size()});
  if (group.routing)
    list.add({static_cast<std::uint64_t>(group.routing->experts),
              static_cast<std::uint64_t>(group.routing->per_token),
              static_cast<std::uint64_t>(group.routing->groups),
              static_cast<std::uint64_t>(group.routing->groups_per_token)});
  for (const comm::Transfer& transfer : group.transfers) {
    list.add({static_cast<std::uint64_t>(transfer.from), static_cast<std::uint64_t>(transfer.to),
              std::bit_cast<std::uint64_t>(transfer.part),
              std::bit_cast<std::uint64_t>(transfer.messages)});
  }
  for (const DeviceId device : group.devices) {
    const std::int32_t node = cluster.devices()[device.index()].node;
    list.add({list.meet(congruence.part_of_node(node)) << 32 |
              static_cast<std::uint32_t>(congruence.number_in_node(device))});
  }
  list.close();
}

}  // namespace

std::optional<LinkId> opposite_of(const ClusterView& cluster, LinkId id) {
  const auto links = cluster.links();
  const Link& link = links[id.index()];
  for (const std::size_t other : {id.index() + 1, id.index() - 1}) {
    if (other < links.size() && links[other].from == link.to && links[other].to == link.from)
      return LinkId{static_cast<std::int64_t>(other)};
  }
  return std::nullopt;
}

class FormChooser {
 public:
  FormChooser(const ClusterView& cluster, const Program& program,
              const Communicators& communicators, const comm::Parameters& parameters)
      : cluster_(cluster),
        program_(program),
        communicators_(communicators),
        parameters_(parameters),
        into_(cluster.vertices().size(), 0.0),
        out_of_(cluster.vertices().size(), 0.0),
        on_link_(cluster.links().size(), 0.0) {}

  Result<CommunicatorForms> run(bool share) {
    auto congruence = std::make_shared<const RouteSymmetry>(cluster_);
    chosen_.unshared_because_ = share ? congruence->fault() : "not asked for";
    share = chosen_.unshared_because_.empty();
    const Sizes sizes = sizes_of(program_, communicators_);
    internal::PartList list(*congruence);
    std::unordered_map<internal::PartKey, std::int32_t, internal::PartKeyHash> known;
    const std::size_t count = communicators_.all.size();
    chosen_.kind_of_.resize(count);
    chosen_.parts_.resize(count);
    for (std::size_t c = 0; c < count; ++c) {
      end_if_asked();
      const auto group = participants_of(cluster_, program_, communicators_, c);
      const auto kind = static_cast<std::int32_t>(chosen_.kinds_.size());
      if (share) {
        describe(cluster_, *congruence, communicators_.all[c].kind, group, sizes.of[c], list);
        const auto [it, added] = known.try_emplace(list.key(), kind);
        if (!added) {
          chosen_.kind_of_[c] = it->second;
          chosen_.parts_[c] = list.parts();
          continue;
        }
      }
      chosen_.kind_of_[c] = kind;
      const auto& wanted = sizes.lists[static_cast<std::size_t>(sizes.of[c])];
      FORESHARD_TRY(add_kind(communicators_.all[c].kind, group, wanted));
      if (share) {
        for (LinkUse& use : chosen_.kinds_.back().uses) {
          use.place = congruence->position_of(use.link);
          use.place.part = list.slot_of(use.place.part);
        }
      }
    }
    chosen_.congruence_ = std::move(congruence);
    return std::move(chosen_);
  }

 private:
  Status add_kind(program::CollectiveKind kind, const comm::Participants& group,
                  const std::vector<double>& sizes) {
    FORESHARD_ASSIGN(const auto selector, comm::AlgorithmSelector::of(kind, group, parameters_));
    auto& shared = chosen_.kinds_.emplace_back();
    std::map<std::size_t, std::vector<double>> used;  // form -> sizes
    for (const double bytes : sizes) {
      FORESHARD_ASSIGN(const auto best, selector.index_for(Bytes::from_base(bytes)));
      const Bytes size = Bytes::from_base(bytes);
      const auto& form = shared.by_bytes[bytes] = *selector.choose(size);
      shared.idle_by_bytes[bytes] = {form.delay(size, cluster_), form.idle_time(size, cluster_)};
      used[best].push_back(bytes);
    }
    std::vector<LinkUse> parts;
    for (const auto& [best, of] : used) add_uses(selector.forms()[best], of, parts);
    std::ranges::stable_sort(parts, {}, &LinkUse::link);
    for (const LinkUse& part : parts) {
      if (shared.uses.empty() || shared.uses.back().link != part.link) {
        shared.uses.push_back(part);
        continue;
      }
      LinkUse& sum = shared.uses.back();
      sum.amount += part.amount;
      sum.of_feeders = std::max(sum.of_feeders, part.of_feeders);
      sum.of_drains = std::max(sum.of_drains, part.of_drains);
    }
    return {};
  }

  void add_uses(const comm::FlatCollective& form, const std::vector<double>& sizes,
                std::vector<LinkUse>& uses) {
    const auto links = cluster_.links();
    for (const comm::LinkLoad& load : form.loads) {
      const Link& link = links[load.link.index()];
      into_[link.to.index()] += load.bytes_per_byte;
      out_of_[link.from.index()] += load.bytes_per_byte;
      on_link_[load.link.index()] = load.bytes_per_byte;
    }
    for (const comm::LinkLoad& load : form.loads) {
      const Link& link = links[load.link.index()];
      const double weight = load.bytes_per_byte;
      const auto opposite = opposite_of(cluster_, load.link);
      const double back = opposite ? on_link_[opposite->index()] : 0;
      LinkUse use{.link = load.link, .place = {}};
      for (const double bytes : sizes) use.amount += joined(rounded(bytes), rounded(weight));
      use.of_feeders = ratio(weight, into_[link.from.index()] - back);
      use.of_drains = ratio(weight, out_of_[link.to.index()] - back);
      uses.push_back(use);
    }
    for (const comm::LinkLoad& load : form.loads) {
      const Link& link = links[load.link.index()];
      into_[link.to.index()] = 0;
      out_of_[link.from.index()] = 0;
      on_link_[load.link.index()] = 0;
    }
  }

  // If subtraction leaves almost nothing of a sum, the ratio is infinite.
  static double ratio(double weight, double others) {
    return others > 1e-6 * weight ? weight / others : std::numeric_limits<double>::infinity();
  }

  const ClusterView& cluster_;
  const Program& program_;
  const Communicators& communicators_;
  const comm::Parameters& parameters_;
  CommunicatorForms chosen_;
  std::vector<double> into_;  // by vertex, for the current form
  std::vector<double> out_of_;
  std::vector<double> on_link_;
};

comm::Participants participants_of(const ClusterView& cluster, const Program& program,
                                   const Communicators& communicators, std::size_t communicator) {
  const Communicator& of = communicators.all[communicator];
  comm::Participants group{.cluster = &cluster,
                           .devices = {},
                           .flow = communicator,
                           .root = of.root,
                           .transfers = of.transfers,
                           .routing = of.routing};
  group.devices.reserve(of.ranks.size());
  for (const std::int32_t rank : of.ranks) group.devices.push_back(device_of(program, rank));
  return group;
}

Result<CommunicatorForms> choose_forms(const ClusterView& cluster, const Program& program,
                                       const Communicators& communicators,
                                       const comm::Parameters& parameters, bool share) {
  return FormChooser(cluster, program, communicators, parameters).run(share);
}

}  // namespace foreshard::sim
