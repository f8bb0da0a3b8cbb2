/// \file
/// The rules of plausibility.h, one function each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "topology/plausibility.h"

namespace foreshard::internal {

struct Subject {
  const ClusterConfig& config;
  const ClusterView& cluster;
  const Hardware& hardware;
  /// Links that leave each vertex.
  std::vector<std::vector<LinkId>> links_from;

  const Vertex& vertex(VertexId id) const { return cluster.vertices()[id.index()]; }
  const Link& link(LinkId id) const { return cluster.links()[id.index()]; }
  BytesPerSecond nominal(LinkId id) const { return link(id).bandwidth / link(id).efficiency; }
};

Subject subject_of(const ClusterConfig& config, const ClusterView& cluster,
                   const Hardware& hardware);

using Findings = std::vector<Finding>;

void find_port_rates(const Subject& subject, Findings& findings);
void find_slots(const Subject& subject, Findings& findings);
void find_isolated(const Subject& subject, Findings& findings);
void find_nvlinks(const Subject& subject, Findings& findings);
void find_missing_nvlinks(const Subject& subject, Findings& findings);
void find_uplinks(const Subject& subject, Findings& findings);
void find_oversubscription(const Subject& subject, Findings& findings);
void find_switches(const Subject& subject, Findings& findings);
void find_uneven_nodes(const Subject& subject, Findings& findings);
void find_degraded(const Subject& subject, Findings& findings);
void find_mixed_memory(const Subject& subject, Findings& findings);
void find_latencies(const Subject& subject, Findings& findings);
void find_slow_links(const Subject& subject, Findings& findings);
void find_launch_times(const Subject& subject, Findings& findings);

}  // namespace foreshard::internal
