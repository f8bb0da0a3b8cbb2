/// \file
/// Summary of a cluster, for people and programs: counts, links by kind, bisection bandwidth, and
/// some routes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"

#include "topology/cluster_view.h"

namespace foreshard {

struct LinkClass {  ///< Directed links that are alike.
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;
  Seconds latency;
  std::int64_t count = 0;
  std::int64_t down = 0;
};

struct RouteSample {
  std::string from;
  std::string to;
  std::optional<BytesPerSecond> bandwidth{};  ///< Rate of one flow alone; empty: no route.
  std::optional<Seconds> latency{};
  std::optional<std::string_view> widest{};  ///< Name of Route::widest_kind.
  std::vector<std::string> links{};          ///< "a -> b", with the share where it is below 1.
  std::string error{};                       ///< Reason, if there is no route.
};

struct ClusterSummary {
  std::string name;
  std::int64_t nodes = 0;
  std::map<std::string, std::int64_t> devices;   ///< Device type -> count.
  std::map<std::string, std::int64_t> vertices;  ///< Vertex kind -> count.
  std::vector<LinkClass> links;                  ///< Ordered by kind, then descending bandwidth.
  std::optional<BytesPerSecond> bisection;
  std::string bisection_note;  ///< The two halves, or why it was left out.
  std::vector<RouteSample> routes;
};

/// Largest total rate at which one half of the cluster can send to the other: the first half of its
/// nodes to the rest; in a single node the first half of its devices. By maximum flow over the
/// links that are up, through no other device or host.
/// \return nothing with fewer than two devices.
/// Cost: seconds beyond 20,000 vertices.
/// Source: Goldberg and Tarjan, "A new approach to the maximum-flow problem", J. ACM 35(4), 1988.
std::optional<BytesPerSecond> bisection_bandwidth(const ClusterView& cluster);

/// Routes are from the first device to the second, to the last of its node, to its counterpart in
/// the next and the last node, and to the last device.
ClusterSummary summarize(const ClusterView& cluster);

std::string to_text(const ClusterSummary& summary, const Paper& paper = {});
std::string to_json(const ClusterSummary& summary);
const record::Record<ClusterSummary>& record_of(const ClusterSummary*);

std::string_view name_of(VertexKind kind);
std::string_view name_of(LinkKind kind);

}  // namespace foreshard
