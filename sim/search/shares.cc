#include "sim/search/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/ir/group.h"

namespace foreshard::search {
namespace {

// One entry for each group of as many neighbours as have the same.
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

// Data-parallel ranks of one rate.
struct Kind {
  FlopsPerSecond rate;
  std::int64_t ranks = 0;
  double pace = 1;         // time of a micro-batch, in those of the slowest kind
  std::int64_t most = 0;   // micro-batches of a rank, where the others take one each
  std::int64_t limit = 0;  // that a rank has taken by a given end
  // Of all kinds behind this one together: what they take at least and by that end, and what
  // divides all that they can take.
  std::int64_t least_behind = 0;
  std::int64_t limit_behind = 0;
  std::int64_t divisor_behind = 1;

  double end(std::int64_t micro_batches) const { return static_cast<double>(micro_batches) * pace; }
};

// The slowest first. `share`: what each rank would take of equal shares. Where the slowest take no
// less, none ends sooner than with those.
std::vector<Kind> kinds_of(const std::vector<FlopsPerSecond>& rates, std::int64_t share) {
  std::map<FlopsPerSecond, std::int64_t> counts;
  for (const FlopsPerSecond rate : rates) ++counts[rate];
  std::vector<Kind> kinds;
  kinds.reserve(counts.size());
  const std::int64_t all = share * std::ssize(rates);
  for (const auto& [rate, ranks] : counts)
    kinds.push_back({.rate = rate,
                     .ranks = ranks,
                     .pace = counts.begin()->first / rate,
                     .most = (all - (std::ssize(rates) - ranks)) / ranks});
  kinds.front().most = std::min(kinds.front().most, share - 1);
  return kinds;
}

// Micro-batches of a rank of each kind.
using Division = std::vector<std::int64_t>;

// The divisions of a batch in the order of their ends. One end after another is looked at, from
// that of shares in proportion to the rates on, which none precedes; at each, what a kind takes is
// bounded by that end and by what it leaves to the kinds behind it.
class Divisions {
 public:
  explicit Divisions(std::vector<Kind> kinds) : kinds_(std::move(kinds)) {}

  // As many as kMostDivisionsTried; of one end those first in which slower ranks take less.
  std::vector<Division> soonest(std::int64_t all) {
    double rate = 0;
    for (const Kind& kind : kinds_) rate += static_cast<double>(kind.ranks) / kind.pace;
    const double ideal = static_cast<double>(all) / rate;
    for (Kind& kind : kinds_)
      kind.limit =
          std::clamp(static_cast<std::int64_t>(ideal / kind.pace) - 1, std::int64_t{0}, kind.most);
    while (!is_full() && next_end()) add(0, all, false);
    return std::move(found_);
  }

 private:
  bool is_full() const { return found_.size() == kMostDivisionsTried; }

  // Raises the limits to the next end of a micro-batch; false: there is none.
  bool next_end() {
    end_ = std::numeric_limits<double>::infinity();
    for (const Kind& kind : kinds_)
      if (kind.limit < kind.most) end_ = std::min(end_, kind.end(kind.limit + 1));
    for (Kind& kind : kinds_)
      if (kind.limit < kind.most && kind.end(kind.limit + 1) <= end_) ++kind.limit;
    for (std::size_t i = kinds_.size() - 1; i > 0; --i) {
      const Kind& behind = kinds_[i];
      Kind& kind = kinds_[i - 1];
      kind.least_behind = behind.least_behind + behind.ranks;
      kind.limit_behind = behind.limit_behind + behind.ranks * behind.limit;
      kind.divisor_behind =
          i + 1 == kinds_.size() ? behind.ranks : std::gcd(behind.divisor_behind, behind.ranks);
    }
    return std::isfinite(end_);
  }

  // Those that end just then, of what the kinds before have left; `ends`: one of these ends then.
  void add(std::size_t which, std::int64_t left, bool ends) {
    if (which == kinds_.size()) {
      if (ends) found_.push_back(division_);
      return;
    }
    const Kind& kind = kinds_[which];
    const std::int64_t own = left - kind.limit_behind;  // at least
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

  std::vector<Kind> kinds_;
  double end_ = 0;
  Division division_;
  std::vector<Division> found_;
};

}  // namespace

std::vector<FlopsPerSecond> rates_of(const Place& place, const ClusterView& cluster, DType dtype) {
  std::vector<FlopsPerSecond> peaks;  // by type of device
  peaks.reserve(cluster.device_types().size());
  for (const DeviceType& type : cluster.device_types())
    peaks.push_back(peak_of(type, std::string(name_of(dtype))));
  std::vector<FlopsPerSecond> rates;
  rates.reserve(place.pool.devices.size());
  for (const std::int32_t id : place.pool.devices) {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    rates.push_back(device.speed * peaks[device.type.index()]);
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
  const std::vector<Kind> kinds = kinds_of(rates, strategy.micro_batches());
  if (kinds.size() < 2) return {};
  const std::int64_t all = strategy.global_batch / strategy.micro_batch;
  std::vector<Strategy> strategies;
  for (const Division& division : Divisions(kinds).soonest(all)) {
    if (strategies.size() == most) break;
    std::vector<std::int64_t> by_rank;
    by_rank.reserve(rates.size());
    for (const FlopsPerSecond rate : rates) {
      const auto kind = std::ranges::find(kinds, rate, &Kind::rate) - kinds.begin();
      by_rank.push_back(division[static_cast<std::size_t>(kind)]);
    }
    Strategy one = strategy;
    one.batch_shares = in_groups(by_rank);
    if (faults_in(one, model, devices).empty()) strategies.push_back(std::move(one));
  }
  return strategies;
}

}  // namespace foreshard::search
