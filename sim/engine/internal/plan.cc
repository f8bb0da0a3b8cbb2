#include "sim/engine/internal/plan.h"

#include <algorithm>

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

Successors::Successors(const Workload& workload)
    : begin_(workload.activity_count() + 1), pending_(workload.activity_count()) {
  const auto edges = workload.edges();
  const auto activities = workload.activities();
  std::size_t count = edges.size();
  for (const auto& [from, to] : edges) {
    ++begin_[from.index() + 1];
    ++pending_[to.index()];
  }
  for (std::size_t a = 0; a < activities.size(); ++a) {
    const ActivityId from = activities[a].release_from;
    if (!from.valid()) continue;
    ++begin_[from.index() + 1];
    ++pending_[a];
    ++count;
  }
  for (std::size_t a = 1; a < begin_.size(); ++a) begin_[a] += begin_[a - 1];

  // Filling advances each begin to its end, which is the next one's begin: shift back afterwards.
  targets_.resize(count);
  for (const auto& [from, to] : edges) targets_[begin_[from.index()]++] = to.value();
  for (std::size_t a = 0; a < activities.size(); ++a) {
    const ActivityId from = activities[a].release_from;
    if (from.valid()) targets_[begin_[from.index()]++] = static_cast<std::int32_t>(a);
  }
  for (std::size_t a = begin_.size() - 1; a > 0; --a) begin_[a] = begin_[a - 1];
  begin_[0] = 0;
}

}  // namespace foreshard::engine::internal
