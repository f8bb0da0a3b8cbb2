// Exact derivatives of the length of a run (slopes.h), for the sensitivity of a prediction to the
// workload's numbers. The run is replayed instant by instant.
#include "sim/engine/slopes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/index.h"

#include "sim/engine/internal/plan.h"

namespace foreshard::engine {
namespace {

using internal::Load;
using internal::NormalShape;
using internal::Shapes;

// The engine's tolerance for one instant, plus the rounding of a start and its latency.
constexpr double kSameInstant = 1 + 8 * std::numeric_limits<double>::epsilon();
// The replayed ends differ from the run's ends by rounding only.
constexpr double kReplayRounding = 1e-6;

using Slope = std::vector<double>;

void add_scaled(Slope& to, double factor, std::span<const double> what) {
  for (std::size_t p = 0; p < to.size(); ++p) to[p] += factor * what[p];
}

// A number and its derivatives.
struct Dual {
  double value = 0;
  Slope slope;
};

// Replays the instants of a run and carries the derivatives along.
class Replay {
 public:
  Replay(const Workload& workload, const Timeline& times, const Slopes& slopes)
      : workload_(workload),
        times_(times),
        slopes_(slopes),
        shapes_(workload),
        zero_(slopes.parameters, 0.0),
        finish_(workload.activity_count() * slopes.parameters, 0.0),
        running_(workload.activity_count(), kNobody),
        users_(workload.resource_count()),
        held_(workload.resource_count(), 0.0),
        filling_(workload.resource_count()) {
    join_predecessors();
    for (Filling& filling : filling_) filling.left.slope = zero_;
  }

  Slope run() {
    const std::vector<Instant> instants = instants_in_order();
    for (std::size_t first = 0; first < instants.size();) {
      std::size_t last = first;
      while (last < instants.size() && instants[last].time <= instants[first].time * kSameInstant)
        ++last;
      step({instants.data() + first, last - first});
      first = last;
    }
    std::size_t latest = 0;
    for (std::size_t a = 1; a < workload_.activity_count(); ++a)
      if (times_.finish[a] > times_.finish[latest]) latest = a;
    const auto slope = finish_slope(latest);
    return {slope.begin(), slope.end()};
  }

 private:
  static constexpr std::int32_t kNobody = -1;

  // The time at which an activity begins to work, or ends. One without work does both at once.
  struct Instant {
    double time;
    std::int32_t activity;
    bool ends;
  };
  struct Running {
    std::int32_t activity = kNobody;
    double remaining = 0;  // work left at the time `since`, as remaining_slope is its derivative
    double rate = 0;
    double since = 0;
    Slope remaining_slope;
    Slope rate_slope;
    Slope since_slope;
  };
  // The capacity of a resource that is left for activities whose rate is not known yet.
  struct Filling {
    Dual left;
    double pull = 0;
    std::int32_t open = 0;
    bool visited = false;
  };

  std::span<const double> row(std::int32_t r) const {
    if (r == Slopes::kConstant) return zero_;
    return std::span(slopes_.rows).subspan(at(r) * slopes_.parameters, slopes_.parameters);
  }
  std::span<double> finish_slope(std::size_t a) {
    return std::span(finish_).subspan(a * slopes_.parameters, slopes_.parameters);
  }
  const Activity& activity(std::size_t a) const { return workload_.activities()[a]; }
  const NormalShape& shape(std::int32_t a) const { return shapes_[activity(at(a)).shape.value()]; }

  void join_predecessors() {
    before_begin_.assign(workload_.activity_count() + 1, 0);
    for (const auto& [from, to] : workload_.edges()) ++before_begin_[to.index() + 1];
    for (std::size_t a = 1; a < before_begin_.size(); ++a) before_begin_[a] += before_begin_[a - 1];
    before_.resize(workload_.edge_count());
    auto cursor = before_begin_;
    for (const auto& [from, to] : workload_.edges()) before_[cursor[to.index()]++] = from.value();
  }

  std::vector<Instant> instants_in_order() const {
    std::vector<Instant> instants;
    for (std::size_t a = 0; a < workload_.activity_count(); ++a) {
      const auto id = static_cast<std::int32_t>(a);
      const double end = times_.finish[a].in_base();
      if (activity(a).work > 0)
        instants.push_back({(times_.start[a] + activity(a).latency).in_base(), id, false});
      instants.push_back({end, id, true});
    }
    std::ranges::stable_sort(instants, {}, &Instant::time);
    return instants;
  }

  // Activities with work end first. Then, in the order of ids, activities without work begin and
  // end at once, and the others begin.
  void step(std::span<const Instant> instants) {
    causes_.clear();
    later_.clear();
    for (const Instant& instant : instants) {
      if (instant.ends && activity(at(instant.activity)).work > 0)
        end(instant.activity);
      else
        later_.push_back(instant);
    }
    std::ranges::sort(later_, {}, &Instant::activity);
    for (const Instant& instant : later_) {
      Slope begin = start_slope(at(instant.activity));
      add_scaled(begin, 1, row(slopes_.latency[at(instant.activity)]));
      if (instant.ends)
        std::ranges::copy(begin, finish_slope(at(instant.activity)).begin());
      else
        work(instant, std::move(begin));
    }
    for (const Cause& cause : causes_) settle(cause);
    for (const std::int32_t r : visited_) filling_[at(r)].visited = false;
    visited_.clear();
  }

  // Derivative of an activity's start: the predecessor that ended last decides.
  Slope start_slope(std::size_t a) {
    const Activity& what = activity(a);
    Slope slope = zero_;
    double latest = what.release_lag.in_base();
    if (what.release_from.valid()) {
      latest += times_.finish[what.release_from.index()].in_base();
      add_scaled(slope, 1, finish_slope(what.release_from.index()));
    }
    if (slopes_.lag != Slopes::kConstant) slope[at(slopes_.lag)] -= what.release_lag.in_base();
    std::int32_t last = kNobody;
    for (std::size_t k = before_begin_[a]; k < before_begin_[a + 1]; ++k) {
      const double end = times_.finish[at(before_[k])].in_base();
      if (end <= latest) continue;
      latest = end;
      last = before_[k];
    }
    if (last != kNobody) {
      const auto of = finish_slope(at(last));
      slope.assign(of.begin(), of.end());
    }
    return slope;
  }

  void work(const Instant& instant, Slope begin) {
    const std::int32_t a = instant.activity;
    const NormalShape& how = shape(a);
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::int32_t slot = free_.back();
    free_.pop_back();
    running_[at(a)] = slot;
    Running& one = slots_[at(slot)];
    one = {.activity = a,
           .remaining = activity(at(a)).work * how.scale,
           .rate = 0,
           .since = instant.time,
           .remaining_slope = zero_,
           .rate_slope = zero_,
           .since_slope = begin};
    add_scaled(one.remaining_slope, how.scale, row(slopes_.work[at(a)]));
    for (const Load& load : shapes_.loads(how)) users_[at(load.resource)].push_back(slot);
    for (const auto& hold : shapes_.holds(how)) held_[at(hold.resource)] += hold.amount;
    causes_.push_back({instant.time, std::move(begin), a});
  }

  void end(std::int32_t a) {
    const std::int32_t slot = running_[at(a)];
    FORESHARD_CHECK(slot != kNobody);
    Running& one = slots_[at(slot)];
    const double finish = times_.finish[at(a)].in_base();
    FORESHARD_CHECK(std::abs(one.since + one.remaining / one.rate - finish) <=
                    kReplayRounding * finish);
    Slope end = one.since_slope;
    add_scaled(end, 1 / one.rate, one.remaining_slope);
    add_scaled(end, -one.remaining / (one.rate * one.rate), one.rate_slope);
    std::ranges::copy(end, finish_slope(at(a)).begin());
    const NormalShape& how = shape(a);
    for (const Load& load : shapes_.loads(how)) std::erase(users_[at(load.resource)], slot);
    for (const auto& hold : shapes_.holds(how)) held_[at(hold.resource)] -= hold.amount;
    running_[at(a)] = kNobody;
    free_.push_back(slot);
    causes_.push_back({finish, std::move(end), a});
  }

  // An activity whose begin or end may change rates, and when.
  struct Cause {
    double time;
    Slope slope;
    std::int32_t activity;
  };

  // Solves for all activities that share with the cause, directly or through others.
  void settle(const Cause& cause) {
    region_.clear();
    members_.clear();
    const NormalShape& how = shape(cause.activity);
    for (const Load& load : shapes_.loads(how)) visit(load.resource);
    for (const auto& hold : shapes_.holds(how)) visit(hold.resource);
    if (shapes_.loads(how).empty() && running_[at(cause.activity)] != kNobody)
      members_.push_back(running_[at(cause.activity)]);
    for (std::size_t r = 0; r < region_.size(); ++r) {
      for (const std::int32_t slot : users_[at(region_[r])]) {
        if (std::ranges::find(members_, slot) != members_.end()) continue;
        members_.push_back(slot);
        for (const Load& load : shapes_.loads(shape(slots_[at(slot)].activity)))
          visit(load.resource);
      }
    }
    fill(cause);
  }

  void visit(std::int32_t resource) {
    Filling& filling = filling_[at(resource)];
    if (filling.visited) return;
    filling.visited = true;
    visited_.push_back(resource);
    region_.push_back(resource);
    filling.left.value =
        internal::capacity_left(workload_.capacity(ResourceId(resource)), held_[at(resource)]);
    const auto slope = row(slopes_.capacity[at(resource)]);
    std::ranges::copy(slope, filling.left.slope.begin());
    filling.pull = 0;
    filling.open = 0;
  }

  // All rates grow together until a resource is full or a cap is met, as in workload.h.
  void fill(const Cause& cause) {
    for (const std::int32_t slot : members_) {
      const NormalShape& how = shape(slots_[at(slot)].activity);
      for (const Load& load : shapes_.loads(how)) {
        filling_[at(load.resource)].pull += load.load * how.connections;
        ++filling_[at(load.resource)].open;
      }
    }
    open_ = members_;
    while (!open_.empty()) {
      double level = std::numeric_limits<double>::infinity();
      std::int32_t full = kNobody;
      for (const std::int32_t r : region_) {
        const Filling& filling = filling_[at(r)];
        if (filling.open == 0) continue;
        const double here = std::max(0.0, filling.left.value) / filling.pull;
        if (here < level) {
          level = here;
          full = r;
        }
      }
      std::int32_t capped = kNobody;
      for (const std::int32_t slot : open_) {
        const NormalShape& how = shape(slots_[at(slot)].activity);
        if (how.cap / how.connections < level) {
          level = how.cap / how.connections;
          capped = slot;
        }
      }
      FORESHARD_CHECK(std::isfinite(level));
      if (capped != kNobody)
        freeze_capped(capped, cause);
      else
        freeze_on(full, level, cause);
    }
  }

  void freeze_capped(std::int32_t slot, const Cause& cause) {
    const std::int32_t a = slots_[at(slot)].activity;
    const NormalShape& how = shape(a);
    Slope slope = zero_;
    add_scaled(slope, how.scale, row(slopes_.rate_cap[activity(at(a)).shape.index()]));
    freeze(slot, how.cap, slope, cause);
    std::erase(open_, slot);
  }

  void freeze_on(std::int32_t resource, double level, const Cause& cause) {
    Slope level_slope = zero_;
    add_scaled(level_slope, 1 / filling_[at(resource)].pull, filling_[at(resource)].left.slope);
    if (level == 0) level_slope = zero_;
    std::vector<std::int32_t> stopped;
    for (const std::int32_t slot : open_) {
      const auto loads = shapes_.loads(shape(slots_[at(slot)].activity));
      if (std::ranges::find(loads, resource, &Load::resource) != loads.end())
        stopped.push_back(slot);
    }
    for (const std::int32_t slot : stopped) {
      const double connections = shape(slots_[at(slot)].activity).connections;
      Slope slope = zero_;
      add_scaled(slope, connections, level_slope);
      freeze(slot, connections * level, slope, cause);
      std::erase(open_, slot);
    }
  }

  // Gives a member its new rate; its progress until now used the old rate.
  void freeze(std::int32_t slot, double rate, const Slope& slope, const Cause& cause) {
    Running& one = slots_[at(slot)];
    const NormalShape& how = shape(one.activity);
    for (const Load& load : shapes_.loads(how)) {
      Filling& filling = filling_[at(load.resource)];
      filling.left.value -= load.load * rate;
      add_scaled(filling.left.slope, -load.load, slope);
      filling.pull -= load.load * how.connections;
      --filling.open;
    }
    if (rate == one.rate && slope == one.rate_slope) return;
    if (one.rate > 0) {
      const double passed = cause.time - one.since;
      add_scaled(one.remaining_slope, -passed, one.rate_slope);
      add_scaled(one.remaining_slope, -one.rate, cause.slope);
      add_scaled(one.remaining_slope, one.rate, one.since_slope);
      one.remaining = std::max(0.0, one.remaining - one.rate * passed);
      one.since = cause.time;
      one.since_slope = cause.slope;
    } else if (one.since * kSameInstant < cause.time) {  // It had no rate so far.
      one.since = cause.time;
      one.since_slope = cause.slope;
    }
    one.rate = rate;
    one.rate_slope = slope;
  }

  const Workload& workload_;
  const Timeline& times_;
  const Slopes& slopes_;
  Shapes shapes_;
  Slope zero_;
  std::vector<double> finish_;  // derivatives of the ends, activity by activity
  std::vector<std::size_t> before_begin_;
  std::vector<std::int32_t> before_;
  std::vector<std::int32_t> running_;  // activity -> its slot
  std::vector<Running> slots_;
  std::vector<std::int32_t> free_;
  std::vector<std::vector<std::int32_t>> users_;  // resource -> slots that use it
  std::vector<double> held_;
  std::vector<Filling> filling_;
  std::vector<Instant> later_;
  std::vector<Cause> causes_;
  std::vector<std::int32_t> visited_;  // resources solved at this instant
  std::vector<std::int32_t> region_;   // resources being solved
  std::vector<std::int32_t> members_;  // slots being solved
  std::vector<std::int32_t> open_;     // members without a rate yet
};

}  // namespace

std::int32_t Slopes::add(const std::vector<double>& row) {
  FORESHARD_CHECK(row.size() == parameters);
  rows.insert(rows.end(), row.begin(), row.end());
  return static_cast<std::int32_t>(rows.size() / parameters) - 1;
}

std::vector<double> slopes_of_makespan(const Workload& workload, const Timeline& times,
                                       const Slopes& slopes) {
  FORESHARD_CHECK(workload.events().empty() && times.complete);
  FORESHARD_CHECK(slopes.latency.size() == workload.activity_count() &&
                  slopes.work.size() == workload.activity_count() &&
                  slopes.capacity.size() == workload.resource_count() &&
                  slopes.rate_cap.size() == workload.shapes().size());
  if (workload.activity_count() == 0) return Slope(slopes.parameters, 0.0);
  return Replay(workload, times, slopes).run();
}

}  // namespace foreshard::engine
