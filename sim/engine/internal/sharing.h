/// \file
/// The rates of what is running: weighted max-min over shared resources, kept up to date under
/// changes.
///
/// Rates are max-min exactly if every activity is *bound*: it runs at its cap, or uses a resource
/// that is full and on which no activity has a higher level, where level = rate / connections. That
/// test is local, so a change is repaired locally. Solve only for new activities and those that the
/// changed resources bound, those bound by other resources of these, and so on, with all other
/// rates held. Then test the neighbours that share a resource with one of the set: those that are
/// no longer bound, or stand in the way of one that has a lower level, join the set, and it is
/// solved again. When all are bound, the rates are the max-min rates of the whole, although most of
/// it was never looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/internal/plan.h"

namespace foreshard::engine::internal {

class Sharing {
 public:
  Sharing(const Workload& workload, const Shapes& shapes);

  /// Starts an activity of this shape and returns its slot, which names it until `stop`. If it is
  /// alone on its resources its rate is right at once, else after the next `settle`.
  std::int32_t start(std::int32_t shape);
  /// Frees the slot; the rates of others are right again after the next `settle`.
  void stop(std::int32_t slot);
  /// A slot with nothing to share, for an activity in its latency.
  std::int32_t start_idle();
  void stop_idle(std::int32_t slot) { free_slots_[0].push_back(slot); }

  /// Progress per second now; 0 while what others occupy leaves it nothing.
  double rate(std::int32_t slot) const { return slots_[at(slot)].rate; }
  /// The resource that bounds the rate now, or kCapped.
  std::int32_t bound(std::int32_t slot) const { return slots_[at(slot)].bound; }

  /// Rates are right again after the next `settle`.
  void set_capacity(std::int32_t resource, double capacity);
  /// Appends the slots that use the resource.
  void slots_on(std::int32_t resource, std::vector<std::int32_t>& slots) const;

  bool settled() const { return changed_.empty() && fresh_.empty(); }
  /// Restores max-min.
  void settle();
  /// \return the slots whose rate the last `settle` may have changed, with the rate they had
  ///     before.
  struct Change {
    std::int32_t slot;
    double old_rate;
  };
  std::span<const Change> changes() const { return changes_; }

 private:
  static constexpr std::int32_t kUnbound = -2;  // new: no resource bounds it yet

  struct Slot {
    double rate = 0;
    double connections = 1;
    double cap = 0;
    std::int32_t bound = kUnbound;
    std::int32_t shape = -1;
    std::int32_t first_place = 0;  // of its places in places_, one per load
    std::int32_t places = 0;
    std::uint32_t chosen = 0;  // == epoch_: being solved for
    std::uint32_t frozen = 0;  // == filling_: its new rate is known
    double new_rate = 0;
    std::int32_t new_bound = kUnbound;
  };
  struct Place {
    std::int32_t resource;
    std::int32_t index;  // among the resource's members
  };
  // What a slot has to do with one of its resources. It repeats what the slot knows, so that a
  // resource is surveyed without a look at its slots.
  struct Member {
    std::int32_t slot;
    std::int32_t place;        // which of the slot's
    double pull;               // load x connections: its use of the resource is pull x level
    double level = 0;          // rate / connections
    double new_level = 0;      // of the current filling, if frozen
    std::uint32_t chosen = 0;  // as the slot's
    std::uint32_t frozen = 0;  // as the slot's
    bool bound = false;        // by this resource
  };
  struct Resource {
    double capacity = 0;
    double held = 0;
    std::int32_t holders = 0;
    bool changed = false;
    std::int32_t bound = 0;     // members that it bounds and that are not being solved for
    double bound_level = 0;     // the level of these
    std::uint32_t visited = 0;  // == epoch_: in region_, and what follows is of this epoch
    std::int32_t chosen = 0;    // members that are being solved for
    double chosen_pull = 0;     // of these
    double others_use = 0;      // use of the other members
    double highest = 0;         // no member had a higher level before
    std::int32_t unfrozen = 0;  // of the chosen, those without a new rate
    double left = 0;            // for these
    double pull = 0;            // of these
    double full_level = 0;      // at which the filling was stopped by it, or infinite
    double highest_chosen = 0;  // new level
    std::vector<Member> members;
  };
  // A resource (index >= 0) or the cap of the slot ~index, to be met when levels reach `level`.
  struct Limit {
    double level;
    std::int32_t index;
  };

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  // A rate and what bounds it, or kCapped.
  struct Bound {
    double rate;
    std::int32_t by;
  };
  Bound bound_alone(const NormalShape& shape) const;
  std::int32_t new_slot(std::int32_t places);
  Member& member(const Place& place) {
    return resources_[at(place.resource)].members[at(place.index)];
  }
  std::span<Place> places(const Slot& s) { return {places_.data() + s.first_place, at(s.places)}; }
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
  bool capacities_moved_ = false;  // what shapes know of the rate alone does not hold
  std::vector<Slot> slots_;
  std::vector<Place> places_;
  std::vector<std::vector<std::int32_t>> free_slots_;  // by number of places
  std::vector<std::int32_t> changed_;                  // resources
  std::vector<std::int32_t> fresh_;                    // slots without a rate
  std::uint32_t epoch_ = 0;                            // of `settle`
  std::uint32_t filling_ = 0;                          // of `fill`
  std::vector<std::int32_t> region_;                   // resources
  std::vector<std::int32_t> chosen_;                   // slots
  std::vector<Limit> limits_;                          // a heap, lowest level first
  std::vector<Change> changes_;
};

}  // namespace foreshard::engine::internal
