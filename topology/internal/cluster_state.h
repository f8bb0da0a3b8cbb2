/// \file
/// What a ClusterView holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster_view.h"
#include "topology/fabric_shape.h"
#include "topology/internal/router.h"

namespace foreshard {

/// What a builder sets, and what a copy takes over.
struct ClusterParts {
  std::string name;
  std::vector<DeviceType> types;
  std::vector<Host> hosts;  ///< One per node.
  std::vector<Device> devices;
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  Routing routing = Routing::kSpread;
  std::uint64_t seed = 0;
  bool reduces_in_network = false;
  Pxn pxn = Pxn::kNever;
  bool nvlink_relays = false;
  FabricShape shape;
};

struct ClusterView::State : ClusterParts {
  std::optional<internal::Router> router;  ///< Made by build().
};

}  // namespace foreshard
