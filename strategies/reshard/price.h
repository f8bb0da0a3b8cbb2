/// \file
/// Closed-form time of a reshard step on a cluster: what ranks the candidates.
///
///     step = pack + slowest of its groups on idle links + unpack
///
/// Groups that look alike from the topology - members on the same places of alike nodes, under
/// switches in the same arrangement - are priced once. Of a transfer with many messages those of a
/// few ranks stand for all: what a target receives, and what a source sends on average.
/// Not modelled: contention between the groups of a step (the simulation has it); with hashed
/// routes, that groups which look alike may collide differently.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/placement.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// Where devices are, as far as it decides what communication among them costs.
class Surroundings {
 public:
  /// Cost: O(links).
  explicit Surroundings(const ClusterView& cluster);

  /// Equal for groups that look alike, member by member.
  std::uint64_t pattern_of(const std::vector<DeviceId>& devices) const;
  /// Whether they are on nodes of one kind, as many on each.
  bool uniform(const std::vector<DeviceId>& devices) const;

 private:
  struct Place {
    std::int32_t node = 0;
    std::int32_t index = 0;  ///< In the node.
  };
  std::vector<Place> place_of_;           // by device
  std::vector<std::uint64_t> node_kind_;  // by node: what it and its switches are made of
  std::vector<std::int32_t> leaves_;      // by node: equal for nodes under the same switches
  std::vector<std::int32_t> pods_;        // by node: likewise one level up
};

/// Remembers what it was asked. Both references must outlive it; ranks have devices.
class StepPricer {
 public:
  StepPricer(const TensorSpec& tensor, const CostModel& cost, const Placement& placement);

  /// \return kInfeasible where ranks have no route.
  Result<Seconds> operator()(const Step& step);
  /// Without packing and unpacking; nothing for local steps.
  Result<Seconds> on_links(const Step& step);

 private:
  // Of each set of groups that look alike, one.
  struct DistinctGroup {
    std::vector<DeviceId> devices;
    bool uniform = false;
  };
  using Groups = std::vector<DistinctGroup>;
  const Groups& distinct_groups(const Step& step);
  Result<Seconds> collective(const Step& step);
  Result<Seconds> transfer(const Step& step);
  Result<Seconds> transfer_time(const Step& step) const;
  std::vector<DeviceTransfer> sampled(const Step& step, double moves) const;
  Seconds copies(const Step& step) const;

  const TensorSpec& tensor_;
  const CostModel& cost_;
  const Placement& placement_;
  Surroundings surroundings_;
  std::vector<std::int32_t> nodes_;
  std::vector<ProcessMesh> meshes_;  // seen so far
  std::map<std::pair<std::size_t, std::vector<Axis>>, Groups> groups_;
  std::map<std::tuple<Primitive, const Groups*, double>, Seconds> times_;
  std::vector<std::pair<Step, Seconds>> transfers_;
};

}  // namespace foreshard::reshard
