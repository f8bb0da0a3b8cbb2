// The default engine (workload.h, run_fluid): an event loop in which running activities share
// resources by weighted max-min (internal/sharing.h). sim/simulate runs it for every step. Times
// are simulated seconds. Activities that can never run are an error, or, if the workload has
// events, a timeline that is not complete.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/caller.h"
#include "base/check.h"
#include "base/index.h"

#include "sim/engine/internal/event_queue.h"
#include "sim/engine/internal/events.h"
#include "sim/engine/internal/plan.h"
#include "sim/engine/internal/sharing.h"
#include "sim/engine/workload.h"

namespace foreshard::engine {
namespace {

using internal::Dependencies;
using internal::EventQueue;
using internal::Events;
using internal::MaxMinSharing;
using internal::NoEvents;
using internal::Shapes;

// Instants that differ by less than the rounding of the clock count as one. Otherwise equal flows
// whose ends differ in the last bits would each cost a new solution for all that share with them.
constexpr double kOneInstant = 1 + 4 * std::numeric_limits<double>::epsilon();

// One run. Time moves from batch to batch: all that happens at one instant is one batch, after
// which rates are settled once. Within a batch, activities that end are removed first; then the
// workload's events are applied; then activities begin, first those that leave their latency, in
// the order of their ids, then those that become ready.
template <class TheEvents>
class Run {
 public:
  explicit Run(const Workload& workload)
      : activities_(workload.activities()),
        shapes_(workload),
        dependencies_(workload),
        sharing_(workload, shapes_),
        events_(workload),
        vacated_(shapes_.size()) {
    for (auto* times : {&timeline_.start, &timeline_.finish}) {
      internal::reserve_on_huge_pages(*times, activities_.size());
      times->resize(activities_.size());
      if constexpr (kEvents) std::ranges::fill(*times, Seconds::from_base(kInfinity));
    }
  }

  void run() {
    for (std::int32_t a = 0; at(a) < activities_.size(); ++a)
      if (dependencies_.ready(a)) ready_.push_back(a);
    apply_events();
    start_ready();
    end_batch();
    for (EndPoll poll; next_instant(); poll()) {
      take_due();
      for (const Due& due : due_)
        if (due.shape != kWaiting) end(due);
      apply_events();
      for (const Due& due : due_)
        if (due.shape == kWaiting) leave_latency(due);
      start_ready();
      end_batch();
    }
    timeline_.makespan = Seconds::from_base(now_);
    if (finished_ != activities_.size()) end_incomplete();
  }

  std::size_t finished() const { return finished_; }
  Timeline take_timeline() && { return std::move(timeline_); }

  // The first activity that has begun to work and makes no progress, and the resource that it
  // lacks.
  // \pre The run is over, and some activity did not finish.
  std::pair<std::int32_t, std::int32_t> stalled() const {
    std::pair<std::int32_t, std::int32_t> first{std::numeric_limits<std::int32_t>::max(), 0};
    for (std::size_t slot = 0; slot < progress_.size(); ++slot) {
      const Progress& p = progress_[slot];
      if (p.activity == kNobody) continue;
      first = std::min(first, {p.activity, sharing_.bound(static_cast<std::int32_t>(slot))});
    }
    return first;
  }

 private:
  static constexpr bool kEvents = TheEvents::kAny;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Repeating events may never revive an activity that stands still: the run gives up after this
  // number of periods, each as long as the longest one.
  static constexpr double kEnoughPeriods = 20;
  static constexpr std::int32_t kNobody = -1;
  static constexpr std::int32_t kWaiting = -1;  // in its latency: has no shape yet

  // What currently runs in a slot.
  struct Progress {
    std::int32_t activity = kNobody;
    std::int32_t shape = kWaiting;
    double start = 0;
    double remaining = 0;  // at `since`
    double since = 0;
  };
  struct Due {
    std::int32_t activity;
    std::int32_t slot;
    std::int32_t shape;
    double start;
  };

  // Moves to the next instant at which something happens.
  // \return false if there is none
  bool next_instant() {
    const double due = queue_.empty() ? kInfinity : queue_.next_time();
    if constexpr (kEvents) {
      const double event = events_.next_time();
      if (event < due && finished_ < activities_.size() && !hopeless()) {
        now_ = event;
        return true;
      }
    }
    if (due == kInfinity) return false;
    now_ = due;
    return true;
  }

  // Whether nothing that could end is running, and all remaining events are repetitions that have
  // not changed this for kEnoughPeriods.
  bool hopeless() {
    if (!queue_.empty() || !events_.only_repeats()) {
      idle_since_ = kInfinity;
      return false;
    }
    idle_since_ = std::min(idle_since_, now_);
    return events_.next_time() > idle_since_ + kEnoughPeriods * events_.longest_period();
  }

  void take_due() {
    due_slots_.clear();
    queue_.pop_until(now_ * kOneInstant, due_slots_);
    due_.clear();
    for (const std::int32_t slot : due_slots_) {
      Progress& p = progress_[at(slot)];
      due_.push_back({p.activity, slot, p.shape, p.start});
      p.activity = kNobody;
    }
    if (!std::ranges::is_sorted(due_, {}, &Due::activity))
      std::ranges::sort(due_, {}, &Due::activity);
    timeline_.events += static_cast<std::int64_t>(due_.size());
  }

  void end(const Due& due) {
    auto& vacated = vacated_[at(due.shape)];
    if (vacated.empty()) vacated_shapes_.push_back(due.shape);
    vacated.push_back(due.slot);
    if constexpr (kEvents) {
      if (events_.gives_up(due.slot)) return fail(due);
    }
    finish(due.activity, due.start);
  }

  void fail(const Due& due) {
    events_.set_gives_up(due.slot, false);
    timeline_.start[at(due.activity)] = Seconds::from_base(due.start);
    timeline_.failures.push_back({.activity = ActivityId(due.activity),
                                  .on = ResourceId(events_.failed_resource(loads(due.shape))),
                                  .at = Seconds::from_base(now_)});
  }

  // Applies the events of this instant.
  void apply_events() {
    if constexpr (kEvents) {
      if (events_.next_time() > now_ * kOneInstant) return;
      const internal::Changes& changes = events_.take_until(now_ * kOneInstant);
      for (const auto& [resource, capacity] : changes.capacities)
        sharing_.set_capacity(resource, capacity);
      for (const std::int32_t load : changes.ended)
        sharing_.stop(events_.slot_of_background_flow(load));
      for (const auto& [load, shape] : changes.begun) {
        const std::int32_t slot = sharing_.start(shape);
        progress(slot) = {};
        events_.set_slot_of_background_flow(load, slot);
      }
      if (changes.shapes_changed) change_shapes();
      for (const std::int32_t resource : changes.failed_or_repaired)
        sharing_.slots_on(resource, uncertain_);
    }
  }

  // Moves running activities into their current shape.
  void change_shapes() {
    std::vector<std::int32_t> moving;
    for (std::size_t slot = 0; slot < progress_.size(); ++slot) {
      const Progress& p = progress_[slot];
      if (p.activity != kNobody && p.shape != kWaiting && shape_now(p.activity) != p.shape)
        moving.push_back(static_cast<std::int32_t>(slot));
    }
    for (const std::int32_t slot : moving) {
      Progress p = progress_[at(slot)];
      progress_[at(slot)] = {};
      p.remaining = std::max(0.0, p.remaining - sharing_.rate(slot) * (now_ - p.since));
      if (queue_.contains(slot)) queue_.remove(slot);
      events_.set_gives_up(slot, false);
      sharing_.stop(slot);
      const std::int32_t to = shape_now(p.activity);
      begin_work(p.activity, to, p.start,
                 p.remaining * (shapes_[to].scale / shapes_[p.shape].scale));
    }
  }

  std::int32_t shape_now(std::int32_t activity) const {
    return events_.shape_now(activities_[at(activity)].shape.value());
  }
  std::span<const internal::Load> loads(std::int32_t shape) const {
    return shapes_.loads(shapes_[shape]);
  }

  void leave_latency(const Due& due) {
    sharing_.stop_idle(due.slot);
    work(due.activity, due.start);
  }

  // Loops by index: an activity that starts may finish at once and make more ready.
  void start_ready() {
    for (std::size_t i = 0; i < ready_.size(); ++i) start(ready_[i]);
    ready_.clear();
  }

  void start(std::int32_t a) {
    const Activity& activity = activities_[at(a)];
    double begin = now_;
    const double lag = activity.release_lag.in_base();
    if (activity.release_from.valid())
      begin = std::max(begin, timeline_.finish[activity.release_from.index()].in_base() + lag);
    else
      begin = std::max(begin, lag);
    const double work_begins = begin + activity.latency.in_base();
    if (work_begins <= now_) return work(a, begin);
    const std::int32_t slot = sharing_.start_idle();
    progress(slot) = {.activity = a, .shape = kWaiting, .start = begin};
    queue_.push(slot, work_begins);
  }

  void work(std::int32_t a, double start) {
    const Activity& activity = activities_[at(a)];
    if (activity.work == 0) return finish(a, start);
    const std::int32_t shape = events_.shape_now(activity.shape.value());
    begin_work(a, shape, start, activity.work * shapes_[shape].scale);
    prefetch_end(a);
  }

  void begin_work(std::int32_t a, std::int32_t shape, double start, double remaining) {
    std::int32_t slot = 0;
    // The slot of an equal activity that has just ended can be reused: no rate changes.
    if (auto& vacated = vacated_[at(shape)]; !vacated.empty()) {
      slot = vacated.back();
      vacated.pop_back();
    } else {
      slot = sharing_.start(shape);
    }
    progress(slot) = {
        .activity = a, .shape = shape, .start = start, .remaining = remaining, .since = now_};
    if (const double rate = sharing_.rate(slot); rate > 0)
      queue_.push(slot, now_ + remaining / rate);
    if constexpr (kEvents) {
      if (events_.any_failed()) uncertain_.push_back(slot);
    }
  }

  // Prefetches what is needed when the activity ends.
  void prefetch_end(std::int32_t a) const {
    __builtin_prefetch(&timeline_.start[at(a)], 1);
    __builtin_prefetch(&timeline_.finish[at(a)], 1);
    const std::int32_t next = dependencies_.first_successor(a);
    if (next < 0) return;
    dependencies_.prefetch_successors(a);
    dependencies_.prefetch(next);
    __builtin_prefetch(&activities_[at(next)]);
  }

  void finish(std::int32_t a, double start) {
    timeline_.start[at(a)] = Seconds::from_base(start);
    timeline_.finish[at(a)] = Seconds::from_base(now_);
    ++finished_;
    for (const std::int32_t next : dependencies_.successors(a))
      if (dependencies_.count_down(next)) ready_.push_back(next);
  }

  void end_batch() {
    for (const std::int32_t shape : vacated_shapes_) {
      for (const std::int32_t slot : vacated_[at(shape)]) sharing_.stop(slot);
      vacated_[at(shape)].clear();
    }
    vacated_shapes_.clear();
    if (!sharing_.settled()) {
      sharing_.settle();
      for (const MaxMinSharing::Change& change : sharing_.changes()) reschedule(change);
    }
    if constexpr (kEvents) {
      for (const std::int32_t slot : uncertain_) decide_fate(slot);
      uncertain_.clear();
    }
  }

  // Schedules the failure of an activity on a failed resource for the end of its failure timeout,
  // or cancels it if the resource works again.
  void decide_fate(std::int32_t slot) {
    const Progress& p = progress_[at(slot)];
    if (p.activity == kNobody) return;
    const double when = events_.end_of_failure_timeout(loads(p.shape), p.since);
    const bool doomed = when < kInfinity;
    if (events_.gives_up(slot) && sharing_.rate(slot) == 0) queue_.remove(slot);
    events_.set_gives_up(slot, doomed);
    if (doomed) queue_.push(slot, std::max(now_, when));
  }

  void reschedule(const MaxMinSharing::Change& change) {
    Progress& p = progress_[at(change.slot)];
    if constexpr (kEvents) {
      if (p.activity == kNobody) return;  // background traffic
    }
    p.remaining = std::max(0.0, p.remaining - change.old_rate * (now_ - p.since));
    p.since = now_;
    const double rate = sharing_.rate(change.slot);
    const bool queued = queue_.contains(change.slot);
    if (rate == 0) {
      if constexpr (kEvents) {
        if (events_.gives_up(change.slot)) return;
      }
      if (queued) queue_.remove(change.slot);
      return;
    }
    const double when = now_ + p.remaining / rate;
    if (queued)
      queue_.move(change.slot, when);
    else
      queue_.push(change.slot, when);
  }

  // Records when unfinished activities began, and when the last thing happened.
  void end_incomplete() {
    timeline_.complete = false;
    double last = 0;
    for (const Progress& p : progress_)
      if (p.activity != kNobody) timeline_.start[at(p.activity)] = Seconds::from_base(p.start);
    for (const Seconds finish : timeline_.finish)
      if (std::isfinite(finish.in_base())) last = std::max(last, finish.in_base());
    for (const Failure& failure : timeline_.failures) last = std::max(last, failure.at.in_base());
    timeline_.makespan = Seconds::from_base(last);
  }

  Progress& progress(std::int32_t slot) {
    if (at(slot) >= progress_.size()) progress_.resize(at(slot) + 1);
    return progress_[at(slot)];
  }

  std::span<const Activity> activities_;
  Shapes shapes_;
  Dependencies dependencies_;
  MaxMinSharing sharing_;
  TheEvents events_;
  EventQueue queue_;
  std::vector<Progress> progress_;                  // by slot
  std::vector<std::vector<std::int32_t>> vacated_;  // by shape: slots whose activity ended now
  std::vector<std::int32_t> vacated_shapes_;
  std::vector<std::int32_t> ready_;
  std::vector<std::int32_t> due_slots_;
  std::vector<std::int32_t> uncertain_;  // slots on resources that failed or were repaired
  std::vector<Due> due_;
  double now_ = 0;
  double idle_since_ = kInfinity;  // start of the time with nothing but repeating events
  std::size_t finished_ = 0;
  Timeline timeline_;
};

}  // namespace

Result<Timeline> run_fluid(const Workload& workload) {
  FORESHARD_TRY(fault_in(workload));
  if (!workload.events().empty()) {
    Run<Events> run(workload);
    run.run();
    return std::move(run).take_timeline();
  }
  Run<NoEvents> run(workload);
  run.run();
  if (run.finished() == workload.activity_count()) return std::move(run).take_timeline();
  const auto [activity, resource] = run.stalled();
  FORESHARD_CHECK(resource >= 0);
  return Error{Error::Code::kInfeasible,
               "activity " + std::to_string(activity) + " can never run: what others occupy of '" +
                   workload.resource_name(ResourceId(resource)) + "' leaves it nothing"};
}

}  // namespace foreshard::engine
