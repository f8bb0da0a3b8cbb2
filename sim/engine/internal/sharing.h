/// \file
/// The rates of running activities: weighted max-min over shared resources, kept up to date as
/// activities and capacities change.
///
/// Rates are max-min exactly if every activity is *bound*: it runs at its cap, or it uses a
/// resource that is full and on which no activity has a higher level, where level = rate /
/// connections. That test is local, so a change is repaired locally. First choose the new
/// activities, those that the changed resources bound, those that other resources of the chosen
/// ones bound, and so on; solve for the chosen ones only, with all other rates held. Then test the
/// neighbours that share a resource with a chosen one: a neighbour that is no longer bound, or that
/// has a higher level than it may have next to a chosen one, is chosen too, and the set is solved
/// again. When all are bound, the rates are the max-min rates of the whole workload, although most
/// of it was never looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/internal/plan.h"

namespace foreshard::engine::internal {

class MaxMinSharing {
 public:
  MaxMinSharing(const Workload& workload, const Shapes& shapes);

  /// Starts an activity of this shape and returns its slot, which identifies it until `stop`. If
  /// the activity is alone on its resources, its rate is right at once, otherwise after the next
  /// `settle`.
  std::int32_t start(std::int32_t shape);
  /// Frees the slot; the rates of others are right again after the next `settle`.
  void stop(std::int32_t slot);
  /// Returns a slot without resources, for an activity in its latency.
  std::int32_t start_idle();
  void stop_idle(std::int32_t slot) { free_slots_[0].push_back(slot); }

  /// Current progress per second; 0 while the occupations of others leave nothing.
  double rate(std::int32_t slot) const { return slots_[at(slot)].rate; }
  /// The resource that currently bounds the rate, or kCapped.
  std::int32_t bound(std::int32_t slot) const { return slots_[at(slot)].bound; }

  /// Rates are right again after the next `settle`.
  void set_capacity(std::int32_t resource, double capacity);
  /// Appends the slots that use the resource.
  void slots_on(std::int32_t resource, std::vector<std::int32_t>& slots) const;

  bool settled() const { return changed_.empty() && fresh_.empty(); }
  /// Restores max-min rates.
  void settle();
  /// A slot whose rate the last `settle` changed, with the rate that it had before.
  struct Change {
    std::int32_t slot;
    double old_rate;
  };
  std::span<const Change> changes() const { return changes_; }

 private:
  static constexpr std::int32_t kUnbound = -2;  // new slot: no resource bounds it yet

  struct Slot {
    double rate = 0;
    double connections = 1;
    double cap = 0;
    std::int32_t bound = kUnbound;
    std::int32_t shape = -1;
    std::int32_t first_place = 0;  // start of its places in places_, one per load
    std::int32_t places = 0;
    std::uint32_t chosen = 0;  // == epoch_: it is being solved for
    std::uint32_t frozen = 0;  // == filling_: its new rate is known
    double new_rate = 0;
    std::int32_t new_bound = kUnbound;
  };
  struct UsePosition {
    std::int32_t resource;
    std::int32_t index;  // index among the resource's members
  };
  // One use of a resource by a slot. It repeats data of the slot, so that a resource is surveyed
  // without looking at its slots.
  struct ResourceUse {
    std::int32_t slot;
    std::int32_t place;        // which of the slot's places
    double pull;               // load x connections: its use of the resource is pull x level
    double level = 0;          // rate / connections
    double new_level = 0;      // in the current filling, if frozen
    std::uint32_t chosen = 0;  // same as the slot's
    std::uint32_t frozen = 0;  // same as the slot's
    bool bound = false;        // whether this resource bounds the slot
  };
  struct Resource {
    double capacity = 0;
    double held = 0;
    std::int32_t holders = 0;
    bool changed = false;
    std::int32_t bound = 0;  // number of members that it bounds and that are not being solved for
    double bound_level = 0;  // level of these members
    std::uint32_t visited = 0;  // == epoch_: in region_, and the members below are of this epoch
    std::int32_t chosen = 0;    // number of members that are being solved for
    double chosen_pull = 0;     // sum of their pulls
    double others_use = 0;      // use of the other members
    double highest = 0;         // highest level of any member before
    std::int32_t unfrozen = 0;  // number of chosen members without a new rate
    double left = 0;            // capacity left for the unfrozen members
    double pull = 0;            // sum of the unfrozen members' pulls
    // level at which this resource stopped the filling; infinite: it did not
    double full_level = 0;
    double highest_chosen = 0;  // highest new level of a chosen member
    std::vector<ResourceUse> members;
  };
  // A resource (index >= 0) or the cap of slot ~index, which becomes limiting at `level`.
  struct Limit {
    double level;
    std::int32_t index;
  };

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  // A rate and the resource that bounds it, or kCapped.
  struct Bound {
    double rate;
    std::int32_t by;
  };
  Bound bound_alone(const NormalShape& shape) const;
  std::int32_t new_slot(std::int32_t places);
  ResourceUse& member(const UsePosition& place) {
    return resources_[at(place.resource)].members[at(place.index)];
  }
  std::span<UsePosition> places(const Slot& s) {
    return {places_.data() + s.first_place, at(s.places)};
  }
  void mark_changed(std::int32_t resource);
  void visit(std::int32_t resource);
  void choose(std::int32_t slot);
  void fill();
  void refresh(Resource& resource);
  void fill_from(std::int32_t resource, double level);
  void freeze(std::int32_t slot, double level, double rate, std::int32_t bound);
  void choose_bound_by_its_resources(std::int32_t slot);
  void choose_unbound(std::int32_t resource);
  void apply();

  const Shapes& shapes_;
  std::vector<Resource> resources_;
  bool capacities_moved_ = false;  // the shapes' alone_rate and alone_bound no longer hold
  std::vector<Slot> slots_;
  std::vector<UsePosition> places_;
  std::vector<std::vector<std::int32_t>> free_slots_;  // by number of places
  std::vector<std::int32_t> changed_;                  // resources
  std::vector<std::int32_t> fresh_;                    // slots without a rate
  std::uint32_t epoch_ = 0;                            // number of the current `settle`
  std::uint32_t filling_ = 0;                          // number of the current `fill`
  std::vector<std::int32_t> region_;                   // resources
  std::vector<std::int32_t> chosen_;                   // slots
  std::vector<Limit> limits_;                          // a heap, lowest level first
  std::vector<Change> changes_;
};

}  // namespace foreshard::engine::internal
