/// \file
/// The input of both event engines: activities that use resources and wait for each other. It knows
/// nothing about GPUs; routing, collectives and streams are layers above it.
///
/// Once all predecessors of an activity are done and its release time has come, it spends `latency`
/// (a pure delay) and then makes progress from 0 to `work` at a rate that the engine decides:
///
///     for every resource l:  sum over running a of load(a,l) rate(a)  <=  capacity(l) - held(l)
///
/// where load = weight x multiplicity, and `held` is the capacity that running activities occupy
/// regardless of their progress (the SMs of a persistent communication kernel).
///
/// **Sharing** is weighted max-min. Progress is first normalised so that the largest *weight* of an
/// activity is 1 (the result does not depend on the unit in which progress is counted). All rates
/// then grow together as  rate(a) = connections(a) * t  until a resource is full or a cap is
/// reached; the activities limited by it keep their rates, and the others continue to grow. So
/// activities that use a full link with equal loads divide it in proportion to their connections.
/// Each activity runs at the rate of its tightest resource, and the others share what it leaves
/// elsewhere.
///
/// **Events** change the conditions during a run: a resource gets another capacity or fails,
/// activities of one shape continue in another shape (they are rerouted), background traffic comes
/// and goes. Nothing changes between events, so rates stay piecewise constant and results exact: 10
/// units over a resource of 1 unit/s whose capacity halves after 4 s end at 4 + 6 / 0.5 = 16 s. An
/// activity that ends at the very instant of an event ends before it; events at one instant are
/// applied in the order in which they were added.
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

/// Amount of a resource that one unit of progress takes.
struct Usage {
  ResourceId resource;
  double weight = 1;  ///< Usage by one real activity. Invariant: > 0, finite.
  /// Number of real activities of this class on one real resource (ranks may be folded into
  /// classes).
  double multiplicity = 1;
};
/// A part of a resource's capacity that the activity holds as long as it makes progress.
struct Occupation {
  ResourceId resource;
  double amount = 0;  ///< Amount in the resource's capacity unit. Invariant: >= 0.
};

/// What activities of one kind have in common: most activities differ only in latency and work.
struct Shape {
  /// Distinct resources. If empty, `rate_cap` must be finite or `work` zero.
  std::vector<Usage> usages;
  std::vector<Occupation> occupations;
  double connections = 1;  ///< Connections on the most loaded link. Invariant: > 0, finite.
  /// Progress per second, before normalising. Invariant: > 0.
  double rate_cap = std::numeric_limits<double>::infinity();
};

struct Activity {
  ShapeId shape;
  Seconds latency;
  double work = 0;  ///< Work in the shape's unit of progress. Invariant: >= 0, finite.
  /// The activity starts no earlier than `release_lag` after `release_from` is done (after time 0
  /// if `release_from` is invalid).
  ActivityId release_from;  ///< Invariant: an earlier activity.
  Seconds release_lag;
};

inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// Something that happens at a fixed time of a run, whatever the activities do. Workload makes
/// them.
struct Event {
  enum class Kind : std::uint8_t {
    kCapacity,    ///< The capacity of `resource` becomes `capacity`.
    kFails,       ///< `resource` fails: nothing of it is left, whatever its capacity; see
                  ///< `failure_timeout`.
    kRepaired,    ///< One failure of `resource` is over.
    kShape,       ///< Activities of shape `of` continue, and start, in shape `as`.
    kLoadBegins,  ///< Background flow `load`, of shape `as`, begins to share with the activities.
    kLoadEnds,    ///< Background flow `load` stops.
  };
  Kind kind = Kind::kCapacity;
  Seconds at{};
  Seconds period = kNever;  ///< Interval at which the event repeats; kNever: it does not.
  ResourceId resource{};
  double capacity = 0;
  Seconds failure_timeout = kNever;
  ShapeId of{};
  ShapeId as{};
  std::int32_t load = 0;
};

/// Built once, then run by either engine. Activities are added in an order in which predecessors
/// come first. Each invariant above is checked as its object is added: breaking one is a fault of
/// the caller, not of the user.
class Workload {
 public:
  /// \pre capacity > 0 and finite, in any unit per second (a link: bytes/s; a device's SMs: 1).
  ResourceId add_resource(double capacity, std::string name = {});
  ShapeId add_shape(Shape shape);
  ActivityId add_activity(const Activity& activity);
  /// `to` waits for `from`.
  /// \pre from < to, both exist.
  void add_edge(ActivityId from, ActivityId to);
  /// Reserves memory on large pages; worth a call before many activities are added.
  void reserve(std::size_t activities, std::size_t edges);

  /// From `at` on the resource has this capacity; with 0, activities that use it stand still.
  /// \param period  the change happens again at at + period, at + 2 period, ...
  /// \pre at >= 0; capacity >= 0; both finite; period > 0
  void add_capacity_change(ResourceId resource, Seconds at, double capacity,
                           Seconds period = kNever);
  /// The resource is dead from `at` until it is repaired, whatever its capacity. An activity that
  /// has stood still on it for `failure_timeout` fails: it ends without being done, and activities
  /// that wait for it never run. With kNever it just stands still. A resource may fail again before
  /// it is repaired: it then needs both repairs, and the first finite failure timeout counts.
  /// \pre at >= 0, finite; failure_timeout >= 0
  void add_failure(ResourceId resource, Seconds at, Seconds failure_timeout = kNever);
  /// \pre The resource has a failure without a repair, and `at` >= the time of that failure.
  void add_repair(ResourceId resource, Seconds at);
  /// From `at` on, activities that were added with shape `of` have shape `as`. Running ones
  /// continue with their remaining work, later ones start in that shape. `as` may equal `of`, which
  /// restores the original shape. Latencies do not change.
  /// \pre at >= 0, finite
  void add_shape_change(ShapeId of, Seconds at, ShapeId as);
  /// Background traffic from `from` to `until` (which may be kNever), repeated every `period`. It
  /// shares as an activity of this shape would, up to its `rate_cap`, is never done, and does not
  /// prolong the run. A shape with occupations only takes their amounts, whatever else uses the
  /// resources.
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
  std::int32_t loads_ = 0;  ///< Number of background flows.
};

/// An error for the first activity that no engine can run to its end, however long it waits: it has
/// work, but neither a usage nor a cap bounds its rate (kInvalidInput), or its own occupation
/// leaves nothing of a resource that it uses (kInfeasible). No error if there is no such activity.
/// Cost: one pass.
Status fault_in(const Workload& workload);

/// An activity that stood still on a failed resource for longer than its failure timeout.
struct Failure {
  ActivityId activity;
  ResourceId on;
  Seconds at;  ///< Time of the failure.
};

/// When each activity began (predecessors done and released) and ended, by ActivityId. If the
/// workload has events, `finish` of activities that were never done and `start` of activities that
/// never began are infinite.
struct Timeline {
  std::vector<Seconds> start;
  std::vector<Seconds> finish;
  Seconds makespan;         ///< The latest finish or failure.
  std::int64_t events = 0;  ///< Number of completions and latency ends that the engine processed.
  std::vector<Failure> failures = {};  ///< Sorted by time, then by activity.
  bool complete = true;                ///< Whether all activities are done.
};

/// Default engine. Cost: O(log n) per event, plus those activities whose rates may change among all
/// that share resources with the changed one, directly or through others. Several activities that
/// would end within the rounding of the clock (4 ulp) end together.
/// \return The error that `fault_in` finds; kInfeasible if the workload has no events and
///     activities remain that can never run (occupations leave nothing of a resource that they
///     use); the message names one. With events, such a run yields a Timeline that is not
///     `complete`.
Result<Timeline> run_fluid(const Workload& workload);

/// When SimGrid recomputes rates.
enum class SimgridSolver {
  kLazy,  ///< Recomputes what it considers changed.
  kFull,  ///< Recomputes everything at each event: a second reference for small workloads.
};
/// Reference engine on SimGrid, in a forked process. Within a shape it supports only one weight for
/// all usages, multiplicity 1 and 1 connection, and no occupations or caps. Its only events are
/// capacities that fall, but not to zero (a flow in SimGrid never gets faster than it could be when
/// it began). SimGrid counts work in whole units: works on resources that share activities,
/// directly or through others, are scaled by one power of two, so that each is exact within 1e-9.
/// \return The error that `fault_in` finds; kUnsupported, naming the first event or activity that
///     SimGrid cannot express; kIo if the process cannot be forked or dies.
Result<Timeline> run_simgrid(const Workload& workload, SimgridSolver solver = SimgridSolver::kLazy);

}  // namespace foreshard::engine
