// The fabrics "torus" and "mesh" (k-ary n-cubes) of any number of dimensions, called through the
// table in fabric.cc. A ring of two routers is one cable; a dimension of size 1 has none.
// Source: Dally and Towles, "Principles and practices of interconnection networks", 2004,
// chapter 5.
#include <algorithm>
#include <utility>

#include "topology/fabrics/fabric.h"

namespace foreshard {
namespace {

/// The number of grid points. \return 0 if there are more than any cluster has.
std::int64_t points_of(const std::vector<std::int64_t>& dims) {
  constexpr std::int64_t kMost = 10'000'000;
  std::int64_t points = 1;
  for (const auto size : dims) {
    points *= size;
    if (points > kMost) return 0;
  }
  return points;
}

std::string product_of(const std::vector<std::int64_t>& dims) {
  std::string text;
  for (const auto size : dims) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

std::string name_of_point(std::int64_t point, const std::vector<std::int64_t>& dims) {
  std::string name;
  for (auto size = dims.rbegin(); size != dims.rend(); ++size) {
    name.insert(0, "-" + std::to_string(point % *size));
    point /= *size;
  }
  return "router" + name.substr(1);
}

/// The rate of a cable. By default, all NICs at one router can send in one direction at once.
BytesPerSecond cable_of(const FabricPlan& plan) {
  const GridConfig& grid = *plan.config.grid;
  if (grid.bandwidth) return *grid.bandwidth;
  if (grid.ends == GridEnds::kNics) return plan.fastest_port();
  std::vector<BytesPerSecond> by_node(static_cast<std::size_t>(plan.nodes));
  for (const auto& port : plan.ports)
    by_node[static_cast<std::size_t>(port.node)] += port.bandwidth;
  return *std::ranges::max_element(by_node);
}

void build_grid(ClusterView::Builder& builder, const FabricPlan& plan, bool wraps) {
  const GridConfig& grid = *plan.config.grid;
  SwitchGrid shape{.dims = grid.dims, .switches = {}, .wraps = wraps};
  const std::int64_t points = points_of(grid.dims);
  for (std::int64_t i = 0; i < points; ++i)
    shape.switches.push_back(builder.add_vertex(VertexKind::kSwitch, name_of_point(i, grid.dims)));
  for (std::size_t i = 0; i < plan.ports.size(); ++i) {
    const auto point =
        grid.ends == GridEnds::kNodes ? static_cast<std::size_t>(plan.ports[i].node) : i;
    connect_port(builder, plan.ports[i], shape.switches[point], *plan.config.latency);
  }
  // `latency`, which has a default, is that of one router. A cable between two routers takes all of
  // it; connect_port takes half of it and adds the adapter's.
  const DuplexLink cable{LinkKind::kNetwork, cable_of(plan), *plan.config.latency};
  std::int64_t stride = points;
  for (const auto size : grid.dims) {
    stride /= size;
    for (std::int64_t i = 0; i < points; ++i) {
      const std::int64_t place = i / stride % size;
      const bool last = place == size - 1;
      if (last && (!wraps || size <= 2)) continue;
      const std::int64_t next = last ? i - place * stride : i + stride;
      builder.connect(shape.switches[static_cast<std::size_t>(i)],
                      shape.switches[static_cast<std::size_t>(next)], cable);
    }
  }
  builder.set_shape(std::move(shape));
}

}  // namespace

std::optional<FabricFault> fault_in_grid(const FabricPlan& plan) {
  if (!plan.config.grid)
    return FabricFault{"kind", "a " + plan.config.kind + " needs its dimensions",
                       "add grid: {dims: [4, 4]}"};
  const GridConfig& grid = *plan.config.grid;
  const bool by_node = grid.ends == GridEnds::kNodes;
  const auto needed = by_node ? plan.nodes : static_cast<std::int64_t>(plan.ports.size());
  const std::int64_t points = points_of(grid.dims);
  if (points == needed) return std::nullopt;
  return FabricFault{
      "grid.dims",
      product_of(grid.dims) + " are " + (points == 0 ? "far too many" : std::to_string(points)) +
          " points, but the cluster has " + std::to_string(needed) + (by_node ? " nodes" : " NICs"),
      by_node ? "the sizes must multiply to the number of nodes; ends: nics puts "
                "single NICs at the routers"
              : "the sizes must multiply to the number of NICs"};
}

void build_mesh(ClusterView::Builder& builder, const FabricPlan& plan) {
  build_grid(builder, plan, false);
}

void build_torus(ClusterView::Builder& builder, const FabricPlan& plan) {
  build_grid(builder, plan, true);
}

}  // namespace foreshard
