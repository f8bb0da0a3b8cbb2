/// \file
/// Shortest paths within one *domain*: the inside of one host, or the fabric's switches. Routes are
/// put together from the paths of at most three domains (router.h), so a search never sees more
/// than one host or the switches, however many devices there are.
///
/// Paths are counted as well: with `paths(v)` shortest paths from the start to v, a link u -> v on
/// one of them carries the part paths(u) / paths(v) of what reaches v, if all paths carry the same.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "topology/cluster_view.h"

namespace foreshard::internal {

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

}  // namespace foreshard::internal
