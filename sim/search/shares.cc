// Unequal shares of the batch, for clusters with devices of several speeds. A "kind" below is a set
// of data-parallel ranks with one rate.
#include "sim/search/shares.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "sim/search/estimate.h"
#include "sim/search/family.h"
#include "sim/simulate/cost.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/layers.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/lower/exchanges.h"

namespace foreshard::search {
namespace {

// The shares of all ranks as one share for each group of neighbouring ranks. All groups have the
// same size: the largest with which the ranks within each group have equal shares.
std::vector<std::int64_t> in_groups(const std::vector<std::int64_t>& by_rank) {
  const std::size_t ranks = by_rank.size();
  const auto is_constant = [&](std::size_t width) {
    for (std::size_t i = 0; i < ranks; ++i)
      if (by_rank[i] != by_rank[i / width * width]) return false;
    return true;
  };
  std::size_t width = ranks;
  while (ranks % width != 0 || !is_constant(width)) --width;
  std::vector<std::int64_t> groups;
  for (std::size_t i = 0; i < ranks; i += width) groups.push_back(by_rank[i]);
  return groups;
}

// The data-parallel ranks of one rate, and the limits on their shares of micro-batches.
struct DeviceGroup {
  FlopsPerSecond rate;
  std::int64_t ranks = 0;
  double pace = 1;                  // time of a micro-batch, relative to the slowest kind
  std::int64_t most = 0;            // largest share of a rank: ranks of other kinds take 1 each
  std::int64_t limit = 0;           // micro-batches that a rank can end by the time tried
  std::int64_t least_behind = 0;    // micro-batches that all later kinds together must take
  std::int64_t limit_behind = 0;    // micro-batches that they can end by the time tried
  std::int64_t divisor_behind = 1;  // a common divisor of the numbers that they can take

  double end(std::int64_t micro_batches) const { return static_cast<double>(micro_batches) * pace; }
};

// The kinds, the slowest first. The share of the slowest rank is limited to less than an equal
// share of `all`: a division in which it takes more does not end sooner than equal shares.
std::vector<DeviceGroup> kinds_of(const std::vector<FlopsPerSecond>& rates, std::int64_t all) {
  std::map<FlopsPerSecond, std::int64_t> counts;
  for (const FlopsPerSecond rate : rates) ++counts[rate];
  std::vector<DeviceGroup> kinds;
  kinds.reserve(counts.size());
  for (const auto& [rate, ranks] : counts)
    kinds.push_back({.rate = rate,
                     .ranks = ranks,
                     .pace = counts.begin()->first / rate,
                     .most = (all - (std::ssize(rates) - ranks)) / ranks});
  kinds.front().most = std::min(kinds.front().most, (all - 1) / std::ssize(rates));
  return kinds;
}

// kind -> micro-batches of each rank of the kind.
using Division = std::vector<std::int64_t>;

// Finds the divisions of a batch in the order of their end times. End times are tried one after
// another, beginning with the time of shares proportional to the rates, before which no division
// can end. At each time, a kind's share is bounded by that time and by what later kinds need and
// can take.
class Divisions {
 public:
  explicit Divisions(std::vector<DeviceGroup> kinds) : kinds_(std::move(kinds)) {}

  // Up to kMostDivisionsTried divisions; among those with one end time, slower ranks take less in
  // the first ones.
  std::vector<Division> soonest(std::int64_t all) {
    double rate = 0;
    for (const DeviceGroup& kind : kinds_) rate += static_cast<double>(kind.ranks) / kind.pace;
    const double ideal = static_cast<double>(all) / rate;
    for (DeviceGroup& kind : kinds_)
      kind.limit =
          std::clamp(static_cast<std::int64_t>(ideal / kind.pace) - 1, std::int64_t{0}, kind.most);
    while (!is_full() && next_end()) add(0, all, false);
    return std::move(found_);
  }

 private:
  bool is_full() const { return found_.size() == kMostDivisionsTried; }

  // Raises the limits to the next time at which a micro-batch can end; returns false if there is
  // none.
  bool next_end() {
    end_ = std::numeric_limits<double>::infinity();
    for (const DeviceGroup& kind : kinds_)
      if (kind.limit < kind.most) end_ = std::min(end_, kind.end(kind.limit + 1));
    for (DeviceGroup& kind : kinds_)
      if (kind.limit < kind.most && kind.end(kind.limit + 1) <= end_) ++kind.limit;
    for (std::size_t i = kinds_.size() - 1; i > 0; --i) {
      const DeviceGroup& behind = kinds_[i];
      DeviceGroup& kind = kinds_[i - 1];
      kind.least_behind = behind.least_behind + behind.ranks;
      kind.limit_behind = behind.limit_behind + behind.ranks * behind.limit;
      kind.divisor_behind =
          i + 1 == kinds_.size() ? behind.ranks : std::gcd(behind.divisor_behind, behind.ranks);
    }
    return std::isfinite(end_);
  }

  // Adds the divisions that end exactly at end_, from kind `which` on. `left` is the number of
  // micro-batches that earlier kinds leave; `ends` says whether one of those kinds ends then.
  void add(std::size_t which, std::int64_t left, bool ends) {
    if (which == kinds_.size()) {
      if (ends) found_.push_back(division_);
      return;
    }
    const DeviceGroup& kind = kinds_[which];
    const std::int64_t own = left - kind.limit_behind;  // at least this many
    std::int64_t share = std::max<std::int64_t>(1, (own + kind.ranks - 1) / kind.ranks);
    for (; share <= kind.limit && !is_full(); ++share) {
      const std::int64_t rest = left - share * kind.ranks;
      if (rest < kind.least_behind) break;
      if (rest % kind.divisor_behind != 0) continue;
      division_.push_back(share);
      add(which + 1, rest, ends || kind.end(share) == end_);
      division_.pop_back();
    }
  }

  std::vector<DeviceGroup> kinds_;
  double end_ = 0;
  Division division_;
  std::vector<Division> found_;
};

// A divisor of every rank's number of micro-batches.
std::int64_t unit_of(const Strategy& strategy) {
  return strategy.schedule == "interleaved" ? strategy.pipeline_parallel : 1;
}

}  // namespace

std::vector<std::int64_t> even_shares(std::int64_t micro_batches, std::int64_t ranks,
                                      std::int64_t unit) {
  const std::int64_t units = micro_batches / unit;
  if (micro_batches % unit != 0 || units < ranks || units % ranks == 0) return {};
  std::vector<std::int64_t> by_rank(static_cast<std::size_t>(ranks), units / ranks * unit);
  std::for_each_n(by_rank.begin(), units % ranks, [&](std::int64_t& share) { share += unit; });
  return in_groups(by_rank);
}

std::vector<FlopsPerSecond> rates_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                     const DeviceSubset& place) {
  const Model& model = study.model;
  const Strategy alone = on_one_device(study.strategy);
  const auto kind_of_layer = layers_of(model, alone).of_layer;
  const sim::SimulatedCost cost(cluster, study.communication, lower::routing_of(model));
  const auto rate_of = [&](std::int32_t id) -> FlopsPerSecond {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    Estimator estimator(model, cluster, {id}, cost);
    const auto times = estimator.unit_times(alone);
    if (!times)
      return device.speed * peak_of(cluster.device_types()[device.type.index()],
                                    std::string(name_of(study.strategy.precision)));
    const std::vector<Seconds>& units = times->front();
    Seconds sum = units.front();
    for (const std::int32_t kind : kind_of_layer) sum += units[1 + static_cast<std::size_t>(kind)];
    return model_flops(model, 1) / sum;
  };
  std::map<std::tuple<std::int64_t, double, Seconds, double>, FlopsPerSecond> known;
  std::vector<FlopsPerSecond> rates;
  rates.reserve(place.pool.devices.size());
  for (const std::int32_t id : place.pool.devices) {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    const Host& host = cluster.host(device.node);
    const std::tuple kind{device.type.value(), device.speed, host.launch_time, host.speed};
    auto rate = known.find(kind);
    if (rate == known.end()) rate = known.emplace(kind, rate_of(id)).first;
    rates.push_back(rate->second);
  }
  return rates;
}

std::vector<FlopsPerSecond> rates_of_data_ranks(const Strategy& strategy,
                                                std::span<const FlopsPerSecond> rates) {
  const program::Program ranks{.mesh = mesh_of(strategy)};
  const Axis data = axis_of(ranks.mesh, "data");
  std::vector<FlopsPerSecond> slowest(static_cast<std::size_t>(strategy.data_parallel),
                                      std::ranges::max(rates));
  for (std::int32_t rank = 0; rank < ranks.ranks(); ++rank) {
    FlopsPerSecond& own =
        slowest[static_cast<std::size_t>(program::coordinate_of(ranks, rank, data))];
    own = std::min(own, rates[static_cast<std::size_t>(rank)]);
  }
  return slowest;
}

std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<FlopsPerSecond>& rates,
                                        std::int64_t devices, std::size_t most) {
  const std::int64_t all = strategy.global_batch / strategy.micro_batch;
  const std::vector<DeviceGroup> kinds = kinds_of(rates, all);
  if (kinds.size() < 2) return {};
  std::vector<Strategy> strategies;
  for (const Division& division : Divisions(kinds).soonest(all)) {
    if (strategies.size() == most) break;
    std::vector<std::int64_t> by_rank;
    by_rank.reserve(rates.size());
    for (const FlopsPerSecond rate : rates) {
      const auto kind = std::ranges::find(kinds, rate, &DeviceGroup::rate) - kinds.begin();
      by_rank.push_back(division[static_cast<std::size_t>(kind)]);
    }
    Strategy one = strategy;
    one.batch_shares = in_groups(by_rank);
    if (faults_in(one, model, devices).empty()) strategies.push_back(std::move(one));
  }
  return strategies;
}

std::optional<Strategy> with_soonest_shares(const Strategy& strategy, const Model& model,
                                            const std::vector<FlopsPerSecond>& rates,
                                            std::int64_t devices) {
  const std::int64_t unit = unit_of(strategy);
  const std::int64_t all = strategy.global_batch / strategy.micro_batch;
  std::int64_t left = all / unit - std::ssize(rates);
  if (std::ranges::min(rates) == std::ranges::max(rates) || all % unit != 0 || left < 0)
    return std::nullopt;
  std::vector<std::int64_t> units(rates.size(), 1);
  using Next = std::pair<double, std::size_t>;  // when a rank would end one more unit; the rank
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  const auto offer = [&](std::size_t rank) {
    next.emplace(static_cast<double>(units[rank] + 1) / rates[rank].in_base(), rank);
  };
  for (std::size_t rank = 0; rank < rates.size(); ++rank) offer(rank);
  for (; left > 0; --left) {
    const std::size_t rank = next.top().second;
    next.pop();
    ++units[rank];
    offer(rank);
  }
  for (std::int64_t& share : units) share *= unit;
  Strategy one = strategy;
  one.batch_shares = in_groups(units);
  if (!faults_in(one, model, devices).empty()) return std::nullopt;
  return one;
}

double end_of_shares(const Strategy& strategy, const std::vector<FlopsPerSecond>& rates) {
  const FlopsPerSecond slowest = std::ranges::min(rates);
  const double filling = static_cast<double>(strategy.pipeline_parallel - 1) /
                         static_cast<double>(strategy.virtual_stages);
  double end = 0;
  for (std::size_t rank = 0; rank < rates.size(); ++rank) {
    const std::int64_t share = strategy.batch_shares.empty()
                                   ? strategy.micro_batches()
                                   : strategy.batch_share_of(static_cast<std::int64_t>(rank));
    end = std::max(end, (static_cast<double>(share) + filling) * (slowest / rates[rank]));
  }
  return end;
}

}  // namespace foreshard::search
