// The cost model behind the estimates of search, resharding and moves (cost.h): the simulator's own
// kernel times and collectives, on links that are otherwise idle.
#include "sim/simulate/cost.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "sim/simulate/fold.h"
#include "sim/simulate/internal/part_list.h"
#include "sim/simulate/simulate.h"
#include "topology/route_symmetry.h"

namespace foreshard::sim {

Sharing::Sharing(const ClusterView& cluster, const comm::Parameters& communication,
                 std::optional<program::TokenRouting> routing)
    : cluster_(cluster),
      communication_(communication),
      routing_(routing),
      congruence_(cluster),
      list_(congruence_),
      carries_(congruence_.fault().empty()),
      concurrent_(1) {}  // kAlone

void Sharing::add_to_key(const std::vector<DeviceId>& group) {
  for (const DeviceId device : group) {
    const auto node =
        carries_ ? list_.meet(congruence_.part_of_node(cluster_.devices()[device.index()].node))
                 : 0;
    const std::int64_t place = carries_ ? congruence_.number_in_node(device) : device.value();
    list_.add({node << 32 | static_cast<std::uint64_t>(place)});
  }
}

std::int32_t Sharing::crowd_kind(const std::vector<std::vector<DeviceId>>& groups) {
  if (groups.size() < 2) return kAlone;
  list_.start();
  list_.add({groups.front().size()});
  for (const auto& group : groups) add_to_key(group);
  if (carries_) list_.close();
  const auto [known, added] =
      known_.try_emplace(list_.key(), static_cast<std::int32_t>(concurrent_.size()));
  if (added) concurrent_.push_back(made(groups));
  return known->second;
}

Sharing::ConcurrentGroups Sharing::made(const std::vector<std::vector<DeviceId>>& groups) {
  ConcurrentGroups crowd;
  std::unordered_map<internal::PartKey, std::size_t, internal::PartKeyHash> kinds;
  for (const auto& group : groups) {
    list_.start();
    add_to_key(group);
    if (carries_) list_.close();
    const auto [kind, is_first] = kinds.try_emplace(list_.key(), kinds.size());
    if (is_first) {
      crowd.kinds.push_back(group);
      crowd.first.push_back(crowd.members.size());
    }
    crowd.members.push_back({kind->second, carries_ ? list_.parts() : std::vector<std::int32_t>{}});
  }
  return crowd;
}

// The places of a form's links among the parts of the first member of its kind.
std::vector<Sharing::LinkSlot> Sharing::places_of(const ConcurrentGroups& crowd, std::size_t kind,
                                                  const comm::FlatCollective& form) const {
  std::vector<LinkSlot> places;
  if (!carries_) return places;
  const std::vector<std::int32_t>& parts = crowd.members[crowd.first[kind]].parts;
  for (const comm::LinkLoad& load : form.loads) {
    const auto place = congruence_.position_of(load.link);
    const auto slot = std::ranges::find(parts, place.part) - parts.begin();
    places.push_back({static_cast<std::size_t>(slot), place.index});
  }
  return places;
}

// The member's link that corresponds to load `load` of the form of the first member of its kind.
LinkId Sharing::link_of(const ConcurrentGroups& crowd, const Member& member, const Routed& routed,
                        std::size_t load) const {
  if (&crowd.members[crowd.first[member.kind]] == &member) return routed.form->loads[load].link;
  const LinkSlot& place = routed.places[load];
  return congruence_.link_at({member.parts[place.slot], place.index});
}

Result<std::vector<Sharing::Slowed>> Sharing::slowed(program::CollectiveKind kind,
                                                     const ConcurrentGroups& crowd) const {
  std::vector<Slowed> result;
  for (const auto& devices : crowd.kinds) {
    comm::Participants group{.cluster = &cluster_, .devices = devices, .flow = 0};
    if (kind == program::CollectiveKind::kTokenExchange) group.routing = routing_;
    FORESHARD_ASSIGN(auto selector,
                     devices.size() > kMostRouted
                         ? comm::AlgorithmSelector::representative(kind, group, communication_)
                         : comm::AlgorithmSelector::of(kind, group, communication_));
    const std::size_t forms = selector.forms().size();
    result.push_back({std::move(selector), std::vector<double>(forms, 0)});
  }

  // Indexed by kind and form.
  std::vector<std::vector<Routed>> routed(result.size());
  for (std::size_t k = 0; k < result.size(); ++k)
    for (const comm::FlatCollective& form : result[k].selector.forms())
      routed[k].push_back({&form, places_of(crowd, k, form)});
  // Indexed by kind: the form for long messages.
  std::vector<const Routed*> longest;
  for (const auto& forms : routed)
    longest.push_back(&*std::ranges::max_element(
        forms, {}, [&](const Routed& one) { return one.form->idle_rate(cluster_); }));
  // If this group uses the form for long messages, groups of other kinds use theirs; otherwise they
  // use the form of the same name, or their first form if they have none.
  const auto form_beside = [&](const Routed& own, std::size_t kind_of_own,
                               std::size_t of_kind) -> const Routed& {
    if (&own == longest[kind_of_own]) return *longest[of_kind];
    const auto& forms = routed[of_kind];
    const auto same = std::ranges::find_if(forms, [&](const Routed& one) {
      return one.form->algorithm == own.form->algorithm && one.form->protocol == own.form->protocol;
    });
    return same == forms.end() ? forms.front() : *same;
  };
  std::vector<double> on_link(cluster_.links().size(), 0);
  for (std::size_t k = 0; k < result.size(); ++k) {
    for (std::size_t f = 0; f < result[k].seconds_per_byte.size(); ++f) {
      const comm::FlatCollective& form = result[k].selector.forms()[f];
      const bool is_longest = &routed[k][f] == longest[k];
      std::ranges::fill(on_link, 0);
      for (const Member& member : crowd.members) {
        const Routed& own = form_beside(routed[k][f], k, member.kind);
        // For forms with the same name, the fraction that this group reaches stands for all.
        const double reached = is_longest ? own.form->bandwidth_fraction : form.bandwidth_fraction;
        for (std::size_t load = 0; load < own.form->loads.size(); ++load)
          on_link[link_of(crowd, member, own, load).index()] +=
              own.form->loads[load].bytes_per_byte / reached;
      }
      const double idle = 1 / form.idle_rate(cluster_).in_base();
      double slowest = idle;
      for (const Member& member : crowd.members) {
        if (member.kind != k) continue;
        for (std::size_t load = 0; load < form.loads.size(); ++load) {
          const LinkId link = link_of(crowd, member, routed[k][f], load);
          const BytesPerSecond rate = cluster_.links()[link.index()].bandwidth;
          slowest = std::max(slowest, on_link[link.index()] / rate.in_base());
        }
      }
      result[k].seconds_per_byte[f] = slowest - idle;
    }
  }
  for (Slowed& one : result) one.selector.forget_loads();
  return result;
}

Result<Seconds> Sharing::time(program::CollectiveKind kind, Bytes bytes, std::int32_t crowd) {
  if (crowd == kAlone) return Seconds{};
  auto known = slowed_.find({kind, crowd});
  if (known == slowed_.end()) {
    FORESHARD_ASSIGN(auto found, slowed(kind, concurrent_[static_cast<std::size_t>(crowd)]));
    known = slowed_.emplace(std::pair(kind, crowd), std::move(found)).first;
  }
  // All groups end with the slowest one.
  Seconds slowest_alone;
  Seconds slowest;
  for (const Slowed& one : known->second) {
    FORESHARD_ASSIGN(const auto alone, one.selector.time(bytes));
    FORESHARD_ASSIGN(const auto form, one.selector.index_for(bytes));
    slowest_alone = std::max(slowest_alone, alone);
    slowest =
        std::max(slowest, alone + Seconds::from_base(bytes.in_base() * one.seconds_per_byte[form]));
  }
  return slowest - slowest_alone;
}

// Numbers lists of devices by the structure of the nodes and switches that they run over
// (topology/route_symmetry.h); if routes do not carry over, each list has its own number.
class SimulatedCost::GroupKinds {
 public:
  explicit GroupKinds(const ClusterView& cluster)
      : cluster_(cluster), congruence_(cluster), list_(congruence_) {}

  std::int32_t of(const std::vector<DeviceId>& devices) {
    list_.start();
    const bool carries = congruence_.fault().empty();
    for (const DeviceId device : devices) {
      const auto node =
          carries ? list_.meet(congruence_.part_of_node(cluster_.devices()[device.index()].node))
                  : 0;
      const std::int64_t place = carries ? congruence_.number_in_node(device) : device.value();
      list_.add({node << 32 | static_cast<std::uint64_t>(place)});
    }
    if (carries) list_.close();
    return known_.try_emplace(list_.key(), static_cast<std::int32_t>(known_.size())).first->second;
  }

 private:
  const ClusterView& cluster_;
  RouteSymmetry congruence_;
  internal::PartList list_;
  std::unordered_map<internal::PartKey, std::int32_t, internal::PartKeyHash> known_;
};

SimulatedCost::SimulatedCost(const ClusterView& cluster, const comm::Parameters& communication,
                             std::optional<program::TokenRouting> routing)
    : cluster_(cluster), communication_(communication), routing_(routing) {
  for (const DeviceType& type : cluster.device_types()) kernels_.emplace_back(type);
}
SimulatedCost::~SimulatedCost() = default;

std::int32_t SimulatedCost::group_kind(const std::vector<DeviceId>& devices) const {
  if (!group_kinds_) group_kinds_ = std::make_unique<GroupKinds>(cluster_);
  return group_kinds_->of(devices);
}

Sharing& SimulatedCost::sharing() const {
  if (!sharing_) sharing_ = std::make_unique<Sharing>(cluster_, communication_, routing_);
  return *sharing_;
}

std::int32_t SimulatedCost::crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const {
  return sharing().crowd_kind(groups);
}

Result<Seconds> SimulatedCost::sharing_time(program::CollectiveKind kind, Bytes bytes,
                                            std::int32_t crowd) const {
  return sharing().time(kind, bytes, crowd);
}

comm::Participants SimulatedCost::participants(program::CollectiveKind kind,
                                               const std::vector<DeviceId>& devices) const {
  comm::Participants group{.cluster = &cluster_, .devices = devices, .flow = 0};
  if (kind == program::CollectiveKind::kTokenExchange) group.routing = routing_;
  return group;
}

Seconds SimulatedCost::kernel_time(const Kernel& kernel, DeviceTypeId type) const {
  return kernels_[type.index()](kernel);
}

Result<const comm::AlgorithmSelector*> SimulatedCost::selector(
    program::CollectiveKind kind, const std::vector<DeviceId>& devices) const {
  const std::pair key(kind, group_kind(devices));
  auto known = forms_.find(key);
  if (known == forms_.end()) {
    FORESHARD_ASSIGN(
        comm::AlgorithmSelector selector,
        comm::AlgorithmSelector::of(kind, participants(kind, devices), communication_));
    selector.forget_loads();
    known = forms_.emplace(key, std::move(selector)).first;
  }
  return &known->second;
}

Result<Seconds> SimulatedCost::communication_time(program::CollectiveKind kind, Bytes bytes,
                                                  const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2 && !program::is_with_host(kind)) return Seconds{};
  FORESHARD_ASSIGN(const comm::AlgorithmSelector* const forms, selector(kind, devices));
  return forms->time(bytes);
}

Result<HeldMultiprocessors> SimulatedCost::held(program::CollectiveKind kind, Bytes bytes,
                                                const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2 && !program::is_with_host(kind)) return HeldMultiprocessors{};
  FORESHARD_ASSIGN(const comm::AlgorithmSelector* const forms, selector(kind, devices));
  FORESHARD_ASSIGN(const auto flow, forms->flow(bytes));
  return HeldMultiprocessors{.share = flow.sm_share, .time = flow.time};
}

Result<Seconds> SimulatedCost::approximate_time(program::CollectiveKind kind, Bytes bytes,
                                                const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2) return Seconds{};
  auto key = std::pair(kind, devices);
  auto known = approximate_.find(key);
  if (known == approximate_.end()) {
    FORESHARD_ASSIGN(
        comm::AlgorithmSelector selector,
        comm::AlgorithmSelector::representative(kind, participants(kind, devices), communication_));
    selector.forget_loads();
    known = approximate_.emplace(std::move(key), std::move(selector)).first;
  }
  return known->second.time(bytes);
}

Result<Seconds> SimulatedCost::exchange_time(const std::vector<DeviceTransfer>& transfers) const {
  if (transfers.empty()) return Seconds{};
  comm::Participants group{.cluster = &cluster_, .devices = {}, .flow = 0};
  std::unordered_map<std::int32_t, std::int32_t> member;
  const auto member_of = [&](DeviceId device) {
    const auto [place, is_new] =
        member.try_emplace(device.value(), static_cast<std::int32_t>(group.devices.size()));
    if (is_new) group.devices.push_back(device);
    return place->second;
  };
  Bytes bytes;
  for (const DeviceTransfer& transfer : transfers) bytes += transfer.bytes;
  for (const DeviceTransfer& transfer : transfers) {
    const std::int32_t from = member_of(transfer.from);
    group.transfers.push_back(
        {from, member_of(transfer.to), transfer.bytes / bytes, transfer.messages});
  }
  const auto selector =
      comm::AlgorithmSelector::of(program::CollectiveKind::kExchange, group, communication_);
  if (!selector) return selector.error();
  return selector->time(bytes);
}

Result<Seconds> SimulatedCost::program_time(const program::Program& program) const {
  FORESHARD_ASSIGN(const auto prediction,
                   simulate(cluster_, program, communication_, {.critical_path = false}));
  return prediction.step;
}

Result<std::vector<LinkBytes>> SimulatedCost::link_bytes(const program::Program& program) const {
  const Communicators communicators = communicators_of(program);
  FORESHARD_ASSIGN(const auto forms,
                   choose_forms(cluster_, program, communicators, communication_));
  std::vector<double> on_link(cluster_.links().size(), 0);
  for (const program::Role& role : program.roles) {
    // Each operation once: the first rank of a communicator adds it.
    for (const program::Call& call : role.calls) {
      const auto b = call.block.index();
      for (std::size_t t = 0; t < program.blocks[b].tasks.size(); ++t) {
        const std::int32_t endpoint = communicators.endpoint_of_task[b][t];
        if (endpoint == Communicators::kNone) continue;
        const auto& what = std::get<program::Communication>(program.blocks[b].tasks[t].body);
        if (what.kind == program::CollectiveKind::kReceive) continue;
        for (const std::int32_t rank : role.ranks) {
          const auto c = static_cast<std::size_t>(
              communicators
                  .of_rank[static_cast<std::size_t>(endpoint)][static_cast<std::size_t>(rank)]);
          if (communicators.all[c].ranks.front() != rank) continue;
          forms.each_load(c, forms.at(c, what.bytes), [&](LinkId link, double bytes_per_byte) {
            on_link[link.index()] +=
                bytes_per_byte * what.bytes.in_base() * static_cast<double>(call.repeat);
          });
        }
      }
    }
  }
  std::vector<LinkBytes> used;
  for (std::size_t l = 0; l < on_link.size(); ++l) {
    if (on_link[l] > 0)
      used.push_back({LinkId{static_cast<std::int64_t>(l)}, Bytes::from_base(on_link[l])});
  }
  return used;
}

}  // namespace foreshard::sim
