#include "sim/simulate/sharing.h"

#include <algorithm>
#include <string_view>

namespace foreshard::sim {

Sharing::Sharing(const ClusterView& cluster, const comm::Parameters& communication,
                 std::optional<program::TokenRouting> routing)
    : cluster_(cluster),
      communication_(communication),
      routing_(routing),
      congruence_(cluster),
      list_(congruence_),
      carries_(congruence_.fault().empty()),
      crowds_(1) {}  // kAlone

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
      known_.try_emplace(list_.key(), static_cast<std::int32_t>(crowds_.size()));
  if (added) crowds_.push_back(made(groups));
  return known->second;
}

Sharing::Crowd Sharing::made(const std::vector<std::vector<DeviceId>>& groups) {
  Crowd crowd;
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
std::vector<Sharing::PlaceOfLink> Sharing::places_of(const Crowd& crowd, std::size_t kind,
                                                     const comm::FlatCollective& form) const {
  std::vector<PlaceOfLink> places;
  if (!carries_) return places;
  const std::vector<std::int32_t>& parts = crowd.members[crowd.first[kind]].parts;
  for (const comm::LinkLoad& load : form.loads) {
    const auto place = congruence_.place_of(load.link);
    const auto slot = std::ranges::find(parts, place.part) - parts.begin();
    places.push_back({static_cast<std::size_t>(slot), place.index});
  }
  return places;
}

// The member's link that corresponds to load `load` of the form of the first member of its kind.
LinkId Sharing::link_of(const Crowd& crowd, const Member& member, const Routed& routed,
                        std::size_t load) const {
  if (&crowd.members[crowd.first[member.kind]] == &member) return routed.form->loads[load].link;
  const PlaceOfLink& place = routed.places[load];
  return congruence_.link_at({member.parts[place.slot], place.index});
}

Result<std::vector<Sharing::Slowed>> Sharing::slowed(program::CollectiveKind kind,
                                                     const Crowd& crowd) const {
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
    FORESHARD_ASSIGN(auto found, slowed(kind, crowds_[static_cast<std::size_t>(crowd)]));
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

}  // namespace foreshard::sim
