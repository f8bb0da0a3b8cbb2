/// \file
/// What both event engines run: activities that use resources and wait for each other. It is
/// independent of GPUs: routing, collectives and streams live above it.
///
/// An activity, once all its predecessors are done and its release time has come, spends `latency`
/// (a pure delay) and then makes progress from 0 to `work` at a rate that the engine decides:
///
///     for every resource l:  sum over running a of load(a,l) rate(a)  <=  capacity(l) - held(l)
///
/// where load = weight x multiplicity, and `held` is what running activities occupy regardless of
/// their progress (the SMs of a persistent communication kernel).
///
/// **Sharing** is weighted max-min. Progress is first normalised so that the largest *weight* of an
/// activity is 1 (the answer does not depend on the unit in which progress is counted). All rates
/// then grow together as  rate(a) = connections(a) * t  until a resource is full or a cap is
/// reached; those activities stay there, the others go on. So activities that use a full link with
/// equal loads divide it in proportion to their connections, each runs at its tightest share, and
/// what it leaves is shared by the others.
///
/// **Events** change the rules while a run goes on: a resource gets another capacity or fails,
/// activities of one shape go on as another (they are rerouted), traffic of others comes and goes.
/// Between events nothing is different, so that rates stay piecewise constant and results exact: 10
/// units over a resource of 1 unit/s whose capacity halves after 4 s end at 4 + 6 / 0.5 = 16 s.
/// What ends at the very instant of an event has ended before it; events of one instant are applied
/// in the order in which they were added.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard::engine {

using ResourceId = Id<struct ResourceTag>;
using ActivityId = Id<struct ActivityTag>;
using ShapeId = Id<struct ShapeTag>;

/// How much of a resource one unit of progress takes.
struct Usage {
  ResourceId resource;
  double weight = 1;        ///< Of one real activity. Invariant: > 0, finite.
  double multiplicity = 1;  ///< Real activities of this class on one real resource (folding).
};
/// A part of a resource's capacity that is held as long as the activity makes progress.
struct Occupation {
  ResourceId resource;
  double amount = 0;  ///< In the resource's capacity unit. Invariant: >= 0.
};

/// What activities of one kind have in common: most differ only in latency and work.
struct Shape {
  std::vector<Usage> usages;  ///< Resources are distinct. May be empty: then `rate_cap` must be
                              ///< finite or `work` zero.
  std::vector<Occupation> occupations;
  double connections = 1;  ///< On its most loaded link. Invariant: > 0, finite.
  double rate_cap = std::numeric_limits<double>::infinity();  ///< Progress per second, before
                                                              ///< normalising. Invariant: > 0.
};

struct Activity {
  ShapeId shape;
  Seconds latency;
  double work = 0;  ///< In the shape's unit of progress. Invariant: >= 0, finite.
  /// It starts no earlier than `release_lag` after `release_from` is done (after time 0, if
  /// invalid).
  ActivityId release_from;  ///< Invariant: an earlier activity.
  Seconds release_lag;
};

inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// Something that happens at a fixed time of a run, whatever goes on. Made by Workload.
struct Event {
  enum class Kind : std::uint8_t {
    kCapacity,    ///< `resource` has `capacity`.
    kFails,       ///< `resource` has nothing, whatever its capacity; `patience`.
    kRepaired,    ///< One failure of `resource` is over.
    kShape,       ///< Activities of shape `of` go on, and start, as `as`.
    kLoadBegins,  ///< The flow `load` of shape `as` begins to share with the activities.
    kLoadEnds,    ///< It stops.
  };
  Kind kind = Kind::kCapacity;
  Seconds at{};
  Seconds period = kNever;  ///< Happens again and again, this much apart.
  ResourceId resource{};
  double capacity = 0;
  Seconds patience = kNever;
  ShapeId of{};
  ShapeId as{};
  std::int32_t load = 0;
};

/// Built once, then run by either engine. Activities are added in an order in which predecessors
/// come first. Each invariant above is checked as its object is added: to break one is a fault of
/// the caller, not of the user.
class Workload {
 public:
  /// \pre capacity > 0 and finite, in any unit per second (bytes/s of a link; 1 for a device's
  ///     SMs).
  ResourceId add_resource(double capacity, std::string name = {});
  ShapeId add_shape(Shape shape);
  ActivityId add_activity(const Activity& activity);
  /// `to` waits for `from`.
  /// \pre from < to, both exist.
  void add_edge(ActivityId from, ActivityId to);
  /// Worth a call before many are added: it also asks the system for large pages.
  void reserve(std::size_t activities, std::size_t edges);

  /// From `at` on the resource has this capacity; with 0, what uses it stands still.
  /// \param period  the change happens again at at + period, at + 2 period, ...
  /// \pre at >= 0; capacity >= 0; both finite; period > 0
  void add_capacity_change(ResourceId resource, Seconds at, double capacity,
                           Seconds period = kNever);
  /// The resource is dead from `at` until it is repaired, whatever its capacity. An activity that
  /// has stood still on it for `patience` fails: it ends without being done, and what waits for it
  /// never runs. kNever: it just stands still. A resource may fail again before it is repaired:
  /// then it needs both repairs, and the first finite patience counts.
  /// \pre at >= 0, finite; patience >= 0
  void add_failure(ResourceId resource, Seconds at, Seconds patience = kNever);
  /// \pre one failure of the resource has no repair yet; at >= that failure's
  void add_repair(ResourceId resource, Seconds at);
  /// From `at` on, activities that were added with shape `of` are of shape `as`: those that run go
  /// on with the work that they have left, later ones start so. `as` may be `of`: back again.
  /// Latencies stay what they are.
  /// \pre at >= 0, finite
  void add_shape_change(ShapeId of, Seconds at, ShapeId as);
  /// Traffic of others from `from` to `until` (which may be kNever), and again every `period`. It
  /// shares as an activity of this shape would, up to its `rate_cap`, is never done, and does not
  /// prolong the run. A shape of occupations alone takes their amounts, whoever else is there.
  /// \pre 0 <= from <= until; until - from <= period
  void add_background(ShapeId shape, Seconds from, Seconds until, Seconds period = kNever);

  std::span<const Event> events() const { return events_; }
  std::size_t resource_count() const { return capacities_.size(); }
  std::size_t activity_count() const { return activities_.size(); }
  std::size_t edge_count() const { return edges_.size(); }
  double capacity(ResourceId id) const { return capacities_[id.index()]; }
  const std::string& resource_name(ResourceId id) const { return names_[id.index()]; }
  const Shape& shape(ShapeId id) const { return shapes_[id.index()]; }
  const Activity& activity(ActivityId id) const { return activities_[id.index()]; }
  std::span<const Activity> activities() const { return activities_; }
  std::span<const Shape> shapes() const { return shapes_; }

  struct Edge {
    ActivityId from;
    ActivityId to;
  };
  std::span<const Edge> edges() const { return edges_; }

 private:
  std::vector<double> capacities_;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  std::vector<Activity> activities_;
  std::vector<Edge> edges_;
  std::vector<Event> events_;
  std::int32_t loads_ = 0;  ///< Background flows.
};

/// The first activity that no engine can run to its end, however long it waits: it has work, but
/// neither a usage nor a cap bounds its rate (kInvalidInput), or what it occupies leaves nothing of
/// a resource that it uses (kInfeasible). Nothing, if there is none. Cost: one pass.
Status fault_in(const Workload& workload);

/// An activity that stood still on a failed resource for longer than its patience.
struct Failure {
  ActivityId activity;
  ResourceId on;
  Seconds at;  ///< When it failed.
};

/// When each activity began (predecessors done and released) and ended, by ActivityId. Where a
/// workload has events, `finish` of what was never done, and `start` of what never began, is
/// infinite.
struct Timeline {
  std::vector<Seconds> start;
  std::vector<Seconds> finish;
  Seconds makespan;                    ///< The latest finish or failure.
  std::int64_t events = 0;             ///< Completions and latency ends that the engine processed.
  std::vector<Failure> failures = {};  ///< By time, then by activity.
  bool complete = true;                ///< All activities are done.
};

/// Default engine. Cost: O(log n) per event, plus the part of the activities sharing resources with
/// the one that changed, directly or through others, whose rates it may change.
/// Several activities that would end within the rounding of the clock (4 ulp) end together.
/// \return what `fault_in` finds; kInfeasible if the workload has no events and activities remain
///     that can never run (an occupied resource that leaves them nothing); the message names one.
///     With events, such a run is a Timeline that is not `complete`.
Result<Timeline> run_fluid(const Workload& workload);

/// How SimGrid keeps its rates.
enum class SimgridSolver {
  kLazy,  ///< Re-solves what it considers changed.
  kFull,  ///< Re-solves everything at each event: a second reference for small workloads.
};
/// Reference engine on SimGrid, in a forked process. Unit weights, no occupations and no caps only;
/// of events, capacities that fall but not to nothing (a flow of SimGrid's never gets faster than
/// it could be when it began). SimGrid counts work in whole units: works on resources that share
/// activities, directly or through others, are scaled by one power of two, so that each is right
/// within 1e-9.
/// \return what `fault_in` finds; kUnsupported, naming the first activity that it cannot express;
///     kIo if the process cannot be forked or dies.
Result<Timeline> run_simgrid(const Workload& workload, SimgridSolver solver = SimgridSolver::kLazy);

}  // namespace foreshard::engine
