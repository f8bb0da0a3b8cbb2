#include "sim/simulate/interruption.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

namespace foreshard::sim {
namespace {

bool happened(Seconds time) {
  return std::isfinite(time.in_base());
}

class Inquest {
 public:
  Inquest(const program::Program& program, const BuiltWorkload& built,
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
  return Inquest(program, built, times).run();
}

engine::Timeline cut_off(const engine::Timeline& times) {
  engine::Timeline cut = times;
  for (auto* instants : {&cut.start, &cut.finish})
    for (Seconds& instant : *instants) instant = std::min(instant, times.makespan);
  return cut;
}

}  // namespace foreshard::sim
