#include "tests/sim/engine/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foreshard::engine::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Rows = std::vector<std::vector<double>>;

double scale_of(const Shape& shape) {
  double scale = shape.usages.empty() ? 1 : 0;
  for (const Usage& u : shape.usages) scale = std::max(scale, u.weight);
  return scale;
}

// loads[activity][resource] of normalised progress.
Rows dense_loads(const Workload& w, const std::vector<ShapeId>& running) {
  Rows loads(running.size(), std::vector<double>(w.resource_count()));
  for (std::size_t a = 0; a < running.size(); ++a) {
    const Shape& shape = w.shape(running[a]);
    for (const Usage& u : shape.usages)
      loads[a][u.resource.index()] = u.weight * u.multiplicity / scale_of(shape);
  }
  return loads;
}

std::vector<double> capacities_left(const Workload& w, const std::vector<ShapeId>& running,
                                    const std::vector<double>& now = {}) {
  std::vector<double> left;
  for (std::size_t r = 0; r < w.resource_count(); ++r) {
    const ResourceId id(static_cast<std::int64_t>(r));
    double held = 0;
    for (const ShapeId shape : running)
      for (const Occupation& o : w.shape(shape).occupations)
        if (o.resource == id) held += o.amount;
    const double capacity = now.empty() ? w.capacity(id) : now[r];
    const double rest = capacity - held;
    left.push_back(rest > 1e-12 * capacity ? rest : 0);
  }
  return left;
}

}  // namespace

std::vector<double> max_min_rates(const Workload& w, const std::vector<ShapeId>& running,
                                  const std::vector<double>& now) {
  const Rows loads = dense_loads(w, running);
  const std::vector<double> capacity = capacities_left(w, running, now);
  const std::size_t n = running.size();
  std::vector<double> rate(n, 0);
  std::vector<bool> done(n, false);
  for (std::size_t left = n; left > 0;) {
    // The lowest level at which anything stops anyone.
    double level = kInfinity;
    std::vector<double> stop(w.resource_count(), kInfinity);
    for (std::size_t r = 0; r < w.resource_count(); ++r) {
      double free = capacity[r];
      double pull = 0;
      for (std::size_t a = 0; a < n; ++a)
        (done[a] ? free : pull) +=
            done[a] ? -loads[a][r] * rate[a] : loads[a][r] * w.shape(running[a]).connections;
      if (pull > 0) stop[r] = std::max(0.0, free) / pull;
      level = std::min(level, stop[r]);
    }
    const auto cap_level = [&](std::size_t a) {
      const Shape& s = w.shape(running[a]);
      return s.rate_cap * scale_of(s) / s.connections;
    };
    for (std::size_t a = 0; a < n; ++a)
      if (!done[a]) level = std::min(level, cap_level(a));
    for (std::size_t a = 0; a < n; ++a) {
      if (done[a]) continue;
      bool stopped = cap_level(a) <= level;
      for (std::size_t r = 0; r < w.resource_count(); ++r)
        stopped |= loads[a][r] > 0 && stop[r] <= level;
      if (!stopped) continue;
      done[a] = true;
      rate[a] = level * w.shape(running[a]).connections;
      --left;
    }
  }
  for (std::size_t a = 0; a < n; ++a) rate[a] /= scale_of(w.shape(running[a]));
  return rate;
}

std::string not_max_min(const Workload& w, const std::vector<ShapeId>& running,
                        const std::vector<double>& rates) {
  constexpr double kTolerance = 1e-9;
  const Rows loads = dense_loads(w, running);
  const std::vector<double> capacity = capacities_left(w, running);
  std::vector<double> level;
  for (std::size_t a = 0; a < running.size(); ++a)
    level.push_back(rates[a] * scale_of(w.shape(running[a])) / w.shape(running[a]).connections);
  std::vector<double> used(w.resource_count(), 0);
  std::vector<double> highest(w.resource_count(), 0);
  for (std::size_t r = 0; r < w.resource_count(); ++r) {
    for (std::size_t a = 0; a < running.size(); ++a) {
      if (loads[a][r] == 0) continue;
      used[r] += loads[a][r] * level[a] * w.shape(running[a]).connections;
      highest[r] = std::max(highest[r], level[a]);
    }
    const double slack = kTolerance * w.capacity(ResourceId(static_cast<std::int64_t>(r)));
    if (used[r] > capacity[r] + slack) return "resource " + std::to_string(r) + " is overfull";
  }
  for (std::size_t a = 0; a < running.size(); ++a) {
    bool bound = rates[a] >= w.shape(running[a]).rate_cap * (1 - kTolerance);
    if (rates[a] > w.shape(running[a]).rate_cap * (1 + kTolerance))
      return "activity " + std::to_string(a) + " is above its cap";
    for (std::size_t r = 0; r < w.resource_count(); ++r)
      bound |= loads[a][r] > 0 && used[r] >= capacity[r] * (1 - kTolerance) &&
               level[a] >= highest[r] * (1 - kTolerance);
    if (!bound) return "activity " + std::to_string(a) + " is bound by nothing";
  }
  return "";
}

std::vector<double> finish_times(const Workload& w) {
  return outcome_of(w).finish;
}

Outcome outcome_of(const Workload& w) {
  enum class State { kBlocked, kLatency, kWorking, kDone, kFailed };
  const std::size_t n = w.activity_count();
  std::vector<State> state(n, State::kBlocked);
  Outcome outcome{std::vector<double>(n, kInfinity), std::vector<double>(n, kInfinity)};
  std::vector<double>& finish = outcome.finish;
  std::vector<double> work_begins(n, kInfinity);
  std::vector<double> remaining(n);  // as a part of the whole
  Rows dead_since(n, std::vector<double>(w.resource_count(), kInfinity));
  std::vector<ShapeId> last_shape(n);

  std::vector<Event> events(w.events().begin(), w.events().end());
  std::ranges::stable_sort(events, {}, &Event::at);
  std::size_t next_event = 0;
  std::vector<double> wish;
  for (std::size_t r = 0; r < w.resource_count(); ++r)
    wish.push_back(w.capacity(ResourceId(static_cast<std::int64_t>(r))));
  std::vector<int> down(w.resource_count());
  std::vector<double> failure_timeout(w.resource_count(), kInfinity);
  std::vector<ShapeId> shape_now;
  for (std::size_t s = 0; s < w.shapes().size(); ++s)
    shape_now.emplace_back(static_cast<std::int64_t>(s));
  std::vector<std::pair<std::int32_t, ShapeId>> loads;
  const auto apply = [&](const Event& e) {
    switch (e.kind) {
      case Event::Kind::kCapacity:
        wish[e.resource.index()] = e.capacity;
        break;
      case Event::Kind::kFails:
        ++down[e.resource.index()];
        if (failure_timeout[e.resource.index()] == kInfinity)
          failure_timeout[e.resource.index()] = e.failure_timeout.in_base();
        break;
      case Event::Kind::kRepaired:
        if (--down[e.resource.index()] == 0) failure_timeout[e.resource.index()] = kInfinity;
        break;
      case Event::Kind::kShape:
        shape_now[e.of.index()] = e.as;
        break;
      case Event::Kind::kLoadBegins:
        loads.emplace_back(e.load, e.as);
        break;
      case Event::Kind::kLoadEnds:
        std::erase_if(loads, [&](const auto& load) { return load.first == e.load; });
        break;
    }
  };

  double now = 0;
  for (;;) {
    // Whatever needs no time, until nothing changes: first what ends, then the events.
    bool applied = false;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t a = 0; a < n; ++a) {
        const Activity& activity = w.activities()[a];
        if (state[a] == State::kBlocked) {
          bool blocked = false;
          for (const auto& [from, to] : w.edges())
            blocked |= to.index() == a && state[from.index()] != State::kDone;
          const ActivityId from = activity.release_from;
          if (blocked || (from.valid() && state[from.index()] != State::kDone)) continue;
          const double release =
              (from.valid() ? finish[from.index()] : 0) + activity.release_lag.in_base();
          work_begins[a] = std::max(now, release) + activity.latency.in_base();
          state[a] = State::kLatency;
          changed = true;
        } else if (state[a] == State::kLatency && work_begins[a] <= now) {
          state[a] = State::kWorking;
          remaining[a] = activity.work > 0 ? 1 : 0;
          changed = true;
        } else if (state[a] == State::kWorking && remaining[a] == 0) {
          state[a] = State::kDone;
          finish[a] = now;
          changed = true;
        }
      }
      if (changed || applied) continue;
      applied = true;
      for (; next_event < events.size() && events[next_event].at.in_base() <= now; ++next_event) {
        apply(events[next_event]);
        changed = true;
      }
    }
    std::vector<ShapeId> running;
    std::vector<std::size_t> who;
    double next = next_event < events.size() ? events[next_event].at.in_base() : kInfinity;
    for (std::size_t a = 0; a < n; ++a) {
      if (state[a] == State::kLatency) next = std::min(next, work_begins[a]);
      if (state[a] != State::kWorking) continue;
      running.push_back(shape_now[w.activities()[a].shape.index()]);
      who.push_back(a);
      if (running.back() != last_shape[a]) std::ranges::fill(dead_since[a], kInfinity);
      last_shape[a] = running.back();
      outcome.failed[a] = kInfinity;
      for (const Usage& u : w.shape(running.back()).usages) {
        double& since = dead_since[a][u.resource.index()];
        if (failure_timeout[u.resource.index()] == kInfinity) {
          since = kInfinity;
          continue;
        }
        since = std::min(since, now);
        outcome.failed[a] =
            std::min(outcome.failed[a], since + failure_timeout[u.resource.index()]);
      }
      next = std::min(next, outcome.failed[a]);
    }
    for (const auto& [load, shape] : loads) running.push_back(shape);
    std::vector<double> capacity = wish;
    for (std::size_t r = 0; r < capacity.size(); ++r)
      if (down[r] > 0) capacity[r] = 0;
    std::vector<double> rates = max_min_rates(w, running, capacity);
    for (std::size_t i = 0; i < who.size(); ++i) {
      rates[i] /= w.activities()[who[i]].work;
      if (rates[i] > 0) next = std::min(next, now + remaining[who[i]] / rates[i]);
    }
    if (next == kInfinity) break;
    for (std::size_t i = 0; i < who.size(); ++i) {
      const bool ends = rates[i] > 0 && now + remaining[who[i]] / rates[i] <= next * (1 + 1e-15);
      remaining[who[i]] = ends ? 0 : std::max(0.0, remaining[who[i]] - rates[i] * (next - now));
      if (outcome.failed[who[i]] <= next) state[who[i]] = State::kFailed;
    }
    now = next;
  }
  for (std::size_t a = 0; a < n; ++a)
    if (state[a] != State::kFailed) outcome.failed[a] = kInfinity;
  return outcome;
}

}  // namespace foreshard::engine::oracle
