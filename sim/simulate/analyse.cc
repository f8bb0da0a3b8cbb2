// Reads the results of a step off the engine's timeline (analyse.h), for simulate.cc: breakdown,
// memory, critical path, and what held up a step that never ended. Times are seconds of the step.
#include "sim/simulate/analyse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

#include "sim/memory/timeline.h"

namespace foreshard::sim {
namespace {

using program::Communication;
using program::Program;
using program::Purpose;

// Sorted by priority.
enum Category : std::size_t {
  kCompute,
  kOptimizer,
  kTensor,
  kContext,
  kExpert,
  kPipeline,
  kData,
  kHost,
  kCategories,
};

struct Interval {
  double start;
  double finish;
  Category category;
};

Category category_of(const program::Task& task) {
  if (const auto* communication = std::get_if<Communication>(&task.body)) {
    switch (communication->purpose) {
      case Purpose::kTensor:
        return kTensor;
      case Purpose::kContext:
        return kContext;
      case Purpose::kExpert:
        return kExpert;
      case Purpose::kPipeline:
        return kPipeline;
      case Purpose::kData:
        return kData;
      case Purpose::kOffload:
        return kHost;
    }
  }
  if (std::holds_alternative<Kernel>(task.body)) return task.optimizer ? kOptimizer : kCompute;
  return kHost;
}

// The time at which everything that the instance waits for, except its launch, was done.
Seconds ready_of(const program::Expansion& expansion, const ClassTimes& times, std::size_t i) {
  Seconds ready;
  for (const std::int32_t before : expansion.predecessors(i))
    ready = std::max(ready, times.end(static_cast<std::size_t>(before)));
  return ready;
}

// The instance that finishes last (ties: the lowest class, the earliest issued), if any.
std::optional<ClassInstance> last_of(const BuiltWorkload& built, const engine::Timeline& times) {
  std::optional<std::size_t> c;
  Seconds latest;
  for (std::size_t other = 0; other < built.heads.size(); ++other) {
    const Seconds finish = finish_of(built, times, other);
    if (built.heads[other].empty() || (c && finish <= latest)) continue;
    c = other;
    latest = finish;
  }
  if (!c) return std::nullopt;
  std::size_t i = 0;
  while (end_of(built, times, *c, i) < latest) ++i;
  return ClassInstance{static_cast<std::int32_t>(*c), static_cast<std::int32_t>(i)};
}

// The intervals of each stream follow one another. So do the intervals of waiting for the host,
// because a launch is waited for on one stream at a time or by several at once.
std::vector<std::vector<Interval>> intervals_by_stream(const Program& program,
                                                       const BuiltWorkload& built,
                                                       const engine::Timeline& times,
                                                       const ClassTimes& of_class, std::size_t c) {
  std::vector<std::vector<Interval>> streams(program.streams.size() + 2);
  std::vector<Interval>& waiting = streams[program.streams.size()];
  std::vector<Interval>& host = streams.back();
  const auto& expansion = *built.expansions[c];
  const program::Role& role = role_of(program, built, c);
  for (const std::int32_t head : built.heads[c]) {  // a chain is one interval
    const auto i = static_cast<std::size_t>(head);
    const program::Instance& instance = expansion.instances[i];
    const program::Task& task = program::task_of(program, role, instance);
    const Seconds start = of_class.start(i);
    const Seconds finish = times.finish[last_activity(built, c, i).index()];
    if (instance.stream < 0) {
      if (finish > start) host.push_back({start.in_base(), finish.in_base(), kHost});
      continue;
    }
    streams[static_cast<std::size_t>(instance.stream)].push_back(
        {start.in_base(), finish.in_base(), category_of(task)});
    if (!std::holds_alternative<Kernel>(task.body)) continue;
    // If a kernel starts as soon as it is launched, but after everything that it waits for, it
    // waited for the host: since then, or since the host itself stopped waiting.
    Seconds ready = ready_of(expansion, of_class, i);
    if (instance.host_sync >= 0)
      ready = std::max(ready, of_class.end(static_cast<std::size_t>(instance.host_sync)));
    if (start > ready) waiting.push_back({ready.in_base(), start.in_base(), kHost});
  }
  return streams;
}

}  // namespace

Seconds finish_of(const BuiltWorkload& built, const engine::Timeline& times,
                  std::size_t device_class) {
  Seconds finish;
  for (const std::int32_t head : built.heads[device_class]) {
    const auto last = last_activity(built, device_class, static_cast<std::size_t>(head));
    finish = std::max(finish, times.finish[last.index()]);
  }
  return finish;
}

ClassTimes::ClassTimes(const BuiltWorkload& built, const engine::Timeline& times,
                       std::size_t device_class) {
  const std::size_t count = built.expansions[device_class]->instances.size();
  all_.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    all_.push_back(
        {start_of(built, times, device_class, i), end_of(built, times, device_class, i)});
}

Breakdown breakdown_of(const Program& program, const BuiltWorkload& built,
                       const engine::Timeline& times, const ClassTimes& of_class,
                       std::size_t device_class, Seconds end) {
  const auto streams = intervals_by_stream(program, built, times, of_class, device_class);
  std::vector<std::size_t> next(streams.size(), 0);
  std::array<double, kCategories> sum{};
  double bubble = 0;
  double now = 0;
  const double last = end.in_base();
  while (now < last) {
    // The category that counts from `now` on, and the time until which nothing changes.
    Category best = kCategories;
    double until = last;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      while (next[s] < streams[s].size() && streams[s][next[s]].finish <= now) ++next[s];
      if (next[s] == streams[s].size()) continue;
      const Interval& interval = streams[s][next[s]];
      if (interval.start <= now) {
        best = std::min(best, interval.category);
        until = std::min(until, interval.finish);
      } else {
        until = std::min(until, interval.start);
      }
    }
    (best == kCategories ? bubble : sum[best]) += until - now;
    now = until;
  }
  const auto seconds = [](double value) { return Seconds::from_base(value); };
  return {.compute = seconds(sum[kCompute]),
          .optimizer = seconds(sum[kOptimizer]),
          .tensor = seconds(sum[kTensor]),
          .context = seconds(sum[kContext]),
          .expert = seconds(sum[kExpert]),
          .pipeline = seconds(sum[kPipeline]),
          .data = seconds(sum[kData]),
          .host = seconds(sum[kHost]),
          .bubble = seconds(bubble)};
}

std::array<Seconds, kParameterGroups> kernel_times_of(const Program& program,
                                                      const BuiltWorkload& built,
                                                      const ClassTimes& times,
                                                      std::size_t device_class) {
  std::array<Seconds, kParameterGroups> sums{};
  const program::Role& role = role_of(program, built, device_class);
  const auto& instances = built.expansions[device_class]->instances;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const program::Task& task = program::task_of(program, role, instances[i]);
    const auto* kernel = std::get_if<Kernel>(&task.body);
    if (kernel == nullptr || task.optimizer) continue;
    sums[static_cast<std::size_t>(group_of(*kernel))] += times.end(i) - times.start(i);
  }
  return sums;
}

MemoryUse memory_of(const Program& program, const program::Expander& expander,
                    const BuiltWorkload& built, const ClassTimes& times, std::size_t device_class,
                    std::size_t curve_samples) {
  const auto role_index = static_cast<std::size_t>(built.role_of_class[device_class]);
  const auto found = expander.memory_events(role_index, *built.expansions[device_class]);
  std::vector<memory::Event> events;
  events.reserve(found.events.size());
  for (const program::MemoryEvent& event : found.events) {
    Seconds time;
    // a task that never began allocates nothing, a task that never ended frees nothing
    bool happens = true;
    for (const std::int32_t anchor : found.anchors_of(event)) {
      const auto i = static_cast<std::size_t>(anchor);
      const Seconds one = event.allocate ? times.start(i) : times.end(i);
      happens &= std::isfinite(one.in_base());
      time = std::max(time, one);
    }
    if (!happens) continue;
    events.push_back({time, event.kind, event.allocate ? event.bytes : -event.bytes});
  }
  auto live =
      memory::live_bytes(program.roles[role_index].memory, std::move(events), curve_samples);
  return {.peak = live.peak,
          .peak_time = live.peak_time,
          .by_kind = live.at_peak,
          .curve = std::move(live.curve)};
}

namespace {

bool happened(Seconds time) {
  return std::isfinite(time.in_base());
}

}  // namespace

Flops executed_flops(const Program& program, const Folding& folding, const BuiltWorkload& built,
                     const engine::Timeline& times) {
  Flops sum;
  for (std::size_t c = 0; c < built.expansions.size(); ++c) {
    const program::Role& role = role_of(program, built, c);
    Flops of_class;
    const auto& instances = built.expansions[c]->instances;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const program::Task& task = program::task_of(program, role, instances[i]);
      const auto* kernel = std::get_if<Kernel>(&task.body);
      if (kernel != nullptr && happened(end_of(built, times, c, i))) of_class += flops_of(*kernel);
    }
    sum += of_class * static_cast<double>(folding.rank_count[c]);
  }
  return sum;
}

std::vector<CriticalTask> critical_path_of(const Program& program, const BuiltWorkload& built,
                                           const engine::Timeline& times) {
  const auto last = last_of(built, times);
  std::vector<CriticalTask> path;
  ClassInstance at = last.value_or(ClassInstance{});
  for (bool more = last.has_value(); more;) {
    const auto c = static_cast<std::size_t>(at.device_class);
    const auto i = static_cast<std::size_t>(at.instance);
    const program::Instance& instance = built.expansions[c]->instances[i];
    const program::Call& call =
        role_of(program, built, c).calls[static_cast<std::size_t>(instance.call)];
    path.push_back({.device_class = at.device_class,
                    .block = call.block.value(),
                    .task = instance.task,
                    .layer = call.first_layer + instance.iteration * call.layer_step,
                    .micro_batch = call.micro_batch,
                    .start = start_of(built, times, c, i),
                    .finish = end_of(built, times, c, i)});
    // The predecessor that finished last, among all that this activity waited for, through any of
    // its members. A later kernel of a chain waited for the previous one.
    more = false;
    Seconds best = Seconds::from_base(-1);
    if (!is_head(built, c, i)) {
      at.instance = built.expansions[c]->predecessors(i).front();
      more = true;
      continue;
    }
    const auto activity = first_activity(built, c, i).index();
    for (std::uint32_t k = built.carried_begin[activity]; k < built.carried_begin[activity + 1];
         ++k) {
      const auto mc = static_cast<std::size_t>(built.carried[k].device_class);
      const auto mi = static_cast<std::size_t>(built.carried[k].instance);
      const auto consider = [&](std::int32_t before) {
        const Seconds finish = end_of(built, times, mc, static_cast<std::size_t>(before));
        if (finish > best) {
          best = finish;
          at = {static_cast<std::int32_t>(mc), before};
          more = true;
        }
      };
      for (const std::int32_t before : built.expansions[mc]->predecessors(mi)) consider(before);
      const std::int32_t sync = built.expansions[mc]->instances[mi].host_sync;
      if (sync >= 0) consider(sync);
    }
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<TimelineEntry> timeline_of(const Program& program, const BuiltWorkload& built,
                                       const engine::Timeline& times) {
  std::vector<TimelineEntry> entries;
  for (std::size_t c = 0; c < built.expansions.size(); ++c) {
    const program::Role& role = role_of(program, built, c);
    for (std::size_t i = 0; i < built.expansions[c]->instances.size(); ++i) {
      const program::Instance& instance = built.expansions[c]->instances[i];
      const program::Call& call = role.calls[static_cast<std::size_t>(instance.call)];
      entries.push_back({.device_class = static_cast<std::int32_t>(c),
                         .stream = instance.stream,
                         .block = call.block.value(),
                         .task = instance.task,
                         .layer = call.first_layer + instance.iteration * call.layer_step,
                         .chunk = call.chunk,
                         .micro_batch = call.micro_batch,
                         .operation = std::holds_alternative<Communication>(
                                          program::task_of(program, role, instance).body)
                                          ? std::optional(built.node[c][i])
                                          : std::nullopt,
                         .start = start_of(built, times, c, i),
                         .finish = end_of(built, times, c, i)});
    }
  }
  return entries;
}

namespace {

class InterruptionFinder {
 public:
  InterruptionFinder(const program::Program& program, const BuiltWorkload& built,
                     const engine::Timeline& times)
      : program_(program), built_(built), times_(times) {
    for (std::size_t c = 0; c < built.heads.size(); ++c) {
      for (const std::int32_t head : built.heads[c]) {
        const ClassInstance one = at(c, static_cast<std::size_t>(head));
        // the instance of the lowest class
        first_of_.emplace(first_activity(built, c, i(one)).value(), one);
      }
    }
    for (const engine::Failure& failure : times.failures)
      failed_.insert(key(whose(failure.activity)));
  }

  Interruption run() {
    Interruption result;
    result.at = times_.makespan;
    for (const engine::Failure& failure : times_.failures) {
      result.at = std::min(result.at, failure.at);
      const ClassInstance who = whose(failure.activity);
      const auto reported = std::pair(key(who), failure.at.in_base());
      if (!reported_.insert(reported).second) continue;  // another message of the same collective
      result.failed.push_back({.task = place_of(who),
                               .start = start(who),
                               .at = failure.at,
                               .on = built_.workload.resource_name(failure.on)});
    }
    for (std::size_t c = 0; c < built_.node.size(); ++c) {
      std::optional<ClassInstance> first;
      Seconds since;
      for (std::size_t i = 0; i < built_.node[c].size(); ++i) {
        if (done(at(c, i))) {
          if (!first) since = std::max(since, end_of(built_, times_, c, i));
          continue;
        }
        ++result.unfinished;
        if (!first) first = at(c, i);
      }
      if (!first) continue;
      const ClassInstance cause = cause_of(*first);
      result.waiting.push_back({.task = place_of(*first),
                                .since = since,
                                .waits_for = place_of(cause),
                                .failed = failed_.contains(key(cause))});
      if (times_.failures.empty()) result.at = std::min(result.at, since);
    }
    return result;
  }

 private:
  static ClassInstance at(std::size_t c, std::size_t i) {
    return {static_cast<std::int32_t>(c), static_cast<std::int32_t>(i)};
  }
  static std::pair<std::int32_t, std::int32_t> key(const ClassInstance& one) {
    return {one.device_class, one.instance};
  }
  static std::size_t c(const ClassInstance& one) {
    return static_cast<std::size_t>(one.device_class);
  }
  static std::size_t i(const ClassInstance& one) { return static_cast<std::size_t>(one.instance); }

  // The instance that an activity belongs to: the messages of a collective lie between its first
  // and its last activity.
  ClassInstance whose(engine::ActivityId activity) const {
    auto after = first_of_.upper_bound(activity.value());
    FORESHARD_CHECK(after != first_of_.begin());
    return std::prev(after)->second;
  }
  bool done(const ClassInstance& one) const {
    return happened(times_.finish[last_activity(built_, c(one), i(one)).index()]);
  }
  Seconds start(const ClassInstance& one) const {
    return times_.start[first_activity(built_, c(one), i(one)).index()];
  }

  TaskPlace place_of(const ClassInstance& one) const {
    const program::Role& role =
        program_.roles[static_cast<std::size_t>(built_.role_of_class[c(one)])];
    const program::Instance& instance = built_.expansions[c(one)]->instances[i(one)];
    const program::Call& call = role.calls[static_cast<std::size_t>(instance.call)];
    return {.device_class = one.device_class,
            .block = call.block.value(),
            .task = instance.task,
            .layer = call.first_layer + instance.iteration * call.layer_step,
            .micro_batch = call.micro_batch};
  }

  // An unfinished instance that `one`'s activity waits for, through any of its members.
  std::optional<ClassInstance> unfinished_before(const ClassInstance& one) const {
    const auto before_in = [&](const ClassInstance& member) -> std::optional<ClassInstance> {
      const auto& expansion = *built_.expansions[c(member)];
      for (const std::int32_t before : expansion.predecessors(i(member))) {
        const ClassInstance other{member.device_class, before};
        if (!done(other)) return other;
      }
      const std::int32_t sync = expansion.instances[i(member)].host_sync;
      if (sync >= 0 && !done({member.device_class, sync}))
        return ClassInstance{member.device_class, sync};
      return std::nullopt;
    };
    if (!is_head(built_, c(one), i(one))) return before_in(one);
    const auto activity = first_activity(built_, c(one), i(one)).index();
    for (std::uint32_t k = built_.carried_begin[activity]; k < built_.carried_begin[activity + 1];
         ++k)
      if (const auto before = before_in(built_.carried[k])) return before;
    return std::nullopt;
  }

  ClassInstance cause_of(ClassInstance one) const {
    // Each iteration goes to something that began no later, so the loop ends.
    while (!failed_.contains(first_key(one)) && !happened(start(one))) {
      const auto before = unfinished_before(one);
      if (!before) break;
      one = *before;
    }
    return first_member(one);
  }

  // The representative among the instances that share an activity.
  ClassInstance first_member(const ClassInstance& one) const {
    const auto first = first_of_.find(first_activity(built_, c(one), i(one)).value());
    return first == first_of_.end() ? one : first->second;
  }
  std::pair<std::int32_t, std::int32_t> first_key(const ClassInstance& one) const {
    return key(first_member(one));
  }

  const program::Program& program_;
  const BuiltWorkload& built_;
  const engine::Timeline& times_;
  std::map<std::int32_t, ClassInstance> first_of_;  // by first activity
  std::set<std::pair<std::int32_t, std::int32_t>> failed_;
  std::set<std::pair<std::pair<std::int32_t, std::int32_t>, double>> reported_;
};

}  // namespace

Interruption interruption_of(const program::Program& program, const BuiltWorkload& built,
                             const engine::Timeline& times) {
  return InterruptionFinder(program, built, times).run();
}

engine::Timeline cut_off(const engine::Timeline& times) {
  engine::Timeline cut = times;
  for (auto* instants : {&cut.start, &cut.finish})
    for (Seconds& instant : *instants) instant = std::min(instant, times.makespan);
  return cut;
}

}  // namespace foreshard::sim
