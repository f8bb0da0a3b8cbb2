/// \file
/// Routes by trying every path: the oracle for small clusters.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "topology/cluster_view.h"
#include "topology/internal/router.h"

namespace foreshard {

/// All simple paths under the rules of cluster_view.h: through no other device, and at most one way
/// out of a host and one into a host. Shares of the shortest.
inline std::map<LinkId, double> exhaustive(const ClusterView& cluster, DeviceId from, DeviceId to) {
  const auto vertices = cluster.vertices();
  const auto source = cluster.devices()[from.index()].vertex;
  const auto target = cluster.devices()[to.index()].vertex;
  std::vector<std::vector<LinkId>> best;
  internal::Metric least = internal::kUnreachable;
  std::vector<LinkId> path;
  std::vector<bool> seen(vertices.size(), false);
  const std::function<void(VertexId, internal::Metric, int)> walk =
      [&](VertexId at, internal::Metric metric, int ports) {
        if (metric > least) return;
        if (at == target) {
          if (metric < least) best.clear();
          least = metric;
          best.push_back(path);
          return;
        }
        if (at != source && vertices[at.index()].kind == VertexKind::kDevice) return;
        seen[at.index()] = true;
        for (std::size_t i = 0; i < cluster.links().size(); ++i) {
          const Link& link = cluster.links()[i];
          if (!link.up || link.from != at || seen[link.to.index()]) continue;
          const bool port = vertices[at.index()].node != vertices[link.to.index()].node;
          if (ports + (port ? 1 : 0) > 2) continue;
          path.emplace_back(static_cast<std::int64_t>(i));
          walk(link.to, metric + internal::link_metric(link, vertices), ports + (port ? 1 : 0));
          path.pop_back();
        }
        seen[at.index()] = false;
      };
  walk(source, 0, 0);
  std::map<LinkId, double> result;
  for (const auto& links : best)
    for (const auto link : links) result[link] += 1.0 / static_cast<double>(best.size());
  return result;
}

}  // namespace foreshard
