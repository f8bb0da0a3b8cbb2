/// \file
/// Paths between two switches of the fabric, with one class for each method of finding them:
///
///     SearchedPaths   shortest paths on any graph (searched_paths.cc), or legal ones (up_order)
///     GridPaths       tori and meshes by coordinates (grid_paths.cc)
///     GroupPaths      dragonflies by their groups and global cables (group_paths.cc)
///
/// Vertices are local to the fabric: 0, 1, ...
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "topology/cluster_view.h"
#include "topology/fabric_shape.h"

namespace foreshard::internal {

// Shortest paths within one *domain*: the inside of one host, or the fabric's switches. Routes are
// put together from the paths of at most three domains (router.h), so a search never sees more
// than one host or the switches, however many devices there are.
//
// Paths are counted as well: with `paths(v)` shortest paths from the start to v, a link u -> v on
// one of them carries the part paths(u) / paths(v) of what reaches v, if all paths carry the same.

using Metric = std::int64_t;
inline constexpr Metric kUnreachable = std::numeric_limits<Metric>::max();

/// The result of one search, per local vertex. A reverse search finds the paths *to* its start.
struct Search {
  std::vector<Metric> distance;
  std::vector<double> paths;     ///< Number of shortest paths.
  std::vector<Seconds> latency;  ///< Latency of the slowest shortest path.
};

class Domain {
 public:
  struct Edge {
    std::int32_t from = 0;  ///< Local vertices.
    std::int32_t to = 0;
    LinkId link;
    Metric metric = 1;  ///< Invariant: > 0.
    Seconds latency;
  };

  /// \param passable  by local vertex: whether a path may go through it (not only start or end).
  Domain(std::vector<bool> passable, std::vector<Edge> edges);
  ~Domain();
  Domain(Domain&&) noexcept;

  Search search_from(std::int32_t start) const;
  Search search_to(std::int32_t start) const;

  /// Adds what each link carries if `amount` is spread equally over all shortest paths between the
  /// start of `search` and `other`.
  /// \pre `other` is reachable.
  void spread(const Search& search, bool reverse, std::int32_t other, double amount,
              std::vector<RoutedLink>& out) const;
  /// Adds the links of the `choice`-th of those paths.
  /// \pre 0 <= choice < paths(other)
  void pick(const Search& search, bool reverse, std::int32_t other, double choice,
            std::vector<RoutedLink>& out) const;

 private:
  struct Graphs;
  Search search(bool reverse, std::int32_t start) const;

  std::vector<bool> passable_;
  std::vector<Edge> edges_;
  std::unique_ptr<Graphs> graphs_;
};

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

/// One number per vertex, all different: a cable leads up if it ends at the larger number.
///
/// - By hops from the nearest switch with NICs, if no cable joins switches of equal hops and every
///   switch with NICs can then reach, first up and then down, every other one in its connected
///   part.
/// - Else breadth first, with up towards the root, the first switch of the connected part. Down
///   paths lead from the root to every switch, so a legal path joins any two switches.
std::vector<std::int64_t> up_order(const FabricGraph& graph);

}  // namespace foreshard::internal
