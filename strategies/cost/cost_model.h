/// \file
/// What things cost: the interface that reshard, lowering and search ask. `sim/` implements it, so
/// strategies/ stays independent of how times are modelled.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard {

class CostModel {
 public:
  virtual ~CostModel() = default;

  /// Time of `kernel` alone on an idle device of that type.
  virtual Seconds kernel_time(const Kernel& kernel, DeviceTypeId type) const = 0;

  /// Time of one operation among `devices` (of a transfer: sender, receiver) on idle links.
  /// \return kInfeasible where two of them have no route.
  virtual Result<Seconds> communication_time(program::CollectiveKind kind, Bytes bytes,
                                             const std::vector<DeviceId>& devices) const = 0;
};

}  // namespace foreshard
