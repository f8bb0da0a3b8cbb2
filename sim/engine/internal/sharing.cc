#include "sim/engine/internal/sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foreshard::engine::internal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Levels and loads that differ by less than this part are equal: sums over the members of a
// resource, taken in different orders, differ by far less.
constexpr double kSame = 1e-12;

// A rate that moved by a few ulp did not move: its event can stay.
bool same_rate(double a, double b) {
  return std::abs(a - b) <= 4 * std::numeric_limits<double>::epsilon() * b;
}

}  // namespace

Sharing::Sharing(const Workload& workload, const Shapes& shapes)
    : shapes_(shapes), resources_(workload.resource_count()) {
  for (std::size_t r = 0; r < resources_.size(); ++r)
    resources_[r].capacity = workload.capacity(ResourceId(static_cast<std::int64_t>(r)));
  std::int32_t most = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s)
    most = std::max(most, shapes[static_cast<std::int32_t>(s)].loads);
  free_slots_.resize(at(most) + 1);
}

std::int32_t Sharing::new_slot(std::int32_t places) {
  auto& free = free_slots_[at(places)];
  if (!free.empty()) {
    const std::int32_t slot = free.back();
    free.pop_back();
    return slot;
  }
  slots_.emplace_back().first_place = static_cast<std::int32_t>(places_.size());
  places_.resize(places_.size() + at(places));
  return static_cast<std::int32_t>(slots_.size() - 1);
}

std::int32_t Sharing::start_idle() {
  return new_slot(0);
}

std::int32_t Sharing::start(std::int32_t shape) {
  const NormalShape& s = shapes_[shape];
  const auto loads = shapes_.loads(s);
  const std::int32_t slot = new_slot(s.loads);
  Slot& state = slots_[at(slot)];
  state.shape = shape;
  bool alone = true;
  for (std::int32_t i = 0; i < s.loads; ++i) {
    const Load& load = loads[at(i)];
    Resource& resource = resources_[at(load.resource)];
    alone &= resource.members.empty() && resource.holders == 0;
    places_[at(state.first_place + i)] = static_cast<std::int32_t>(resource.members.size());
    resource.members.push_back({slot, i, load.load, load.load * s.connections});
  }
  if (alone) {
    state.rate = s.alone_rate;
    state.level = s.alone_rate / s.connections;
    state.bound = s.alone_bound;
  } else {
    state.rate = 0;
    state.level = 0;
    state.bound = kUnbound;
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

void Sharing::stop(std::int32_t slot) {
  const Slot& state = slots_[at(slot)];
  const NormalShape& s = shapes_[state.shape];
  const auto loads = shapes_.loads(s);
  for (std::int32_t i = 0; i < s.loads; ++i) {
    auto& members = resources_[at(loads[at(i)].resource)].members;
    const std::int32_t place = places_[at(state.first_place + i)];
    const Member& last = members.back();
    places_[at(slots_[at(last.slot)].first_place + last.load_index)] = place;
    members[at(place)] = last;
    members.pop_back();
    mark_changed(loads[at(i)].resource);
  }
  for (const Hold& hold : shapes_.holds(s)) {
    Resource& resource = resources_[at(hold.resource)];
    // An empty sum is exactly zero, so that rounding does not outlive those that caused it.
    resource.held = --resource.holders == 0 ? 0 : resource.held - hold.amount;
    mark_changed(hold.resource);
  }
  free_slots_[at(s.loads)].push_back(slot);
}

void Sharing::mark_changed(std::int32_t resource) {
  Resource& r = resources_[at(resource)];
  if (r.changed || r.members.empty()) return;
  r.changed = true;
  changed_.push_back(resource);
}

void Sharing::visit(std::int32_t resource) {
  Resource& r = resources_[at(resource)];
  if (r.visited == epoch_) return;
  r.visited = epoch_;
  r.chosen = 0;
  region_.push_back(resource);
}

void Sharing::choose(std::int32_t slot) {
  Slot& s = slots_[at(slot)];
  if (s.chosen == epoch_) return;
  s.chosen = epoch_;
  s.new_rate = s.rate;
  s.new_level = s.level;
  chosen_.push_back(slot);
  for (const Load& load : shapes_.loads(shapes_[s.shape])) {
    visit(load.resource);
    ++resources_[at(load.resource)].chosen;
  }
}

void Sharing::settle() {
  ++epoch_;
  region_.clear();
  chosen_.clear();
  changes_.clear();
  for (const std::int32_t r : changed_) {
    resources_[at(r)].changed = false;
    visit(r);
    for (const Member& member : resources_[at(r)].members)
      if (slots_[at(member.slot)].bound == r) choose(member.slot);
  }
  for (const std::int32_t slot : fresh_) choose(slot);
  changed_.clear();
  fresh_.clear();

  for (bool grew = true; grew;) {
    for (const std::int32_t r : region_) prepare(r);
    fill();
    grew = false;
    const std::size_t solved = region_.size();
    for (std::size_t i = 0; i < solved; ++i) grew |= choose_unbound(region_[i]);
  }
  apply();
}

// What the members that are not being solved for leave of a resource.
void Sharing::prepare(std::int32_t resource) {
  Resource& r = resources_[at(resource)];
  r.left = capacity_left(r.capacity, r.held);
  r.pull = 0;
  r.unfrozen = r.chosen;
  r.full_level = kInfinity;
  r.touched = false;
  for (const Member& member : r.members) {
    const Slot& s = slots_[at(member.slot)];
    if (s.chosen == epoch_)
      r.pull += member.pull;
    else
      r.left -= member.load * s.rate;
  }
  r.left = std::max(r.left, 0.0);
}

// Progressive filling of the chosen: all levels rise together, and at each limit those that it
// concerns stay behind. A resource's limit only moves up as others freeze, so the one on the heap
// may be out of date, but never too high.
void Sharing::fill() {
  const auto later = [](const Limit& a, const Limit& b) { return a.level > b.level; };
  limits_.clear();
  for (const std::int32_t i : region_) {
    const Resource& r = resources_[at(i)];
    if (r.unfrozen > 0) limits_.push_back({r.left / r.pull, i});
  }
  for (const std::int32_t slot : chosen_) {
    Slot& s = slots_[at(slot)];
    s.frozen = false;
    const NormalShape& shape = shapes_[s.shape];
    if (std::isfinite(shape.cap)) limits_.push_back({shape.cap / shape.connections, ~slot});
  }
  std::ranges::make_heap(limits_, later);

  double level = 0;
  while (!limits_.empty()) {
    std::ranges::pop_heap(limits_, later);
    const Limit limit = limits_.back();
    limits_.pop_back();
    if (limit.index < 0) {
      const std::int32_t slot = ~limit.index;
      if (slots_[at(slot)].frozen) continue;
      level = std::max(level, limit.level);
      freeze(slot, level, shapes_[slots_[at(slot)].shape].cap, kCapped);
      continue;
    }
    Resource& r = resources_[at(limit.index)];
    if (r.unfrozen == 0) continue;
    const double next = limits_.empty() ? kInfinity : limits_.front().level;
    if (r.touched && r.left / r.pull <= next) refresh(r);
    if (const double now = r.left / r.pull; now > next) {
      limits_.push_back({now, limit.index});
      std::ranges::push_heap(limits_, later);
      continue;
    }
    level = std::max(level, r.left / r.pull);
    fill_from(limit.index, level);
  }
}

// Sums afresh what subtractions may have rounded away.
void Sharing::refresh(Resource& r) {
  r.left = capacity_left(r.capacity, r.held);
  r.pull = 0;
  r.touched = false;
  for (const Member& member : r.members) {
    const Slot& s = slots_[at(member.slot)];
    if (s.chosen != epoch_)
      r.left -= member.load * s.rate;
    else if (s.frozen)
      r.left -= member.load * s.new_rate;
    else
      r.pull += member.pull;
  }
  r.left = std::max(r.left, 0.0);
}

void Sharing::fill_from(std::int32_t resource, double level) {
  resources_[at(resource)].full_level = level;
  for (const Member& member : resources_[at(resource)].members) {
    const Slot& s = slots_[at(member.slot)];
    if (s.chosen == epoch_ && !s.frozen)
      freeze(member.slot, level, level * shapes_[s.shape].connections, resource);
  }
}

void Sharing::freeze(std::int32_t slot, double level, double rate, std::int32_t bound) {
  Slot& s = slots_[at(slot)];
  s.frozen = true;
  s.new_level = level;
  s.new_rate = rate;
  s.new_bound = bound;
  const NormalShape& shape = shapes_[s.shape];
  for (const Load& load : shapes_.loads(shape)) {
    Resource& r = resources_[at(load.resource)];
    r.left = std::max(0.0, r.left - load.load * rate);
    r.pull -= load.load * shape.connections;
    --r.unfrozen;
    r.touched = true;
  }
}

// Tests the members of a resource that were not solved for; those whose rate is not max-min any
// more are chosen. \return whether there are any.
bool Sharing::choose_unbound(std::int32_t resource) {
  const Resource& r = resources_[at(resource)];
  if (at(r.chosen) == r.members.size()) return false;
  double used = 0;
  double highest = 0;
  for (const Member& member : r.members) {
    const Slot& s = slots_[at(member.slot)];
    const bool solved = s.chosen == epoch_;
    used += member.load * (solved ? s.new_rate : s.rate);
    highest = std::max(highest, solved ? s.new_level : s.level);
  }
  const double capacity = capacity_left(r.capacity, r.held);
  const bool full = used >= capacity * (1 - kSame);
  const bool overfull = used > capacity + kSame * r.capacity;
  const std::size_t before = chosen_.size();
  for (const Member& member : r.members) {
    const Slot& s = slots_[at(member.slot)];
    if (s.chosen == epoch_) continue;
    const bool unbound = s.bound == resource && (!full || s.level < highest * (1 - kSame));
    const bool in_the_way = overfull || s.level > r.full_level * (1 + kSame);
    if (unbound || (in_the_way && s.rate > 0)) choose(member.slot);
  }
  return chosen_.size() > before;
}

void Sharing::apply() {
  for (const std::int32_t slot : chosen_) {
    Slot& s = slots_[at(slot)];
    s.level = s.new_level;
    s.bound = s.new_bound;
    if (same_rate(s.new_rate, s.rate)) continue;
    changes_.push_back({slot, s.rate});
    s.rate = s.new_rate;
  }
}

}  // namespace foreshard::engine::internal
