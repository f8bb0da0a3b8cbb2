/// \file
/// The cost model that estimates use (strategies/cost): operator times of sim/compute, collectives
/// of strategies/comm on idle links, the same ones that the engines use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/compute/operator_time.h"
#include "sim/simulate/sharing.h"
#include "strategies/comm/choose.h"
#include "strategies/cost/cost_model.h"

namespace foreshard::sim {

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
