/// \file
/// What sharing links adds to operations that several groups do at once: the replicas of a stage
/// reduce their tensors, or send to the next stage, at the same time, and some of them over the
/// same adapters or uplinks.
///
///     rate of a group  = min(rate_cap, min over its links of bandwidth / sum of (load / fraction))
///     what this adds   = bytes x (1 / that rate - 1 / the rate on idle links)
///
/// where the sum goes over all groups of the **crowd**, each with the fraction of a link's
/// bandwidth that its own form reaches. Of groups that are built alike (topology/congruence.h) one
/// is routed.
///
/// Not modelled: that groups may begin at different times; of groups with more than
/// `kMostRouted` members, links beyond those that a few members stand for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/simulate/internal/part_list.h"
#include "strategies/comm/choose.h"
#include "topology/congruence.h"

namespace foreshard::sim {

/// Remembers what it was asked. One object for each thread.
class Sharing {
 public:
  static constexpr std::size_t kMostRouted = 32;

  /// Cluster and parameters must outlive it. `routing` as in SimulatedCost.
  Sharing(const ClusterView& cluster, const comm::Parameters& communication,
          std::optional<program::TokenRouting> routing);

  /// A number that crowds share whose groups are alike and lie alike to each other; kAlone for one
  /// whose groups share nothing because there is only one.
  static constexpr std::int32_t kAlone = 0;
  std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups);

  /// What the slowest group of the crowd takes longer than on idle links.
  /// \return kInfeasible where two devices of a group have no route.
  Result<Seconds> time(program::CollectiveKind kind, Bytes bytes, std::int32_t crowd);

 private:
  struct Member {
    std::size_t kind = 0;               // into Crowd::kinds
    std::vector<std::int32_t> parts{};  // empty where routes do not carry over
  };
  struct Crowd {
    std::vector<std::vector<DeviceId>> kinds{};  // the first group of each
    std::vector<Member> members{};
    std::vector<std::size_t> first{};  // member of each kind
  };
  // Of a group of one kind: what a byte takes longer, by form.
  struct Slowed {
    comm::Repertoire repertoire;
    std::vector<double> seconds_per_byte;
  };

  struct PlaceOfLink {
    std::size_t slot = 0;  // of Member::parts
    std::int32_t index = 0;
  };
  // A form of the first member of a kind.
  struct Routed {
    const comm::FlatCollective* form = nullptr;
    std::vector<PlaceOfLink> places{};  // of its loads; empty where routes do not carry over
  };

  void add_to_key(const std::vector<DeviceId>& group);
  Crowd made(const std::vector<std::vector<DeviceId>>& groups);
  Result<std::vector<Slowed>> slowed(program::CollectiveKind kind, const Crowd& crowd) const;
  std::vector<PlaceOfLink> places_of(const Crowd& crowd, std::size_t kind,
                                     const comm::FlatCollective& form) const;
  LinkId link_of(const Crowd& crowd, const Member& member, const Routed& routed,
                 std::size_t load) const;

  const ClusterView& cluster_;
  const comm::Parameters& communication_;
  std::optional<program::TokenRouting> routing_;
  Congruence congruence_;
  internal::PartList list_;
  bool carries_;
  std::unordered_map<internal::PartKey, std::int32_t, internal::PartKeyHash> known_;
  std::vector<Crowd> crowds_;
  std::map<std::pair<program::CollectiveKind, std::int32_t>, std::vector<Slowed>> slowed_;
};

}  // namespace foreshard::sim
