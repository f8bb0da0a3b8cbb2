/// \file
/// The cost model that estimates ask (strategies/cost): operator times of sim/compute, collectives
/// of strategies/comm on idle links, as the engines use them.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/compute/operator_time.h"
#include "strategies/comm/choose.h"
#include "strategies/cost/cost_model.h"

namespace foreshard::sim {

/// Remembers what it was asked: one object for each thread. Cost: a hash of the kernel; of
/// communication, the collective's routes the first time that a group does it.
class SimulatedCost final : public CostModel {
 public:
  /// Both must outlive it.
  SimulatedCost(const ClusterView& cluster, const comm::Parameters& communication);

  Seconds kernel_time(const Kernel& kernel, DeviceTypeId type) const override;
  Result<Seconds> communication_time(program::CollectiveKind kind, Bytes bytes,
                                     const std::vector<DeviceId>& devices) const override;
  Result<Seconds> approximate_time(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override;
  Result<Seconds> exchange_time(const std::vector<DeviceTransfer>& transfers) const override;
  /// By the fluid engine, flat and folded.
  Result<Seconds> program_time(const program::Program& program) const override;
  Result<std::vector<LinkBytes>> link_bytes(const program::Program& program) const override;

 private:
  const ClusterView& cluster_;
  const comm::Parameters& communication_;
  mutable std::vector<CachedOperatorTime> kernels_;  // by device type
  mutable std::map<std::pair<program::CollectiveKind, std::vector<DeviceId>>, comm::Repertoire>
      forms_;
  mutable std::map<std::pair<program::CollectiveKind, std::vector<DeviceId>>, comm::Repertoire>
      approximate_;
};

}  // namespace foreshard::sim
