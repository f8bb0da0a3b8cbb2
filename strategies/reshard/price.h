/// \file
/// Closed-form time of a reshard step on a cluster, by which candidates are ranked.
///
///     step = pack + slowest group on idle links + unpack
///
/// Groups that are equivalent in the topology (members at the same places of equivalent nodes,
/// under switches in the same arrangement) are priced once. In a transfer with many messages, the
/// messages of a few ranks stand for all: those that some targets receive, and the average share
/// that one source sends.
/// Not modelled: contention between the groups of a step (the simulation has it); different
/// collisions of equivalent groups with hashed routes.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// The places of devices, as far as they decide the cost of communication among them.
class DeviceSymmetry {
 public:
  /// Cost: O(links).
  explicit DeviceSymmetry(const ClusterView& cluster);

  /// A hash that is equal for groups that are equivalent member by member.
  std::uint64_t pattern_of(const std::vector<DeviceId>& devices) const;
  /// Whether the devices are on nodes of one kind, equally many on each.
  bool uniform(const std::vector<DeviceId>& devices) const;

 private:
  struct NodePosition {
    std::int32_t node = 0;
    std::int32_t index = 0;  ///< Index within the node.
  };
  std::vector<NodePosition> place_of_;    // device -> place
  std::vector<std::uint64_t> node_kind_;  // node -> hash of its parts and switches
  std::vector<std::int32_t> leaves_;      // node -> number, equal for nodes under the same switches
  // node -> number, equal for nodes under the same switches one level up
  std::vector<std::int32_t> pods_;
};

/// Prices steps and caches the answers. All references must outlive it; ranks have devices.
class StepPricer {
 public:
  StepPricer(const TensorSpec& tensor, const CostModel& cost, const Placement& placement);

  /// \return kInfeasible where ranks have no route.
  Result<Seconds> operator()(const Step& step);
  /// The time on links alone, without packing and unpacking; 0 for local steps.
  Result<Seconds> on_links(const Step& step);

 private:
  // One representative of each set of equivalent groups.
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
  DeviceSymmetry symmetry_;
  std::vector<std::int32_t> nodes_;
  std::vector<ProcessMesh> meshes_;  // seen so far
  std::map<std::pair<std::size_t, std::vector<Axis>>, Groups> groups_;
  std::map<std::tuple<Primitive, const Groups*, double>, Seconds> times_;
  std::vector<std::pair<Step, Seconds>> transfers_;
};

}  // namespace foreshard::reshard
