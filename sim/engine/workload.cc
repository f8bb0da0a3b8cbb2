// Builds workloads (workload.h) for sim/simulate. Every fault of a workload is the caller's and
// fails a check here, so that engines need not look for it.
#include "sim/engine/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

#include "sim/engine/internal/plan.h"

namespace foreshard::engine {
namespace {

constexpr std::size_t kMostIds = std::numeric_limits<std::int32_t>::max();

bool positive(double x) {
  return x > 0 && std::isfinite(x);
}
bool non_negative(double x) {
  return x >= 0 && std::isfinite(x);
}

template <class Tag>
Id<Tag> next_id(std::size_t size) {
  FORESHARD_CHECK(size < kMostIds);
  return Id<Tag>(static_cast<std::int64_t>(size));
}

// Shapes have a handful of entries or a few thousand: sorting is fine for both.
template <class Entry>
bool distinct(const std::vector<Entry>& entries) {
  std::vector<ResourceId> ids;
  ids.reserve(entries.size());
  for (const Entry& entry : entries) ids.push_back(entry.resource);
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

// The first resource that the shape uses and that its own occupation fills, or an invalid id.
ResourceId starved_of(const Workload& workload, const Shape& shape) {
  for (const Occupation& occupation : shape.occupations)
    if (occupation.amount >= workload.capacity(occupation.resource))
      for (const Usage& usage : shape.usages)
        if (usage.resource == occupation.resource) return usage.resource;
  return {};
}

}  // namespace

ResourceId Workload::add_resource(double capacity, std::string name) {
  FORESHARD_CHECK(positive(capacity));
  const auto id = next_id<ResourceTag>(capacities_.size());
  capacities_.push_back(capacity);
  names_.push_back(std::move(name));
  return id;
}

ShapeId Workload::add_shape(Shape shape) {
  const auto exists = [this](ResourceId id) { return id.valid() && id.index() < resource_count(); };
  for (const Usage& usage : shape.usages) {
    FORESHARD_CHECK(exists(usage.resource));
    FORESHARD_CHECK(positive(usage.weight));
    FORESHARD_CHECK(positive(usage.multiplicity));
  }
  for (const Occupation& occupation : shape.occupations) {
    FORESHARD_CHECK(exists(occupation.resource));
    FORESHARD_CHECK(non_negative(occupation.amount));
  }
  FORESHARD_CHECK(distinct(shape.usages));
  FORESHARD_CHECK(distinct(shape.occupations));
  FORESHARD_CHECK(positive(shape.connections));
  FORESHARD_CHECK(shape.rate_cap > 0);
  const auto id = next_id<ShapeTag>(shapes_.size());
  shapes_.push_back(std::move(shape));
  return id;
}

ActivityId Workload::add_activity(const Activity& activity) {
  FORESHARD_CHECK(activity.shape.valid() && activity.shape.index() < shapes_.size());
  FORESHARD_CHECK(non_negative(activity.latency.in_base()));
  FORESHARD_CHECK(non_negative(activity.work));
  FORESHARD_CHECK(non_negative(activity.release_lag.in_base()));
  const auto id = next_id<ActivityTag>(activities_.size());
  FORESHARD_CHECK(activity.release_from < id);
  activities_.push_back(activity);
  return id;
}

void Workload::add_edge(ActivityId from, ActivityId to) {
  FORESHARD_CHECK(from.valid() && from < to && to.index() < activities_.size());
  edges_.push_back({from, to});
}

void Workload::add_capacity_change(ResourceId resource, Seconds at, double capacity,
                                   Seconds period) {
  FORESHARD_CHECK(resource.valid() && resource.index() < resource_count());
  FORESHARD_CHECK(non_negative(at.in_base()));
  FORESHARD_CHECK(non_negative(capacity));
  FORESHARD_CHECK(period > 0_s);
  events_.push_back({.kind = Event::Kind::kCapacity,
                     .at = at,
                     .period = period,
                     .resource = resource,
                     .capacity = capacity});
}

void Workload::add_failure(ResourceId resource, Seconds at, Seconds failure_timeout) {
  FORESHARD_CHECK(resource.valid() && resource.index() < resource_count());
  FORESHARD_CHECK(non_negative(at.in_base()));
  FORESHARD_CHECK(failure_timeout >= 0_s);
  events_.push_back({.kind = Event::Kind::kFails,
                     .at = at,
                     .resource = resource,
                     .failure_timeout = failure_timeout});
}

void Workload::add_repair(ResourceId resource, Seconds at) {
  const auto of_kind = [&](Event::Kind kind) {
    return std::ranges::count_if(events_, [&](const Event& event) {
      return event.kind == kind && event.resource == resource && event.at <= at;
    });
  };
  FORESHARD_CHECK(of_kind(Event::Kind::kFails) > of_kind(Event::Kind::kRepaired));
  FORESHARD_CHECK(non_negative(at.in_base()));
  events_.push_back({.kind = Event::Kind::kRepaired, .at = at, .resource = resource});
}

void Workload::add_shape_change(ShapeId of, Seconds at, ShapeId as) {
  const auto exists = [this](ShapeId id) { return id.valid() && id.index() < shapes_.size(); };
  FORESHARD_CHECK(exists(of) && exists(as));
  FORESHARD_CHECK(non_negative(at.in_base()));
  events_.push_back({.kind = Event::Kind::kShape, .at = at, .of = of, .as = as});
}

void Workload::add_background(ShapeId shape, Seconds from, Seconds until, Seconds period) {
  FORESHARD_CHECK(shape.valid() && shape.index() < shapes_.size());
  FORESHARD_CHECK(non_negative(from.in_base()) && from <= until);
  FORESHARD_CHECK(until == kNever || until - from <= period);
  if (from == until) return;
  const auto add = [&](Event::Kind kind, Seconds at) {
    events_.push_back({.kind = kind, .at = at, .period = period, .as = shape, .load = loads_});
  };
  // Where one period ends as the next begins, the end comes first.
  if (until < kNever) add(Event::Kind::kLoadEnds, until);
  add(Event::Kind::kLoadBegins, from);
  ++loads_;
}

void Workload::reserve(std::size_t activities, std::size_t edges) {
  internal::reserve_on_huge_pages(activities_, activities);
  internal::reserve_on_huge_pages(edges_, edges);
}

Status fault_in(const Workload& workload) {
  const auto shapes = workload.shapes();
  std::vector<bool> suspect(shapes.size());
  for (std::size_t s = 0; s < shapes.size(); ++s)
    suspect[s] = (shapes[s].usages.empty() && std::isinf(shapes[s].rate_cap)) ||
                 starved_of(workload, shapes[s]).valid();
  if (std::ranges::find(suspect, true) == suspect.end()) return {};

  const auto activities = workload.activities();
  for (std::size_t a = 0; a < activities.size(); ++a) {
    if (!suspect[activities[a].shape.index()] || activities[a].work == 0) continue;
    const Shape& shape = workload.shape(activities[a].shape);
    const std::string name = "activity " + std::to_string(a);
    if (shape.usages.empty())
      return Error{Error::Code::kInvalidInput,
                   name + " has work but neither uses a resource nor has a rate cap"};
    return Error{Error::Code::kInfeasible, name + " can never run: it occupies all of '" +
                                               workload.resource_name(starved_of(workload, shape)) +
                                               "', which it also uses"};
  }
  return {};
}

}  // namespace foreshard::engine
