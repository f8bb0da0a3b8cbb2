/// \file
/// Routes between pairs of devices, each kind of pair routed once.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.h"

#include "sim/simulate/internal/part_list.h"
#include "topology/cluster_view.h"

namespace foreshard::sim::internal {

class PairRoutes {
 public:
  /// Both must outlive it.
  PairRoutes(const ClusterView& cluster, const Congruence& congruence);

  /// As ClusterView::route; links in no order. Cost: that of a route the first time for each kind
  /// of pair, else O(links of the route).
  Result<Route> route(DeviceId from, DeviceId to, std::uint64_t flow);

 private:
  struct Pair {  ///< Of nodes.
    std::int32_t kind = 0;
    std::vector<std::int32_t> parts;
  };
  struct PlacedLink {
    Congruence::Place place;  ///< Part: index in the pair's list.
    double share = 1;
  };
  struct PlacedRoute {
    std::vector<PlacedLink> links;
    Seconds latency;
    LinkKind widest_kind = LinkKind::kNvLink;
  };
  const Pair& pair_of(std::int32_t from, std::int32_t to);

  const ClusterView& cluster_;
  const Congruence& congruence_;
  std::optional<PartList> list_;  ///< Empty if nothing carries over.
  std::unordered_map<PartKey, std::int32_t, PartKeyHash> kinds_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, PlacedRoute> routes_;
};

}  // namespace foreshard::sim::internal
