#include "validate/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "base/quantity.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"
#include "validate/compare/timeline.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare {
namespace {

using measure::Measurement;
using measure::Mode;
using program::Communication;
using program::Program;

Error refusal(const std::string& why) {
  return {Error::Code::kInvalidInput, "measurement: " + why};
}

Status misfit(const Program& program, const sim::Prediction& prediction,
              const Measurement& measurement) {
  if (const std::string expected = measure::fingerprint_of(program);
      measurement.fingerprint != expected)
    return refusal("is of another Program: '" + measurement.program + "' with fingerprint " +
                   measurement.fingerprint + ", the prediction is of '" + program.name + "' with " +
                   expected + "; compare it with the study that was replayed, or replay this one");
  if (prediction.interruption)
    return Error{Error::Code::kInvalidInput,
                 "the predicted step never ends; there is nothing to compare"};
  const auto ranks = program.ranks();
  if (measurement.mode == Mode::kWhole &&
      static_cast<std::int64_t>(measurement.ranks.size()) != ranks)
    return refusal("has " + std::to_string(measurement.ranks.size()) + " ranks, the Program " +
                   std::to_string(ranks));
  std::vector<std::int64_t> expected(static_cast<std::size_t>(ranks));
  for (const program::Role& role : program.roles) {
    const std::int64_t count = program::count_instances(program, role);
    for (const std::int32_t rank : role.ranks) expected[static_cast<std::size_t>(rank)] = count;
  }
  for (const measure::RankRecord& record : measurement.ranks) {
    if (record.rank >= ranks)
      return refusal("has a rank " + std::to_string(record.rank) + ", the Program has " +
                     std::to_string(ranks));
    if (const auto count = expected[static_cast<std::size_t>(record.rank)];
        static_cast<std::int64_t>(record.tasks.size()) != count)
      return refusal("has " + std::to_string(record.tasks.size()) + " tasks of rank " +
                     std::to_string(record.rank) + ", the Program " + std::to_string(count));
  }
  return {};
}

std::string kind_name(const Kernel& kernel) {
  if (std::holds_alternative<Gemm>(kernel)) return "gemm";
  if (const auto* attention = std::get_if<Attention>(&kernel))
    return attention->direction == Direction::kForward ? "attention_fwd" : "attention_bwd";
  return std::string(traffic_of(std::get<Pass>(kernel).kind).name);
}

// Name of a communication. Both ends of a transfer have the same name.
std::string name_of(const Program& program, const Communication& what, std::int32_t rank) {
  if (program::peer_of(program, what.group, rank)) return "send/receive " + format(what.bytes);
  return std::string(program::name_of(what.kind)) + " " + format(what.bytes) + ", " +
         std::to_string(program::size_of(program, what.group, rank)) + " ranks";
}

constexpr int kKernelPriority = 1;  // communications have 0 (turns) or 2

// Sums over the instances of a row.
struct Sums {
  std::int64_t count = 0;
  Pair time{};
  Pair booked{};
  Seconds width{};   // widths of the measured 10 % to 90 % intervals
  Seconds median{};  // medians of the same instances
};

// Sums for the rows: per kind and per distinct task.
class Accounts {
 public:
  using Key = std::pair<Kind, std::string>;

  Sums& of(Kind kind, const std::string& name) { return kinds_[{kind, name}]; }
  Sums& of_task(Kind kind, const std::string& name) { return tasks_[{kind, name}]; }
  void book(Kind kind, const std::string& name, Pair booked) {
    for (Sums* sums : {&of(kind, name), &of_task(kind, name)}) {
      sums->booked.predicted += booked.predicted;
      sums->booked.measured += booked.measured;
    }
  }

  std::vector<Row> kinds(double ranks, const Pair& step) const {
    auto rows = rows_of(kinds_, ranks, step);
    std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
      return std::max(a.booked.measured, a.booked.predicted) >
             std::max(b.booked.measured, b.booked.predicted);
    });
    return rows;
  }
  std::vector<Row> residuals(double ranks, const Pair& step) const {
    auto rows = rows_of(tasks_, ranks, step);
    const auto size = [](const Row& row) {
      return std::abs((row.booked.predicted - row.booked.measured).in_base());
    };
    std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) { return size(a) > size(b); });
    return rows;
  }

 private:
  static std::vector<Row> rows_of(const std::map<Key, Sums>& sums, double ranks, const Pair& step) {
    std::vector<Row> rows;
    const Seconds error = step.predicted - step.measured;
    for (const auto& [key, of] : sums) {
      Row row{.kind = key.first,
              .name = key.second,
              .count = of.count,
              .time = {of.time.predicted / ranks, of.time.measured / ranks},
              .booked = {of.booked.predicted / ranks, of.booked.measured / ranks}};
      if (of.count > 0) {
        const auto count = static_cast<double>(of.count);
        row.each = {of.time.predicted / count, of.time.measured / count};
      }
      if (of.median > 0_s) row.spread = of.width / of.median;
      if (step.measured > 0_s) row.share_of_step = row.booked.measured / step.measured;
      if (error != 0_s) row.share_of_error = (row.booked.predicted - row.booked.measured) / error;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::map<Key, Sums> kinds_;
  std::map<Key, Sums> tasks_;
};

class Comparer {
 public:
  Comparer(const Program& program, const sim::Prediction& prediction,
           const Measurement& measurement, const Options& options)
      : options_(options),
        program_(program),
        prediction_(prediction),
        measurement_(measurement),
        lines_(timelines_of(program, prediction, measurement)) {}

  Comparison run() {
    Comparison out{.program = program_.name,
                   .cluster = prediction_.cluster,
                   .fingerprint = measurement_.fingerprint,
                   .backend = measurement_.backend,
                   .date = measurement_.date,
                   .mode = measurement_.mode,
                   .ranks = static_cast<std::int64_t>(lines_.ranks.size()),
                   .repeats = measurement_.repeats};
    const auto steps = measure::step_of(measurement_);
    out.step = {whole() ? prediction_.step : finish_of(0).predicted, steps.median};
    out.low = steps.low;
    out.high = steps.high;
    out.spread = steps.median > 0_s ? steps.spread() : 0;
    streams_.resize(program_.streams.size());
    for (std::size_t place = 0; place < lines_.ranks.size(); ++place)
      last_ = std::max(last_, finish_of(place).measured);
    for (std::size_t place = 0; place < lines_.ranks.size(); ++place) add(place, out);
    const auto ranks = static_cast<double>(lines_.ranks.size());
    out.kinds = accounts_.kinds(ranks, out.step);
    out.residuals = accounts_.residuals(ranks, out.step);
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s].predicted > 0_s || streams_[s].measured > 0_s)
        out.streams.push_back({program_.streams[s].name, mean(streams_[s])});
    }
    Overlap& overlap = out.overlap;
    for (Pair* pair : {&overlap.computing, &overlap.communicating, &overlap.hidden})
      *pair = mean(*pair);
    for (Pair& pair : overlap.exposed) pair = mean(pair);
    if (!whole()) out.slack = slack();
    out.remarks = measure::remarks_of(measurement_);
    if (measurement_.shared)
      out.remarks.push_back(
          "several ranks shared one device: the replay shows correctness, but its times mean "
          "nothing");
    for (std::string& remark : measure::remarks_on_clocks(measurement_))
      out.remarks.push_back(std::move(remark));
    if (!whole() && options_.turns)
      out.remarks.push_back(
          "a single rank carries out no communication: predicted kernels include the time in which "
          "communication held the device, measured ones do not");
    return out;
  }

 private:
  bool whole() const { return measurement_.mode == Mode::kWhole; }
  Pair mean(const Pair& sum) const {
    const auto ranks = static_cast<double>(lines_.ranks.size());
    return {sum.predicted / ranks, sum.measured / ranks};
  }

  const program::Instance& instance(const RankTimes& rank, std::size_t i) const {
    return lines_.expansions[rank.role].instances[i];
  }
  const program::Task& task(const RankTimes& rank, std::size_t i) const {
    return program::task_of(program_, program_.roles[rank.role], instance(rank, i));
  }

  // End of the rank's last instance.
  Pair finish_of(std::size_t place) const {
    Pair finish;
    for (const Times& times : lines_.ranks[place].predicted)
      finish.predicted = std::max(finish.predicted, times.finish);
    for (const Times& times : lines_.ranks[place].measured)
      finish.measured = std::max(finish.measured, times.finish);
    return finish;
  }

  void add(std::size_t place, Comparison& out) {
    const RankTimes& rank = lines_.ranks[place];
    const measure::RankRecord& record = measurement_.ranks[place];
    kernel_time_.clear();
    add_line(rank, rank.predicted, &Pair::predicted, out, out.step.predicted);
    // The measured time line ends with its last median; the rest of the step is "between medians".
    add_line(rank, rank.measured, &Pair::measured, out, last_);
    accounts_.book(Kind::kBetweenMedians, "between medians", {0_s, out.step.measured - last_});
    for (std::size_t i = 0; i < rank.predicted.size(); ++i) add_task(rank, record, i);

    const auto c =
        static_cast<std::size_t>(prediction_.class_of_rank[static_cast<std::size_t>(rank.rank)]);
    out.per_rank.push_back(
        {.rank = rank.rank,
         .finish = {prediction_.classes[c].finish, measure::quantile(record.steps, 0.5)},
         .predicted_peak = prediction_.classes[c].memory.peak,
         .measured_peak = record.peak_memory});
  }

  // Kind, name of the kind's row, name of the distinct task.
  using Names = std::tuple<Kind, std::string, std::string>;
  const Names& names(const RankTimes& rank, std::size_t i) {
    const program::Task& what = task(rank, i);
    if (named_rank_ != rank.rank) names_.clear();
    named_rank_ = rank.rank;
    const auto known = names_.find(&what);
    if (known != names_.end()) return known->second;
    return names_.emplace(&what, make_names(what, rank.rank)).first->second;
  }
  Names make_names(const program::Task& what, std::int32_t rank) const {
    if (const auto* kernel = std::get_if<Kernel>(&what.body))
      return {Kind::kKernel, kind_name(*kernel), describe(*kernel)};
    if (const auto* communication = std::get_if<Communication>(&what.body)) {
      const std::string name = name_of(program_, *communication, rank);
      return {Kind::kCommunication, name,
              name + " (" + std::string(program::name_of(communication->purpose)) + ")"};
    }
    return {Kind::kHost, "host", "host"};
  }

  void add_task(const RankTimes& rank, const measure::RankRecord& record, std::size_t i) {
    const auto& [kind, name, task_name] = names(rank, i);
    if (kind == Kind::kHost || (kind == Kind::kCommunication && !whole())) return;
    Pair time{rank.predicted[i].lasted, rank.measured[i].lasted};
    if (const auto left = kernel_time_.find(i); left != kernel_time_.end())
      time.predicted = left->second;
    for (Sums* sums : {&accounts_.of(kind, name), &accounts_.of_task(kind, task_name)}) {
      ++sums->count;
      sums->time.predicted += time.predicted;
      sums->time.measured += time.measured;
      sums->width += record.tasks[i].high - record.tasks[i].low;
      sums->median += record.tasks[i].median;
    }
  }

  // The intervals of a rank on one time line. `source` says, for each interval, which instance it
  // belongs to and whether it is the waiting for that instance.
  struct Source {
    std::size_t instance;
    bool waiting;
  };
  std::vector<Interval> intervals(const RankTimes& rank, const std::vector<Times>& times,
                                  std::vector<Source>& source, int communication) const {
    std::vector<Interval> out;
    const auto push = [&](Seconds begin, Seconds end, int priority, std::size_t i, bool waiting) {
      out.push_back({begin, end, priority});
      source.push_back({i, waiting});
    };
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto& body = task(rank, i).body;
      if (std::holds_alternative<Kernel>(body)) {
        push(times[i].begin, times[i].finish, kKernelPriority, i, false);
      } else if (std::holds_alternative<Communication>(body)) {
        if (whole()) push(times[i].begin, times[i].finish, communication, i, false);
        push(times[i].reached, whole() ? times[i].begin : times[i].finish, 3, i, true);
      } else {
        push(times[i].begin, times[i].finish, 4, i, false);
      }
    }
    return out;
  }

  void add_line(const RankTimes& rank, const std::vector<Times>& times, Seconds Pair::*side,
                Comparison& out, Seconds end) {
    std::vector<Source> source;
    const bool stands_still = options_.turns && side == &Pair::predicted;
    const auto parts =
        intervals(rank, times, source, stands_still ? kKernelPriority - 1 : kKernelPriority + 1);
    const Booking booking = book(parts, end);
    const auto add = [&](Kind kind, const std::string& name, const std::string& task_name,
                         Seconds time) {
      accounts_.of(kind, name).booked.*side += time;
      accounts_.of_task(kind, task_name).booked.*side += time;
    };
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const auto [i, waiting] = source[k];
      const Seconds time = booking.of_interval[k];
      if (waiting) {
        add(Kind::kWaiting, "waiting for other ranks", "waiting for other ranks", time);
        continue;
      }
      const auto& [kind, name, task_name] = names(rank, i);
      add(kind, name, task_name, time);
      if (kind == Kind::kKernel && stands_still) kernel_time_[i] = time;
      if (kind == Kind::kCommunication) {
        const auto purpose = std::get<Communication>(task(rank, i).body).purpose;
        out.overlap.exposed[static_cast<std::size_t>(purpose)].*side += time;
      }
    }
    add(Kind::kIdle, "idle", "idle", booking.nothing);
    add_overlap(parts, booking, stands_still, side, out, end);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const std::int32_t stream = instance(rank, source[k].instance).stream;
      if (source[k].waiting || stream < 0) continue;
      const bool less = stands_still && parts[k].priority == kKernelPriority;
      streams_[static_cast<std::size_t>(stream)].*side +=
          less ? booking.of_interval[k] : std::min(parts[k].end, end) - parts[k].begin;
    }
  }

  static void add_overlap(const std::vector<Interval>& parts, const Booking& booking,
                          bool stands_still, Seconds Pair::*side, Comparison& out, Seconds end) {
    std::vector<Interval> kernels, communications;
    Seconds left;  // kernel time without the pauses during communications
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k].priority > kKernelPriority + 1) continue;
      if (parts[k].priority == kKernelPriority) left += booking.of_interval[k];
      (parts[k].priority == kKernelPriority ? kernels : communications).push_back(parts[k]);
    }
    const auto covered = [&](const std::vector<Interval>& some) {
      return end - book(some, end).nothing;
    };
    const Seconds computing = stands_still ? left : covered(kernels);
    const Seconds communicating = covered(communications);
    kernels.insert(kernels.end(), communications.begin(), communications.end());
    out.overlap.computing.*side += computing;
    out.overlap.communicating.*side += communicating;
    out.overlap.hidden.*side += computing + communicating - covered(kernels);
  }

  Slack slack() const {
    Slack out;
    const RankTimes& rank = lines_.ranks.front();
    const auto& tasks = measurement_.ranks.front().tasks;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!std::holds_alternative<Communication>(task(rank, i).body)) continue;
      const Seconds one = tasks[i].slack;
      out.least = out.communications == 0 ? one : std::min(out.least, one);
      ++out.communications;
      if (one < 0_s) {
        ++out.late;
        out.waited += -one;
      }
    }
    return out;
  }

  const Options options_;
  const Program& program_;
  const sim::Prediction& prediction_;
  const Measurement& measurement_;
  Timelines lines_;
  Accounts accounts_;
  std::vector<Pair> streams_;
  std::map<const program::Task*, Names> names_;  // names of one rank's tasks; order is never used
  std::int32_t named_rank_ = -1;
  std::map<std::size_t, Seconds> kernel_time_;  // instance of one rank -> predicted time (turns)
  Seconds last_{};                              // latest median finish of all ranks
};

}  // namespace

std::optional<double> Pair::error() const {
  if (!(measured > 0_s)) return std::nullopt;
  return predicted / measured - 1;
}

Options options_for(const ClusterView& cluster) {
  return {.turns = std::ranges::all_of(cluster.device_types(), [](const DeviceType& type) {
            return type.multiprocessors.value == 1;
          })};
}

Result<Comparison> compare(const Program& program, const sim::Prediction& prediction,
                           const Measurement& measurement, const Options& options) {
  FORESHARD_TRY(misfit(program, prediction, measurement));
  return Comparer(program, prediction, measurement, options).run();
}

}  // namespace foreshard::compare
