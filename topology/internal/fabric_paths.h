/// \file
/// Paths between two switches of the fabric, with one class for each method of finding them:
///
///     SearchedPaths   shortest paths on any graph (searched_paths.cc), or legal ones (up_down.h)
///     GridPaths       tori and meshes by coordinates (grid_paths.cc)
///     GroupPaths      dragonflies by their groups and global cables (group_paths.cc)
///
/// Vertices are local to the fabric: 0, 1, ...
#pragma once

#include <memory>
#include <vector>

#include "topology/fabric_shape.h"
#include "topology/internal/domain.h"

namespace foreshard::internal {

/// All paths from one switch to another.
struct Crossing {
  Metric distance = kUnreachable;  ///< Metric of the shortest path.
  double paths = 0;                ///< Number of paths that `pick` can choose from; 0: none.
  Seconds latency;                 ///< Latency of the slowest path that a flow takes.
};

class FabricPaths {
 public:
  virtual ~FabricPaths() = default;
  virtual Crossing measure(std::int32_t entry, std::int32_t exit) = 0;
  /// Adds what each link carries of `amount`.
  /// \pre measure(entry, exit).paths > 0
  virtual void spread(std::int32_t entry, std::int32_t exit, double amount,
                      std::vector<RoutedLink>& out) = 0;
  /// Adds the links of the `choice`-th path.
  /// \pre 0 <= choice < measure(entry, exit).paths
  virtual void pick(std::int32_t entry, std::int32_t exit, double choice,
                    std::vector<RoutedLink>& out) = 0;
};

/// The fabric's switches and the cables between them that are up.
struct FabricGraph {
  std::size_t vertices = 0;
  std::vector<Domain::Edge> edges;
  std::vector<bool> has_nics;  ///< One per vertex.
  bool all_up = true;          ///< Whether no cable was left out.
};

std::unique_ptr<FabricPaths> searched_paths(const FabricGraph& graph);
std::unique_ptr<FabricPaths> up_down_paths(const FabricGraph& graph);
/// \param at  point of the grid -> its vertex.
std::unique_ptr<FabricPaths> grid_paths(const FabricGraph& graph, std::vector<std::int64_t> dims,
                                        const std::vector<std::int32_t>& at, bool wraps,
                                        bool adaptive);
std::unique_ptr<FabricPaths> group_paths(const FabricGraph& graph,
                                         std::vector<std::vector<std::int32_t>> groups,
                                         bool adaptive);

}  // namespace foreshard::internal
