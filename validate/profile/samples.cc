// Makes samples, host times and held-out predictions of matched traces (samples.h), for `foreshard
// calibrate --profile`. Times are seconds.
#include "validate/profile/samples.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "base/quantity.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"

namespace foreshard::profile {
namespace {

using program::CollectiveKind;

// Identity of a collective: collectives with the same key share a sample.
struct CollectiveKey {
  CollectiveKind kind{};
  std::vector<std::int32_t> ranks;
  double bytes = 0;
  std::int32_t root = -1;
  std::optional<program::TokenRouting> routing{};
  auto operator<=>(const CollectiveKey&) const = default;
};

// \return nothing if the task is not a collective between ranks, or is an exchange.
std::optional<CollectiveKey> key_of(const program::Program& program, const program::Task& task,
                                    std::int32_t rank) {
  const auto* what = std::get_if<program::Communication>(&task.body);
  if (what == nullptr || program::is_with_host(what->kind) ||
      what->kind == CollectiveKind::kExchange)
    return std::nullopt;
  CollectiveKey key{.kind = what->kind,
                    .ranks = program::members_of(program, what->group, rank),
                    .bytes = what->bytes.in_base(),
                    .routing = what->routing};
  if (what->kind == CollectiveKind::kSend || what->kind == CollectiveKind::kReceive) {
    const auto peer = program::peer_of(program, what->group, rank);
    if (!peer) return std::nullopt;
    key.ranks =
        what->kind == CollectiveKind::kSend ? std::vector{rank, *peer} : std::vector{*peer, rank};
    key.kind = CollectiveKind::kSend;
  }
  if (key.ranks.size() < 2) return std::nullopt;
  for (const std::int32_t root : what->roots)
    if (std::ranges::find(key.ranks, root) != key.ranks.end()) key.root = root;
  return key;
}

std::string text_of(const CollectiveKey& key) {
  return fmt::format("{} of {} over {} ranks", program::name_of_operation(key.kind),
                     format(Bytes::from_base(key.bytes)), key.ranks.size());
}

struct Instances {
  std::optional<Kernel> kernel;
  std::optional<CollectiveKey> collective;
  std::vector<Seconds> times;
  Seconds expected;
};

// Description of the kernel or collective -> its instances.
std::map<std::string, Instances> instances_of(const program::Program& program,
                                              const std::vector<ProfiledRank>& ranks) {
  std::map<std::string, Instances> all;
  // {collective and its first rank, how many came before} -> shortest measured time, expected time.
  std::map<std::pair<std::string, std::int64_t>, std::pair<Seconds, Seconds>> shortest;
  std::map<std::string, CollectiveKey> keys;
  for (const ProfiledRank& one : ranks) {
    std::map<std::string, std::int64_t> before;
    for (const ProfiledTask& task : one.match.tasks) {
      if (const auto* kernel = std::get_if<Kernel>(&task.task->body)) {
        if (!(task.measured > 0_s)) continue;
        Instances& known = all[describe(*kernel)];
        known.kernel = *kernel;
        known.times.push_back(task.measured);
        known.expected = task.expected;
        continue;
      }
      const auto key = key_of(program, *task.task, one.rank);
      if (!key) continue;
      const std::string text = text_of(*key);
      // Members of the same group share an instance; others have their own.
      const std::string group = fmt::format("{} {}", text, key->ranks.front());
      const std::int64_t n = before[group]++;
      if (!(task.measured > 0_s)) continue;
      keys.emplace(text, *key);
      const auto [found, added] =
          shortest.try_emplace({group, n}, std::pair(task.measured, task.expected));
      if (!added) found->second.first = std::min(found->second.first, task.measured);
    }
  }
  for (const auto& [place, time] : shortest) {
    const std::string text = place.first.substr(0, place.first.rfind(' '));
    Instances& known = all[text];
    known.collective = keys.at(text);
    known.times.push_back(time.first);
    known.expected = time.second;
  }
  return all;
}

// First quartile; with fewer than five times, the least.
Seconds fast_quarter(std::vector<Seconds> times) {
  std::ranges::sort(times);
  return times[(times.size() - 1) / 4];
}

Seconds middle(std::vector<Seconds> times) {
  std::ranges::sort(times);
  return times.size() % 2 == 1 ? times[times.size() / 2]
                               : 0.5 * (times[times.size() / 2 - 1] + times[times.size() / 2]);
}

}  // namespace

calibrate::Samples samples_of(const program::Program& program,
                              const std::vector<ProfiledRank>& ranks) {
  calibrate::Samples samples;
  for (auto& [text, of] : instances_of(program, ranks)) {
    calibrate::Spread time = calibrate::spread_of(of.times);
    if (of.kernel) {
      samples.kernels.push_back({.kernel = *of.kernel, .provider = "profile", .time = time});
      continue;
    }
    time.median = fast_quarter(of.times);
    time.low = std::ranges::min(of.times);
    time.high = std::max(time.high, time.median);
    samples.collectives.push_back({.kind = of.collective->kind,
                                   .ranks = of.collective->ranks,
                                   .bytes = Bytes::from_base(of.collective->bytes),
                                   .root = of.collective->root,
                                   .routing = of.collective->routing,
                                   .time = time});
  }
  return samples;
}

std::vector<std::string> add_collectives(calibrate::Samples& samples,
                                         const program::Program& program,
                                         const std::vector<InspectedCollective>& collectives) {
  std::map<std::int64_t, std::vector<std::int32_t>> group_of;  // number of ranks -> a group
  std::map<std::pair<std::int64_t, CollectiveKind>, std::vector<std::int32_t>> same_of;
  for (const program::Role& role : program.roles) {
    for (const program::Call& call : role.calls) {
      for (const program::Task& task : program.blocks[call.block.index()].tasks) {
        const auto key = key_of(program, task, role.ranks.front());
        if (!key) continue;
        group_of.try_emplace(std::ssize(key->ranks), key->ranks);
        same_of.try_emplace({std::ssize(key->ranks), key->kind}, key->ranks);
      }
    }
  }
  std::map<CollectiveKey, std::vector<Seconds>> times;
  std::map<std::string, std::int64_t> left_out;
  for (const InspectedCollective& one : collectives) {
    const auto same = same_of.find({one.ranks, one.kind});
    const auto any = group_of.find(one.ranks);
    if (any == group_of.end()) {
      ++left_out[fmt::format("{} over {} ranks: no group of the study has so many",
                             program::name_of_operation(one.kind), one.ranks)];
      continue;
    }
    CollectiveKey key{.kind = one.kind,
                      .ranks = same == same_of.end() ? any->second : same->second,
                      .bytes = one.bytes.in_base()};
    if (one.kind == CollectiveKind::kBroadcast) key.root = key.ranks.front();
    times[std::move(key)].push_back(one.time);
  }
  for (const auto& [key, of] : times) {
    calibrate::Spread time = calibrate::spread_of(of);
    time.median = fast_quarter(of);
    time.low = std::ranges::min(of);
    samples.collectives.push_back({.kind = key.kind,
                                   .ranks = key.ranks,
                                   .bytes = Bytes::from_base(key.bytes),
                                   .root = key.root,
                                   .time = time});
  }
  std::vector<std::string> words;
  words.reserve(left_out.size());
  for (const auto& [what, count] : left_out) words.push_back(fmt::format("{} x {}", count, what));
  return words;
}

study::MeasuredTimes measured_times(const calibrate::Samples& samples, const std::string& source) {
  study::MeasuredTimes times;
  for (const calibrate::KernelSample& sample : samples.kernels)
    times.rows.push_back({.kernel = MeasuredKernel{.kernel = describe(sample.kernel),
                                                   .time = sample.time.median,
                                                   .low = sample.time.low,
                                                   .high = sample.time.high,
                                                   .burst = false,
                                                   .source = source}});
  for (const calibrate::CollectiveSample& sample : samples.collectives)
    times.rows.push_back({.collective = comm::MeasuredCollective{
                              .operation = std::string(program::name_of(sample.kind)),
                              .bytes = sample.bytes,
                              .ranks = std::ssize(sample.ranks),
                              .time = sample.time.median}});
  return times;
}

namespace {

// Adds the durations of launching calls and the intervals between them. Launches of all threads
// count as one sequence: while one thread runs a backward pass, the thread that called it only
// waits. No interval begins at a call that waits or lasts so long that the launch queue must have
// been full.
void add_host_times(const Trace& trace, std::vector<Seconds>& calls,
                    std::vector<Seconds>& intervals) {
  constexpr double kFullQueue = 10;  // times the median call
  std::set<Seconds> launched;
  for (const TracedKernel& kernel : trace.kernels)
    if (kernel.launched < kernel.start) launched.insert(kernel.launched);
  std::vector<const HostCall*> in_order;
  std::vector<Seconds> lasted;
  for (const HostCall& call : trace.calls) {
    const bool launches = !call.waits && launched.contains(call.start);
    if (launches || call.waits) in_order.push_back(&call);
    if (launches) lasted.push_back(call.lasted);
  }
  if (lasted.empty()) return;
  std::ranges::stable_sort(in_order, {}, &HostCall::start);
  const Seconds usual = middle(lasted);
  const HostCall* last = nullptr;
  for (const HostCall* call : in_order) {
    if (!call->waits) {
      calls.push_back(call->lasted);
      if (last != nullptr) intervals.push_back(call->start - last->start);
    }
    last = call->waits || call->lasted > kFullQueue * usual ? nullptr : call;
  }
}

}  // namespace

std::optional<HostNumbers> host_numbers(const std::vector<ProfiledRank>& ranks) {
  std::vector<Seconds> calls;
  std::vector<Seconds> intervals;
  std::int64_t tasks = 0;
  for (const ProfiledRank& one : ranks) {
    add_host_times(one.trace, calls, intervals);
    for (const ProfiledTask& task : one.match.tasks) tasks += task.kernels > 0 ? 1 : 0;
  }
  if (intervals.empty() || tasks == 0) return std::nullopt;
  Seconds all{};
  for (const Seconds interval : intervals) all += interval;
  const Seconds mean = all / static_cast<double>(intervals.size());
  return HostNumbers{
      .launches = std::ssize(calls),
      .call = calibrate::spread_of(calls),
      .interval = calibrate::spread_of(intervals),
      .mean_interval = mean,
      .per_task = (static_cast<double>(calls.size()) / static_cast<double>(tasks)) * mean};
}

HeldOutLayers held_out_layers(const program::Program& program,
                              const std::vector<ProfiledRank>& ranks) {
  HeldOutLayers result;
  // Layers are recognised by blocks that occur with several layer numbers.
  std::map<std::int32_t, std::set<std::int32_t>> layers_of_block;
  for (const ProfiledRank& one : ranks)
    for (const ProfiledTask& task : one.match.tasks) layers_of_block[task.block].insert(task.layer);
  std::set<std::int32_t> layers;
  for (const auto& entry : layers_of_block)
    if (entry.second.size() > 1) layers.insert(entry.second.begin(), entry.second.end());
  if (layers.size() < 2) return result;
  result.layers = std::ssize(layers);
  std::map<std::int32_t, std::size_t> half_of;
  for (const std::int32_t layer : layers) half_of.emplace(layer, half_of.size() % 2);

  struct Halves {
    std::array<std::vector<Seconds>, 2> times;
    Seconds expected;
  };
  std::map<std::string, Halves> all;
  for (const ProfiledRank& one : ranks) {
    for (const ProfiledTask& task : one.match.tasks) {
      if (!(task.measured > 0_s) || layers_of_block.at(task.block).size() < 2) continue;
      const auto* kernel = std::get_if<Kernel>(&task.task->body);
      const auto key = key_of(program, *task.task, one.rank);
      // A task that neither describes goes by its name in the block.
      const std::string what = kernel != nullptr ? describe(*kernel)
                               : key             ? text_of(*key)
                                                 : task.task->name;
      Halves& halves = all[what];
      halves.times[half_of.at(task.layer)].push_back(task.measured);
      halves.expected = task.expected;
    }
  }
  for (const auto& [what, halves] : all) {
    for (const std::size_t half : {0U, 1U}) {
      const auto& own = halves.times[half];
      const auto& others = halves.times[1 - half];
      for (const Seconds time : own) result.measured[half] += time;
      result.predicted[half] +=
          static_cast<double>(own.size()) * (others.empty() ? halves.expected : middle(others));
    }
  }
  return result;
}

std::vector<Compared> compared(const program::Program& program,
                               const std::vector<ProfiledRank>& ranks) {
  std::vector<Compared> result;
  for (const auto& [what, of] : instances_of(program, ranks))
    result.push_back({.what = what,
                      .count = std::ssize(of.times),
                      .measured = middle(of.times),
                      .expected = of.expected});
  const auto all = [](const Compared& one) {
    return static_cast<double>(one.count) * one.measured;
  };
  std::ranges::stable_sort(result,
                           [&](const Compared& a, const Compared& b) { return all(b) < all(a); });
  return result;
}

}  // namespace foreshard::profile
