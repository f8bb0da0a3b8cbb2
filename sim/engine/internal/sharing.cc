// Keeps the rates of running activities at weighted max-min (sharing.h), for fluid.cc. Rates are
// progress per second.
#include "sim/engine/internal/sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foreshard::engine::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Levels and loads that differ by less than this part are equal: sums over the members of a
// resource in different orders differ by far less.
constexpr double kSame = 1e-12;

// A rate that changes by a few ulp counts as unchanged: its event can stay.
bool same_rate(double a, double b) {
  return std::abs(a - b) <= 4 * std::numeric_limits<double>::epsilon() * b;
}

}  // namespace

MaxMinSharing::MaxMinSharing(const Workload& workload, const Shapes& shapes)
    : shapes_(shapes), resources_(workload.resource_count()) {
  for (std::size_t r = 0; r < resources_.size(); ++r)
    resources_[r].capacity = workload.capacity(ResourceId(static_cast<std::int64_t>(r)));
  std::int32_t most = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s)
    most = std::max(most, shapes[static_cast<std::int32_t>(s)].loads);
  free_slots_.resize(at(most) + 1);
}

std::int32_t MaxMinSharing::new_slot(std::int32_t places) {
  auto& free = free_slots_[at(places)];
  if (!free.empty()) {
    const std::int32_t slot = free.back();
    free.pop_back();
    return slot;
  }
  Slot& slot = slots_.emplace_back();
  slot.first_place = static_cast<std::int32_t>(places_.size());
  slot.places = places;
  places_.resize(places_.size() + at(places));
  return static_cast<std::int32_t>(slots_.size() - 1);
}

void MaxMinSharing::set_capacity(std::int32_t resource, double capacity) {
  resources_[at(resource)].capacity = capacity;
  capacities_moved_ = true;
  mark_changed(resource);
}

void MaxMinSharing::slots_on(std::int32_t resource, std::vector<std::int32_t>& slots) const {
  for (const ResourceUse& m : resources_[at(resource)].members) slots.push_back(m.slot);
}

MaxMinSharing::Bound MaxMinSharing::bound_alone(const NormalShape& shape) const {
  if (!capacities_moved_) return {shape.alone_rate, shape.alone_bound};
  Bound least{shape.cap, kCapped};
  for (const Load& load : shapes_.loads(shape)) {
    double held = 0;
    for (const Hold& hold : shapes_.holds(shape))
      if (hold.resource == load.resource) held = hold.amount;
    const double rate = capacity_left(resources_[at(load.resource)].capacity, held) / load.load;
    if (rate < least.rate) least = {rate, load.resource};
  }
  return least;
}

std::int32_t MaxMinSharing::start_idle() {
  return new_slot(0);
}

std::int32_t MaxMinSharing::start(std::int32_t shape) {
  const NormalShape& s = shapes_[shape];
  const auto loads = shapes_.loads(s);
  const std::int32_t slot = new_slot(s.loads);
  Slot& state = slots_[at(slot)];
  state.shape = shape;
  state.connections = s.connections;
  state.cap = s.cap;
  state.rate = 0;
  state.bound = kUnbound;
  bool alone = true;
  for (std::int32_t i = 0; i < s.loads; ++i) {
    const Load& load = loads[at(i)];
    Resource& resource = resources_[at(load.resource)];
    alone &= resource.members.empty() && resource.holders == 0;
    places_[at(state.first_place + i)] = {load.resource,
                                          static_cast<std::int32_t>(resource.members.size())};
    resource.members.push_back({.slot = slot, .place = i, .pull = load.load * s.connections});
  }
  if (alone) {
    const Bound own_bound = bound_alone(s);
    state.rate = own_bound.rate;
    state.bound = own_bound.by;
    for (const UsePosition& place : places(state)) {
      Resource& resource = resources_[at(place.resource)];
      ResourceUse& own = resource.members.front();
      own.level = state.rate / s.connections;
      own.bound = place.resource == state.bound;
      if (own.bound) {
        resource.bound = 1;
        resource.bound_level = own.level;
      }
    }
  } else {
    fresh_.push_back(slot);
    for (const Load& load : loads) mark_changed(load.resource);
  }
  for (const Hold& hold : shapes_.holds(s)) {
    Resource& resource = resources_[at(hold.resource)];
    resource.held += hold.amount;
    ++resource.holders;
    mark_changed(hold.resource);
  }
  return slot;
}

void MaxMinSharing::stop(std::int32_t slot) {
  const Slot& state = slots_[at(slot)];
  for (const UsePosition& place : places(state)) {
    Resource& resource = resources_[at(place.resource)];
    auto& members = resource.members;
    if (members[at(place.index)].bound) --resource.bound;
    const ResourceUse& last = members.back();
    places_[at(slots_[at(last.slot)].first_place + last.place)].index = place.index;
    members[at(place.index)] = last;
    members.pop_back();
    mark_changed(place.resource);
  }
  for (const Hold& hold : shapes_.holds(shapes_[state.shape])) {
    Resource& resource = resources_[at(hold.resource)];
    // An empty sum is exactly zero, so that no rounding error remains without holders.
    resource.held = --resource.holders == 0 ? 0 : resource.held - hold.amount;
    mark_changed(hold.resource);
  }
  free_slots_[at(state.places)].push_back(slot);
}

void MaxMinSharing::mark_changed(std::int32_t resource) {
  Resource& r = resources_[at(resource)];
  if (r.changed || r.members.empty()) return;
  r.changed = true;
  changed_.push_back(resource);
}

// Surveys a resource, once per epoch and before any of its members is chosen.
void MaxMinSharing::visit(std::int32_t resource) {
  Resource& r = resources_[at(resource)];
  if (r.visited == epoch_) return;
  r.visited = epoch_;
  r.chosen = 0;
  r.chosen_pull = 0;
  r.others_use = 0;
  r.highest = 0;
  for (const ResourceUse& m : r.members) {
    r.others_use += m.pull * m.level;
    r.highest = std::max(r.highest, m.level);
  }
  region_.push_back(resource);
}

void MaxMinSharing::choose(std::int32_t slot) {
  Slot& s = slots_[at(slot)];
  if (s.chosen == epoch_) return;
  s.chosen = epoch_;
  chosen_.push_back(slot);
  for (const UsePosition& place : places(s)) {
    visit(place.resource);
    Resource& r = resources_[at(place.resource)];
    ResourceUse& m = r.members[at(place.index)];
    m.chosen = epoch_;
    ++r.chosen;
    r.chosen_pull += m.pull;
    r.others_use -= m.pull * m.level;
    if (m.bound) --r.bound;
  }
}

void MaxMinSharing::settle() {
  ++epoch_;
  region_.clear();
  chosen_.clear();
  changes_.clear();
  for (const std::int32_t r : changed_) {
    resources_[at(r)].changed = false;
    visit(r);
    for (const ResourceUse& m : resources_[at(r)].members)
      if (m.bound) choose(m.slot);
  }
  for (const std::int32_t slot : fresh_) choose(slot);
  changed_.clear();
  fresh_.clear();

  std::size_t followed = 0;
  do {
    for (; followed < chosen_.size(); ++followed) choose_bound_by_its_resources(chosen_[followed]);
    fill();
    const std::size_t solved = region_.size();
    for (std::size_t i = 0; i < solved; ++i) choose_unbound(region_[i]);
  } while (followed < chosen_.size());
  apply();
}

// A chosen slot may take more or less of a full resource than before, which changes the rates of
// the members that this resource bounds. Choosing them at once, without the test, saves most
// fillings.
void MaxMinSharing::choose_bound_by_its_resources(std::int32_t slot) {
  for (const UsePosition& place : places(slots_[at(slot)])) {
    const Resource& r = resources_[at(place.resource)];
    if (r.bound == 0) continue;
    for (const ResourceUse& m : r.members)
      if (m.bound && m.chosen != epoch_) choose(m.slot);
  }
}

// Progressive filling of the chosen slots: all levels rise together, and each limit freezes the
// slots that it concerns. A resource's limit only moves up as others freeze, so its entry in the
// heap may be out of date, but (up to rounding) never too high.
void MaxMinSharing::fill() {
  const auto later = [](const Limit& a, const Limit& b) { return a.level > b.level; };
  const auto level_of = [](const Resource& r) { return std::max(0.0, r.left) / r.pull; };
  ++filling_;
  limits_.clear();
  for (const std::int32_t i : region_) {
    Resource& r = resources_[at(i)];
    const bool others = at(r.chosen) < r.members.size();
    r.left = capacity_left(r.capacity, r.held) - (others ? r.others_use : 0);
    r.pull = r.chosen_pull;
    r.unfrozen = r.chosen;
    r.full_level = kInfinity;
    r.highest_chosen = 0;
    if (r.unfrozen > 0) limits_.push_back({level_of(r), i});
  }
  for (const std::int32_t slot : chosen_) {
    const Slot& s = slots_[at(slot)];
    if (std::isfinite(s.cap)) limits_.push_back({s.cap / s.connections, ~slot});
  }
  std::ranges::make_heap(limits_, later);

  double level = 0;
  while (!limits_.empty()) {
    std::ranges::pop_heap(limits_, later);
    const Limit limit = limits_.back();
    limits_.pop_back();
    if (limit.index < 0) {
      const Slot& s = slots_[at(~limit.index)];
      if (s.frozen == filling_) continue;
      level = std::max(level, limit.level);
      freeze(~limit.index, level, s.cap, kCapped);
      continue;
    }
    Resource& r = resources_[at(limit.index)];
    if (r.unfrozen == 0) continue;
    const double next = limits_.empty() ? kInfinity : limits_.front().level;
    if (r.unfrozen < static_cast<std::int32_t>(r.members.size()) && level_of(r) <= next) refresh(r);
    if (const double now = level_of(r); now > next) {
      limits_.push_back({now, limit.index});
      std::ranges::push_heap(limits_, later);
      continue;
    }
    level = std::max(level, level_of(r));
    fill_from(limit.index, level);
  }
}

// Computes sums afresh that repeated subtraction may have rounded.
void MaxMinSharing::refresh(Resource& r) {
  r.left = capacity_left(r.capacity, r.held);
  r.pull = 0;
  for (const ResourceUse& m : r.members) {
    if (m.chosen != epoch_)
      r.left -= m.pull * m.level;
    else if (m.frozen == filling_)
      r.left -= m.pull * m.new_level;
    else
      r.pull += m.pull;
  }
}

void MaxMinSharing::fill_from(std::int32_t resource, double level) {
  Resource& r = resources_[at(resource)];
  r.full_level = level;
  for (const ResourceUse& m : r.members)
    if (m.chosen == epoch_ && m.frozen != filling_)
      freeze(m.slot, level, level * slots_[at(m.slot)].connections, resource);
}

void MaxMinSharing::freeze(std::int32_t slot, double level, double rate, std::int32_t bound) {
  Slot& s = slots_[at(slot)];
  s.frozen = filling_;
  s.new_rate = rate;
  s.new_bound = bound;
  for (const UsePosition& place : places(s)) {
    Resource& r = resources_[at(place.resource)];
    ResourceUse& m = r.members[at(place.index)];
    m.frozen = filling_;
    m.new_level = level;
    r.left -= m.pull * level;
    r.pull -= m.pull;
    --r.unfrozen;
    r.highest_chosen = std::max(r.highest_chosen, level);
  }
}

// Chooses those members of a resource that were not solved for and whose rate is no longer max-min.
void MaxMinSharing::choose_unbound(std::int32_t resource) {
  const Resource& r = resources_[at(resource)];
  if (at(r.chosen) == r.members.size()) return;
  const bool full = r.left <= kSame * r.capacity;
  const bool overfull = r.left < -kSame * r.capacity;
  const double bound_from = full ? r.highest_chosen * (1 - kSame) : kInfinity;
  const double free_up_to = overfull ? 0 : r.full_level * (1 + kSame);
  const bool any_unbound = r.bound > 0 && r.bound_level < bound_from;
  if (!any_unbound && r.highest <= free_up_to) return;
  for (const ResourceUse& m : r.members) {
    if (m.chosen == epoch_) continue;
    if ((m.bound && m.level < bound_from) || m.level > free_up_to) choose(m.slot);
  }
}

void MaxMinSharing::apply() {
  for (const std::int32_t slot : chosen_) {
    Slot& s = slots_[at(slot)];
    s.bound = s.new_bound;
    for (const UsePosition& place : places(s)) {
      Resource& r = resources_[at(place.resource)];
      ResourceUse& m = r.members[at(place.index)];
      m.level = m.new_level;
      m.bound = place.resource == s.bound;
      if (!m.bound) continue;
      ++r.bound;
      r.bound_level = m.level;
    }
    if (same_rate(s.new_rate, s.rate)) continue;
    changes_.push_back({slot, s.rate});
    s.rate = s.new_rate;
  }
}

}  // namespace foreshard::engine::internal
