// Lays a workload out flat for the engines (plan.h): fluid.cc, simgrid.cc and slopes.cc read it so.
// Progress has no unit here: the largest weight of a shape is 1.
#include "sim/engine/internal/plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace foreshard::engine::internal {
namespace {

double own_hold(const Shape& shape, ResourceId resource) {
  for (const Occupation& o : shape.occupations)
    if (o.resource == resource) return o.amount;
  return 0;
}

}  // namespace

Shapes::Shapes(const Workload& workload) {
  shapes_.reserve(workload.shapes().size());
  for (const Shape& shape : workload.shapes()) {
    NormalShape n;
    n.first_load = static_cast<std::int32_t>(loads_.size());
    n.loads = static_cast<std::int32_t>(shape.usages.size());
    n.first_hold = static_cast<std::int32_t>(holds_.size());
    n.connections = shape.connections;
    if (!shape.usages.empty()) n.scale = std::ranges::max(shape.usages, {}, &Usage::weight).weight;
    n.cap = shape.rate_cap * n.scale;
    n.alone_rate = n.cap;
    n.alone_bound = kCapped;
    for (const Usage& usage : shape.usages) {
      const double load = usage.weight / n.scale * usage.multiplicity;
      const double left =
          capacity_left(workload.capacity(usage.resource), own_hold(shape, usage.resource));
      if (left / load < n.alone_rate) {
        n.alone_rate = left / load;
        n.alone_bound = usage.resource.value();
      }
      loads_.push_back({usage.resource.value(), load});
    }
    for (const Occupation& o : shape.occupations)
      if (o.amount > 0) holds_.push_back({o.resource.value(), o.amount});
    n.holds = static_cast<std::int32_t>(holds_.size()) - n.first_hold;
    shapes_.push_back(n);
  }
}

Dependencies::Dependencies(const Workload& workload) {
  reserve_on_huge_pages(nodes_, workload.activity_count() + 1);
  nodes_.resize(workload.activity_count() + 1);
  const auto edges = workload.edges();
  const auto activities = workload.activities();
  FORESHARD_CHECK(edges.size() + activities.size() < std::numeric_limits<std::uint32_t>::max());
  std::size_t count = edges.size();
  for (const auto& [from, to] : edges) {
    ++nodes_[from.index() + 1].begin;
    ++nodes_[to.index()].pending;
  }
  for (std::size_t a = 0; a < activities.size(); ++a) {
    const ActivityId from = activities[a].release_from;
    if (!from.valid()) continue;
    ++nodes_[from.index() + 1].begin;
    ++nodes_[a].pending;
    ++count;
  }
  for (std::size_t a = 1; a < nodes_.size(); ++a) nodes_[a].begin += nodes_[a - 1].begin;

  // Filling advances each `begin` to its end, which is the next node's begin: shift back
  // afterwards.
  reserve_on_huge_pages(targets_, count);
  targets_.resize(count);
  const auto add = [this](ActivityId from, std::int32_t to) {
    Node& node = nodes_[from.index()];
    if (node.first < 0) node.first = to;
    targets_[node.begin++] = to;
  };
  for (const auto& [from, to] : edges) add(from, to.value());
  for (std::size_t a = 0; a < activities.size(); ++a)
    if (activities[a].release_from.valid())
      add(activities[a].release_from, static_cast<std::int32_t>(a));
  for (std::size_t a = nodes_.size() - 1; a > 0; --a) nodes_[a].begin = nodes_[a - 1].begin;
  nodes_[0].begin = 0;
}

}  // namespace foreshard::engine::internal
