/// \file
/// The cost model that estimates use (strategies/cost): operator times of sim/compute, collectives
/// of strategies/comm on idle links, the same ones that the engines use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/compute/operator_time.h"
#include "sim/simulate/internal/part_list.h"
#include "strategies/comm/choose.h"
#include "strategies/cost/cost_model.h"
#include "topology/route_symmetry.h"

namespace foreshard::sim {

// The additional time of operations that several groups run at once, because they share links: the
// replicas of a stage reduce their tensors, or send to the next stage, at the same time, and some
// of them over the same adapters or uplinks.
//
//     rate of a group  = min(rate_cap, min over its links of bandwidth / sum of (load / fraction))
//     additional time  = bytes x (1 / that rate - 1 / the rate on idle links)
//
// The sum goes over all groups of the **crowd** (the groups that run at once), each with the
// fraction of a link's bandwidth that its own form reaches. Groups with the same structure
// (topology/route_symmetry.h) are routed once.
//
// Not modelled: groups may begin at different times; in groups with more than `kMostRouted`
// members, only the links of a few representative members count.

/// Caches its answers. Use one object per thread.
class Sharing {
 public:
  static constexpr std::size_t kMostRouted = 32;

  /// `cluster` and `communication` must outlive the object. See SimulatedCost for `routing`.
  Sharing(const ClusterView& cluster, const comm::Parameters& communication,
          std::optional<program::TokenRouting> routing);

  /// A number for a crowd: equal for crowds whose groups have the same structure and the same
  /// position relative to each other. kAlone: the crowd has only one group, so nothing is shared.
  static constexpr std::int32_t kAlone = 0;
  std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups);

  /// The additional time of the crowd's slowest group, compared with idle links.
  /// \return kInfeasible if two devices of a group have no route.
  Result<Seconds> time(program::CollectiveKind kind, Bytes bytes, std::int32_t crowd);

 private:
  struct Member {
    std::size_t kind = 0;               // into ConcurrentGroups::kinds
    std::vector<std::int32_t> parts{};  // empty if routes do not carry over
  };
  struct ConcurrentGroups {
    std::vector<std::vector<DeviceId>> kinds{};  // first group of each kind
    std::vector<Member> members{};
    std::vector<std::size_t> first{};  // kind -> its first member
  };
  // For groups of one kind: additional time per byte, by form.
  struct Slowed {
    comm::AlgorithmSelector selector;
    std::vector<double> seconds_per_byte;
  };

  struct LinkSlot {
    std::size_t slot = 0;  // index into Member::parts
    std::int32_t index = 0;
  };
  // A form of the first member of a kind.
  struct Routed {
    const comm::FlatCollective* form = nullptr;
    std::vector<LinkSlot> places{};  // places of its loads; empty if routes do not carry over
  };

  void add_to_key(const std::vector<DeviceId>& group);
  ConcurrentGroups made(const std::vector<std::vector<DeviceId>>& groups);
  Result<std::vector<Slowed>> slowed(program::CollectiveKind kind,
                                     const ConcurrentGroups& crowd) const;
  std::vector<LinkSlot> places_of(const ConcurrentGroups& crowd, std::size_t kind,
                                  const comm::FlatCollective& form) const;
  LinkId link_of(const ConcurrentGroups& crowd, const Member& member, const Routed& routed,
                 std::size_t load) const;

  const ClusterView& cluster_;
  const comm::Parameters& communication_;
  std::optional<program::TokenRouting> routing_;
  RouteSymmetry congruence_;
  internal::PartList list_;
  bool carries_;
  std::unordered_map<internal::PartKey, std::int32_t, internal::PartKeyHash> known_;
  std::vector<ConcurrentGroups> concurrent_;
  std::map<std::pair<program::CollectiveKind, std::int32_t>, std::vector<Slowed>> slowed_;
};

/// Caches its answers: use one object per thread. Cost of a question: a hash of the kernel; for
/// communication, a look at each device and, the first time for a kind of group, the collective's
/// routes.
class SimulatedCost final : public CostModel {
 public:
  /// `cluster` and `communication` must outlive the object.
  /// \param routing  how tokens choose experts, for every token exchange.
  SimulatedCost(const ClusterView& cluster, const comm::Parameters& communication,
                std::optional<program::TokenRouting> routing = {});
  ~SimulatedCost() override;

  Seconds kernel_time(const Kernel& kernel, DeviceTypeId type) const override;
  Result<Seconds> communication_time(program::CollectiveKind kind, Bytes bytes,
                                     const std::vector<DeviceId>& devices) const override;
  Result<HeldMultiprocessors> held(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override;
  std::int32_t group_kind(const std::vector<DeviceId>& devices) const override;
  std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const override;
  Result<Seconds> sharing_time(program::CollectiveKind kind, Bytes bytes,
                               std::int32_t crowd) const override;
  Result<Seconds> approximate_time(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override;
  Result<Seconds> exchange_time(const std::vector<DeviceTransfer>& transfers) const override;
  /// Uses the fluid engine, flat and folded.
  Result<Seconds> program_time(const program::Program& program) const override;
  Result<std::vector<LinkBytes>> link_bytes(const program::Program& program) const override;

 private:
  class GroupKinds;

  Result<const comm::AlgorithmSelector*> selector(program::CollectiveKind kind,
                                                  const std::vector<DeviceId>& devices) const;
  Sharing& sharing() const;
  comm::Participants participants(program::CollectiveKind kind,
                                  const std::vector<DeviceId>& devices) const;

  const ClusterView& cluster_;
  const comm::Parameters& communication_;
  std::optional<program::TokenRouting> routing_;
  mutable std::vector<CachedOperatorTime> kernels_;  // by device type
  mutable std::unique_ptr<GroupKinds> group_kinds_;  // created at the first use
  mutable std::unique_ptr<Sharing> sharing_;         // created at the first use
  mutable std::map<std::pair<program::CollectiveKind, std::int32_t>, comm::AlgorithmSelector>
      forms_;
  mutable std::map<std::pair<program::CollectiveKind, std::vector<DeviceId>>,
                   comm::AlgorithmSelector>
      approximate_;
};

}  // namespace foreshard::sim
