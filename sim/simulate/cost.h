/// \file
/// The cost model that estimates ask (strategies/cost): operator times of sim/compute, collectives
/// of strategies/comm on idle links, as the engines use them.
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

/// Remembers what it was asked: one object for each thread. Cost: a hash of the kernel; of
/// communication, a look at each device and, the first time that a group of its kind does it, the
/// collective's routes.
class SimulatedCost final : public CostModel {
 public:
  /// The first two must outlive it.
  /// \param routing  how tokens choose experts, of every token exchange that it is asked for.
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
  /// By the fluid engine, flat and folded.
  Result<Seconds> program_time(const program::Program& program) const override;
  Result<std::vector<LinkBytes>> link_bytes(const program::Program& program) const override;

 private:
  class GroupKinds;

  Result<const comm::Repertoire*> repertoire(program::CollectiveKind kind,
                                             const std::vector<DeviceId>& devices) const;
  Sharing& sharing() const;
  comm::Participants participants(program::CollectiveKind kind,
                                  const std::vector<DeviceId>& devices) const;

  const ClusterView& cluster_;
  const comm::Parameters& communication_;
  std::optional<program::TokenRouting> routing_;
  mutable std::vector<CachedOperatorTime> kernels_;  // by device type
  mutable std::unique_ptr<GroupKinds> group_kinds_;  // once they are asked for
  mutable std::unique_ptr<Sharing> sharing_;         // likewise
  mutable std::map<std::pair<program::CollectiveKind, std::int32_t>, comm::Repertoire> forms_;
  mutable std::map<std::pair<program::CollectiveKind, std::vector<DeviceId>>, comm::Repertoire>
      approximate_;
};

}  // namespace foreshard::sim
