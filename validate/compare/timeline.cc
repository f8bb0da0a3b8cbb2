#include "validate/compare/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "base/check.h"

#include "strategies/program/ir/group.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::Program;

// Where the entries of each class begin in the time line.
std::vector<std::size_t> class_begins(const sim::Prediction& prediction) {
  std::vector<std::size_t> begin(prediction.classes.size(), prediction.timeline.size());
  for (std::size_t i = prediction.timeline.size(); i-- > 0;)
    begin[static_cast<std::size_t>(prediction.timeline[i].device_class)] = i;
  return begin;
}

// When the rank itself reached the instance: after all that it waits for, its launch included.
Seconds reached_at(const program::Expansion& expansion, const std::vector<Times>& times,
                   std::size_t i) {
  const program::Instance& instance = expansion.instances[i];
  Seconds reached = instance.host_offset;
  if (instance.host_sync >= 0)
    reached = reached + times[static_cast<std::size_t>(instance.host_sync)].finish;
  for (const std::int32_t before : expansion.predecessors(i))
    reached = std::max(reached, times[static_cast<std::size_t>(before)].finish);
  return reached;
}

class Matcher {
 public:
  Matcher(const Program& program, Timelines& lines) : program_(program), lines_(lines) {}

  void run() {
    for (std::size_t place = 0; place < lines_.ranks.size(); ++place) add(place);
  }

 private:
  // Members (a transfer has {sender, receiver}), kind (kSend for both ends) and tag.
  using Key = std::tuple<std::vector<std::int32_t>, CollectiveKind, std::string>;

  void add(std::size_t place) {
    const RankTimes& rank = lines_.ranks[place];
    const auto& expansion = lines_.expansions[rank.role];
    std::map<const program::Task*, std::vector<std::size_t>*> known;  // order is never used
    std::map<std::pair<const std::vector<std::size_t>*, bool>, std::size_t> seen;
    for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
      const program::Task& task =
          program::task_of(program_, program_.roles[rank.role], expansion.instances[i]);
      const auto* what = std::get_if<Communication>(&task.body);
      if (what == nullptr) continue;
      auto& operations = known[&task];
      if (operations == nullptr) operations = &of_key_[key_of(task, *what, rank.rank)];
      const std::size_t n = seen[{operations, what->kind == CollectiveKind::kSend}]++;
      if (n == operations->size()) {
        operations->push_back(lines_.operations.size());
        lines_.operations.emplace_back();
      }
      lines_.operations[(*operations)[n]].members.push_back({place, i});
    }
  }

  Key key_of(const program::Task& task, const Communication& what, std::int32_t rank) const {
    if (const auto peer = program::peer_of(program_, what.group, rank)) {
      const bool sends = what.kind == CollectiveKind::kSend;
      return {sends ? std::vector{rank, *peer} : std::vector{*peer, rank}, CollectiveKind::kSend,
              program::tag_of(task)};
    }
    return {program::members_of(program_, what.group, rank), what.kind, program::tag_of(task)};
  }

  const Program& program_;
  Timelines& lines_;
  std::map<Key, std::vector<std::size_t>> of_key_;
};

// Sets `begin` to the arrival of the last member and `lasted` to the time from then to the last
// finish, for all members of an operation.
void begin_together(Timelines& lines, const measure::Measurement& measurement) {
  for (const Operation& operation : lines.operations) {
    Seconds predicted, measured, predicted_end, measured_end;
    for (const auto& [place, i] : operation.members) {
      const RankTimes& rank = lines.ranks[place];
      predicted = std::max(predicted, rank.predicted[i].reached);
      measured = std::max(measured, rank.measured[i].reached);
      predicted_end = std::max(predicted_end, rank.predicted[i].finish);
      measured_end = std::max(measured_end, rank.measured[i].finish);
    }
    for (const auto& [place, i] : operation.members) {
      Times& p = lines.ranks[place].predicted[i];
      Times& m = lines.ranks[place].measured[i];
      p.begin = std::clamp(predicted, p.reached, std::max(p.reached, p.finish));
      m.begin = std::clamp(measured, m.reached, std::max(m.reached, m.finish));
      p.lasted = std::max(0_s, predicted_end - predicted);
      m.lasted =
          measurement.ranks[place].tasks[i].lasted.value_or(std::max(0_s, measured_end - measured));
    }
  }
}

}  // namespace

Timelines timelines_of(const Program& program, const sim::Prediction& prediction,
                       const measure::Measurement& measurement) {
  Timelines lines;
  const program::Expander expander(program);
  std::vector<std::size_t> role_of_rank(static_cast<std::size_t>(program.ranks()));
  for (std::size_t role = 0; role < program.roles.size(); ++role)
    for (const std::int32_t rank : program.roles[role].ranks)
      role_of_rank[static_cast<std::size_t>(rank)] = role;
  lines.expansions.resize(program.roles.size());
  const auto begins = class_begins(prediction);
  for (const measure::RankRecord& record : measurement.ranks) {
    const auto rank = static_cast<std::size_t>(record.rank);
    RankTimes times{.rank = record.rank, .role = role_of_rank[rank]};
    auto& expansion = lines.expansions[times.role];
    if (expansion.instances.empty()) expansion = expander.expand(times.role);
    const std::size_t count = expansion.instances.size();
    const std::size_t begin = begins[static_cast<std::size_t>(prediction.class_of_rank[rank])];
    FORESHARD_CHECK(record.tasks.size() == count && begin + count <= prediction.timeline.size());
    for (std::size_t i = 0; i < count; ++i) {
      const sim::TimelineEntry& entry = prediction.timeline[begin + i];
      times.predicted.push_back(
          {entry.start, entry.start, entry.finish, entry.finish - entry.start});
      const measure::TaskTimes& task = record.tasks[i];
      const Seconds finish = std::max(task.start, task.finish);
      times.measured.push_back({task.start, task.start, finish, finish - task.start});
    }
    for (std::size_t i = 0; i < count; ++i) {
      const program::Task& task =
          program::task_of(program, program.roles[times.role], expansion.instances[i]);
      if (std::holds_alternative<Communication>(task.body))
        times.predicted[i].reached =
            std::min(times.predicted[i].begin, reached_at(expansion, times.predicted, i));
    }
    lines.ranks.push_back(std::move(times));
  }
  if (measurement.mode == measure::Mode::kWhole) {
    Matcher(program, lines).run();
    begin_together(lines, measurement);
  }
  return lines;
}

namespace {

struct Change {
  Seconds at;
  bool begins;
  std::size_t interval;
};

}  // namespace

Booking book(std::span<const Interval> intervals, Seconds end) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Seconds last = std::min(intervals[i].end, end);
    if (!(intervals[i].begin < last)) continue;
    changes.push_back({intervals[i].begin, true, i});
    changes.push_back({last, false, i});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  Booking out{.of_interval = std::vector<Seconds>(intervals.size())};
  std::set<std::pair<std::int32_t, std::size_t>> active;
  Seconds now;
  const auto pass = [&](Seconds until) {
    if (!(now < until)) return;
    (active.empty() ? out.nothing : out.of_interval[active.begin()->second]) += until - now;
    now = until;
  };
  for (const Change& change : changes) {
    pass(change.at);
    const std::pair key{intervals[change.interval].priority, change.interval};
    if (change.begins)
      active.insert(key);
    else
      active.erase(key);
  }
  pass(end);
  return out;
}

Result<measure::Arrivals> arrivals_of(const program::Program& program,
                                      const sim::Prediction& prediction, std::int64_t rank) {
  if (rank < 0 || rank >= program.ranks())
    return Error{Error::Code::kInvalidInput, "there is no rank " + std::to_string(rank) +
                                                 "; the Program has " +
                                                 std::to_string(program.ranks()) + ", from 0 on"};
  if (prediction.interruption)
    return Error{Error::Code::kInvalidInput,
                 "the predicted step never ends; its communications do not all arrive"};
  measure::Arrivals out{.program = program.name,
                        .fingerprint = measure::fingerprint_of(program),
                        .rank = static_cast<std::int32_t>(rank)};
  const auto c = prediction.class_of_rank[static_cast<std::size_t>(rank)];
  for (const sim::TimelineEntry& entry : prediction.timeline) {
    if (entry.device_class != c) continue;
    const program::Task& task = program.blocks[static_cast<std::size_t>(entry.block)]
                                    .tasks[static_cast<std::size_t>(entry.task)];
    out.seconds.push_back(std::holds_alternative<program::Communication>(task.body)
                              ? std::optional(entry.finish)
                              : std::nullopt);
  }
  return out;
}

}  // namespace foreshard::compare
