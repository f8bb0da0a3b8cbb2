#include "validate/calibrate/samples.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>

#include "base/quantity.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"
#include "validate/measurement/measurement.h"

namespace foreshard::calibrate {
namespace {

using measure::RankRecord;
using program::CollectiveKind;
using program::Communication;
using program::Program;

constexpr double kOutlierDeviations = 5;
constexpr double kOutlierShare = 0.1;
constexpr double kNotch = 1.57;
constexpr std::size_t kMostNamed = 20;

struct Limits {
  Seconds median;
  Seconds off;  // a time farther from the median is an outlier
};
Limits limits_of(const std::vector<Seconds>& times) {
  const Seconds median = measure::quantile(times, 0.5);
  std::vector<Seconds> deviations;
  deviations.reserve(times.size());
  for (const Seconds time : times)
    deviations.push_back(time < median ? median - time : time - median);
  const Seconds deviation = kOutlierDeviations * kNormalMad * measure::quantile(deviations, 0.5);
  return {median, std::max(deviation, kOutlierShare * median)};
}
bool is_outlier(Seconds time, const Limits& limits) {
  return time > limits.median + limits.off || time < limits.median - limits.off;
}

// The mean of a skewed distribution from its percentiles (Swanson's rule).
Seconds mean_of(const measure::TaskTimes& times) {
  return 0.3 * times.low + 0.4 * times.median + 0.3 * times.high;
}

// One time of something, and where it was seen.
struct Seen {
  Seconds time;
  std::string where;
};

// Statistics over all instances; adds their outliers to `named`.
Spread gathered(const std::string& what, const std::vector<Seen>& seen,
                std::vector<std::string>& named) {
  std::vector<Seconds> times;
  times.reserve(seen.size());
  for (const Seen& one : seen) times.push_back(one.time);
  const Limits limits = limits_of(times);
  for (const Seen& one : seen)
    if (is_outlier(one.time, limits))
      named.push_back(fmt::format("{} {}: {}, where {} is usual", what, one.where, format(one.time),
                                  format(limits.median)));
  return spread_of(std::move(times));
}

// All instances of one kernel.
struct Instances {
  Kernel kernel;
  std::string provider;
  std::vector<Seen> seen;
};

struct CollectiveKey {
  CollectiveKind kind;
  std::vector<std::int32_t> ranks;
  double bytes;
  std::int32_t root;
  std::vector<program::Transfer> transfers;
  std::optional<program::TokenRouting> routing;
  auto operator<=>(const CollectiveKey&) const = default;
};

class Gatherer {
 public:
  Status add(const MeasuredRun& run) {
    FORESHARD_TRY(mismatch(run));
    const Program& program = run.program;
    const program::Expander expander(program);
    std::vector<std::size_t> role_of(static_cast<std::size_t>(program.ranks()));
    for (std::size_t r = 0; r < program.roles.size(); ++r)
      for (const std::int32_t rank : program.roles[r].ranks)
        role_of[static_cast<std::size_t>(rank)] = r;
    std::map<Operation, std::vector<Member>> operations;
    for (const RankRecord& record : run.measurement.ranks) {
      const auto role = role_of[static_cast<std::size_t>(record.rank)];
      const program::Expansion expansion = expander.expand(role);
      if (expansion.instances.size() != record.tasks.size())
        return Error{
            Error::Code::kInvalidInput,
            fmt::format("measurement of '{}': rank {} has {} tasks, its Program {}", program.name,
                        record.rank, record.tasks.size(), expansion.instances.size())};
      FORESHARD_TRY(add_rank(run, program.roles[role], expansion, record, operations));
    }
    if (run.measurement.mode == measure::Mode::kWhole) add_operations(operations);
    return {};
  }

  Samples samples() {
    Samples result;
    for (const auto& [text, of] : kernels_)
      result.kernels.push_back({.kernel = of.kernel,
                                .provider = of.provider,
                                .time = gathered(text, of.seen, result.outliers)});
    for (const auto& [key, seen] : collectives_) {
      const std::string what =
          fmt::format("{} of {} over {} ranks", program::name_of_operation(key.kind),
                      format(Bytes::from_base(key.bytes)), key.ranks.size());
      result.collectives.push_back({.kind = key.kind,
                                    .ranks = key.ranks,
                                    .bytes = Bytes::from_base(key.bytes),
                                    .root = key.root,
                                    .transfers = key.transfers,
                                    .routing = key.routing,
                                    .time = gathered(what, seen, result.outliers)});
    }
    result.overlapped = overlapped_;
    if (result.outliers.size() > kMostNamed) {
      const std::size_t more = result.outliers.size() - kMostNamed;
      result.outliers.resize(kMostNamed);
      result.outliers.push_back(fmt::format("and {} more", more));
    }
    return result;
  }

 private:
  // Identity of one operation across its members: members, tag, and how many came before.
  using Operation = std::tuple<std::vector<std::int32_t>, std::string, std::int64_t>;
  struct Member {
    measure::TaskTimes times;
    bool computes = false;  // while the operation runs
    const Communication* what = nullptr;
  };

  static Status mismatch(const MeasuredRun& run) {
    const auto fault = [&](const std::string& why) {
      return Error{Error::Code::kInvalidInput,
                   fmt::format("measurement of '{}': {}", run.measurement.program, why)};
    };
    const std::string own = measure::fingerprint_of(run.program);
    if (own != run.measurement.fingerprint)
      return fault(
          fmt::format("it measures another Program: its fingerprint is {}, that of '{}' is {}",
                      run.measurement.fingerprint, run.program.name, own));
    if (run.measurement.shared)
      return fault(
          "its ranks shared a device, so none of its times counts; measure with a device for each");
    for (const RankRecord& record : run.measurement.ranks)
      if (record.rank < 0 || record.rank >= run.program.ranks())
        return fault(fmt::format("the Program has no rank {}, only {} ranks", record.rank,
                                 run.program.ranks()));
    return {};
  }

  Status add_rank(const MeasuredRun& run, const program::Role& role,
                  const program::Expansion& expansion, const RankRecord& record,
                  std::map<Operation, std::vector<Member>>& operations) {
    const Program& program = run.program;
    std::vector<std::pair<Seconds, Seconds>> busy;  // the rank's kernels, by start
    for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
      const auto& task = program::task_of(program, role, expansion.instances[i]);
      const measure::TaskTimes& times = record.tasks[i];
      if (times.finish < times.start)
        return Error{Error::Code::kInvalidInput,
                     fmt::format("measurement of '{}': task {} of rank {} ends before it starts",
                                 program.name, i, record.rank)};
      const auto* kernel = std::get_if<Kernel>(&task.body);
      if (kernel == nullptr) continue;
      busy.emplace_back(times.start, times.finish);
      const std::string& provider = run.measurement.providers.of(*kernel);
      auto& known = kernels_
                        .try_emplace(foreshard::describe(*kernel),
                                     Instances{.kernel = *kernel, .provider = provider, .seen = {}})
                        .first->second;
      if (known.provider != provider)
        return Error{Error::Code::kInvalidInput,
                     fmt::format("'{}' was measured of {} and of {}; give the measurements of one "
                                 "of them",
                                 foreshard::describe(*kernel), known.provider, provider)};
      known.seen.push_back({mean_of(times), fmt::format("as task {} of rank {}", i, record.rank)});
    }
    std::ranges::sort(busy);
    std::map<std::pair<std::vector<std::int32_t>, std::string>, std::int64_t> before;
    for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
      const auto& task = program::task_of(program, role, expansion.instances[i]);
      const auto* what = std::get_if<Communication>(&task.body);
      if (what == nullptr) continue;
      const measure::TaskTimes& times = record.tasks[i];
      auto ranks = program::members_of(program, what->group, record.rank);
      if (what->kind == CollectiveKind::kReceive || what->kind == CollectiveKind::kSend) {
        const bool sends = what->kind == CollectiveKind::kSend;
        const std::int32_t peer = *program::peer_of(program, what->group, record.rank);
        ranks = sends ? std::vector{record.rank, peer} : std::vector{peer, record.rank};
      }
      const std::int64_t n = before[{ranks, program::tag_of(task)}]++;
      operations[{ranks, program::tag_of(task), n}].push_back(
          {.times = times, .computes = overlaps(busy, times.start, times.finish), .what = what});
    }
    return {};
  }

  // Whether a kernel runs between `from` and `to`; an overlap below 1 % may be rounding.
  static bool overlaps(const std::vector<std::pair<Seconds, Seconds>>& busy, Seconds from,
                       Seconds to) {
    const Seconds slack = 0.01 * (to - from);
    // Kernels run one after another, so those that end after `from` follow each other.
    auto kernel = std::ranges::partition_point(
        busy, [&](const auto& one) { return one.second <= from + slack; });
    return kernel != busy.end() && kernel->first < to - slack;
  }

  // From the last member's arrival to the last one's finish.
  static Seconds lasting(const std::vector<Member>& members) {
    const auto& last =
        std::ranges::max(members, {}, [](const Member& one) { return one.times.start; }).times;
    if (last.lasted) return *last.lasted;
    Seconds finish = last.finish;
    for (const Member& member : members) finish = std::max(finish, member.times.finish);
    return last.median + (finish - last.finish);
  }

  void add_operations(const std::map<Operation, std::vector<Member>>& operations) {
    for (const auto& [operation, members] : operations) {
      const auto& ranks = std::get<0>(operation);
      if (members.size() != ranks.size() || ranks.size() < 2) continue;
      if (std::ranges::any_of(members, &Member::computes)) {
        ++overlapped_;
        continue;
      }
      const Seconds time = lasting(members);
      const Communication& what = *members.front().what;
      CollectiveKey key{.kind = what.kind,
                        .ranks = ranks,
                        .bytes = what.bytes.in_base(),
                        .root = -1,
                        .transfers = {},
                        .routing = what.routing};
      if (key.kind == CollectiveKind::kReceive) key.kind = CollectiveKind::kSend;
      for (const std::int32_t root : what.roots)
        if (std::ranges::find(ranks, root) != ranks.end()) key.root = root;
      if (what.kind == CollectiveKind::kExchange) {
        key.bytes = 0;
        for (const program::Transfer& one : what.transfers)
          if (std::ranges::find(ranks, one.from) != ranks.end()) {
            key.transfers.push_back(one);
            key.bytes += one.bytes.in_base();
          }
      }
      collectives_[std::move(key)].push_back(
          {time, fmt::format("('{}', n. {})", std::get<1>(operation), std::get<2>(operation))});
    }
  }

  std::map<std::string, Instances> kernels_;
  std::map<CollectiveKey, std::vector<Seen>> collectives_;
  std::int64_t overlapped_ = 0;
};

}  // namespace

Spread spread_of(std::vector<Seconds> times) {
  const Limits limits = limits_of(times);
  const auto all = static_cast<std::int64_t>(times.size());
  std::erase_if(times, [&](Seconds time) { return is_outlier(time, limits); });
  const auto count = static_cast<std::int64_t>(times.size());
  const Seconds median = measure::quantile(times, 0.5);
  const Seconds notch = (kNotch / std::sqrt(static_cast<double>(count))) *
                        (measure::quantile(times, 0.75) - measure::quantile(times, 0.25));
  return {.median = median,
          .low = std::max(median - notch, std::ranges::min(times)),
          .high = median + notch,
          .count = count,
          .outliers = all - count};
}

Result<Samples> samples_of(const std::vector<MeasuredRun>& runs) {
  Gatherer gatherer;
  for (const MeasuredRun& run : runs) FORESHARD_TRY(gatherer.add(run));
  return gatherer.samples();
}

}  // namespace foreshard::calibrate
