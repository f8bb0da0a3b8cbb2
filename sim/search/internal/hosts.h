/// \file
/// The hosts that launch what strategies run.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// Those of some devices, of which a strategy has the first.
class Hosts {
 public:
  Hosts(const ClusterView& cluster, const std::vector<std::int32_t>& devices);

  /// What the slowest host of the strategy's devices takes to launch a kernel.
  Seconds launching(const Strategy& strategy) const;

 private:
  struct First {
    Host host;
    std::int64_t device = 0;  // the first that it has, by its place among the devices
  };
  std::vector<First> unlike_;  // that differ in what launching takes
};

}  // namespace foreshard::search
