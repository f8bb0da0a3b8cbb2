// Decides which candidates are simulated, and when a search is certain of its winner (race.h), for
// search.cc.
#include "sim/search/internal/race.h"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.h"

#include "sim/search/internal/candidates.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/internal/subset_ranking.h"
#include "strategies/parallelism/state_sharding.h"

namespace foreshard::search {
namespace {

Bytes missing(const Estimate& estimate) {
  return estimate.peak - estimate.memory;
}
// Number of passes of one direction: every micro-batch through every piece of the pipeline.
std::int64_t passes_of(const Strategy& strategy) {
  return strategy.stages() * strategy.micro_batches();
}
// A simulation with this many passes takes some seconds.
constexpr std::int64_t kMostPassesOfFront = 50'000;

// Three measures, the less the better. One beats another if it is no worse in all and better in
// one.
struct Objectives {
  double time = 0;
  double memory = 0;
  double money = 0;
  bool beats(const Objectives& other) const {
    return time <= other.time && memory <= other.memory && money <= other.money &&
           (time < other.time || memory < other.memory || money < other.money);
  }
};

// Chooses the candidates to simulate next, and holds the results so far.
class Race {
 public:
  Race(const study::LoadedStudy& study, const ClusterView& cluster, const SearchOptions& options,
       const std::vector<Candidate>& candidates, const Unlisted& unlisted, const Deadline& deadline,
       Simulations& simulations, SearchResult& result, bool is_last)
      : study_(study),
        cluster_(cluster),
        options_(options),
        candidates_(candidates),
        unlisted_(unlisted),
        deadline_(deadline),
        simulations_(simulations),
        result_(result),
        is_last_(is_last),
        waiting_(candidates.size()) {
    std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
    begin_with_known();
  }

  void run() {
    try {
      simulate_all();
    } catch (...) {  // what is simulated by now may become the answer
      judge();
      throw;
    }
  }

  std::vector<Seconds> bounds_of_waiting() const {
    std::vector<Seconds> bounds;
    bounds.reserve(waiting_.size());
    for (const std::size_t i : waiting_) bounds.push_back(candidates_[i].estimate.bound);
    return bounds;
  }

 private:
  void simulate_all() {
    if (deadline_.is_over()) return simulate_one();
    // Rounds have a fixed size, so that the simulated candidates do not depend on the number of
    // threads.
    const auto rounds = [&](std::int64_t all, std::int64_t of, auto next) {
      while (all > 0 && !is_out_of_time_) {
        const std::size_t done = next(static_cast<std::size_t>(std::min(of, all)));
        if (done == 0) break;
        all -= static_cast<std::int64_t>(done);
      }
    };
    // Candidates that cannot win wait until all that may win are simulated.
    const auto by_expectation = [&](std::size_t most) {
      expected_to_front(most);
      return simulate(may_win_of(most));
    };
    constexpr std::int64_t kRound = 4;
    const std::int64_t first = std::max<std::int64_t>(options_.simulate, 1);
    rounds(std::min(first, kRound), kRound, by_expectation);
    rounds(first - kRound, (first - kRound + 1) / 2, by_expectation);
    constexpr std::int64_t kRoundOfMany = 32;
    const auto certify = [&](std::size_t most) {
      if (best_)  // until one fits, the order is by estimate
        to_front(most, [&](std::size_t i) { return candidates_[i].estimate.bound; });
      else
        expected_to_front(most);
      const std::size_t done = simulate(may_win_of(most));
      return others_may_win() ? 0 : done;
    };
    if (!result_.partial) rounds(options_.certify, kRound, certify);
    if (!result_.partial && options_.certify > 0 && can_certify_all())
      rounds(std::ssize(candidates_), kRoundOfMany, certify);
    if (is_last_ && best_ && !result_.partial) {
      rounds(first - std::ssize(result_.simulated), kRound, [&](std::size_t most) {
        expected_to_front(most);
        return simulate(most);
      });
      simulate_front();
    }
    if (is_out_of_time_ && result_.simulated.empty()) return simulate_one();
    judge();
  }

  // Moves the `most` waiting candidates with the least keys to the front, in order.
  template <class Key>
  void to_front(std::size_t most, Key key) {
    const auto end =
        waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
    std::partial_sort(waiting_.begin(), end, waiting_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(key(a), a) < std::pair(key(b), b);
    });
  }
  // How many of the first `most` waiting candidates come before the first one that cannot win.
  std::size_t may_win_of(std::size_t most) const {
    const auto first = std::span(waiting_).first(std::min(most, waiting_.size()));
    return static_cast<std::size_t>(
        std::ranges::find_if(first, [&](std::size_t i) { return !may_win(i); }) - first.begin());
  }

  // Takes out the candidates that were simulated before.
  void begin_with_known() {
    result_.slower = 0;
    result_.provably_slower = 0;
    result_.best_bound.reset();
    best_ = best_step(result_, options_);
    using Sizes = std::array<std::int64_t, 4>;
    const auto sizes_of = [](const Strategy& one) {
      return Sizes{one.tensor_parallel, one.pipeline_parallel, one.data_parallel, one.micro_batch};
    };
    std::map<Sizes, std::set<std::string>> known;
    const auto key_with = [](const std::vector<std::string>& use, const Strategy& one) {
      return join(use) + key_of(one);
    };
    for (const Simulated& one : result_.simulated)
      known[sizes_of(one.strategy)].insert(key_with(one.use, one.strategy));
    std::erase_if(waiting_, [&](std::size_t i) {
      const Candidate& one = candidates_[i];
      const auto like = known.find(sizes_of(one.strategy));
      return like != known.end() && like->second.contains(key_with(one.place->use, one.strategy));
    });
  }

  // Strategies that divide their devices alike: what their estimates leave out is alike too.
  struct StrategyKind {
    const DeviceSubset* place = nullptr;
    std::array<std::int64_t, 7> sizes{};
    std::vector<std::string> order{};
    auto operator<=>(const StrategyKind&) const = default;
  };
  struct KindRecord {
    Seconds steps;
    Seconds estimates;
  };
  static StrategyKind kind_of(const Candidate& one) {
    const Strategy& of = one.strategy;
    const StateSharding states = state_sharding(of);
    const std::int64_t cut = (states.cuts_parameters ? 4 : 0) + (states.cuts_gradients ? 2 : 0) +
                             (states.cuts_optimizer ? 1 : 0);
    return {.place = one.place,
            .sizes = {of.tensor_parallel, of.pipeline_parallel, of.data_parallel,
                      of.context_parallel, of.expert_parallel, cut, of.virtual_stages > 1 ? 1 : 0},
            .order = of.rank_order};
  }
  // Moves the best expected steps to the front: the estimate times the ratio of simulated to
  // estimated time of its kind so far. From a kind without simulations one is enough at first.
  // Candidates that cannot win come last.
  void expected_to_front(std::size_t most) {
    std::vector<Seconds> expected(candidates_.size());
    std::map<StrategyKind, std::size_t> firsts;  // kind without simulations -> its best estimate
    // null: the kind has simulations
    std::vector<const std::size_t*> first_of_kind(candidates_.size());
    for (const std::size_t i : waiting_) {
      const Candidate& one = candidates_[i];
      expected[i] = one.estimate.step;
      const StrategyKind kind = kind_of(one);
      if (const auto found = found_.find(kind); found != found_.end()) {
        expected[i] = (found->second.steps / found->second.estimates) * expected[i];
        continue;
      }
      std::size_t& first = firsts.try_emplace(kind, i).first->second;
      if (std::pair(expected[i], i) < std::pair(expected[first], first)) first = i;
      first_of_kind[i] = &first;
    }
    to_front(most, [&](std::size_t i) {
      const bool can_wait = first_of_kind[i] != nullptr && *first_of_kind[i] != i;
      return std::tuple(!may_win(i), can_wait, expected[i]);
    });
  }
  // Simulates some strategies of the Pareto front of the estimates that are not simulated yet, at
  // even distances from the fastest to the slowest.
  void simulate_front() {
    std::vector<std::size_t> members;
    for (const std::size_t i : front_of_estimates())
      if (std::ranges::find(waiting_, i) != waiting_.end() &&
          passes_of(candidates_[i].strategy) <= kMostPassesOfFront)
        members.push_back(i);
    const std::size_t most = std::min(
        members.size(), static_cast<std::size_t>(std::max<std::int64_t>(options_.front, 0)));
    std::vector<std::size_t> round;
    for (std::size_t i = 0; i < most; ++i)
      round.push_back(members[most == 1 ? 0 : i * (members.size() - 1) / (most - 1)]);
    std::erase_if(waiting_,
                  [&](std::size_t i) { return std::ranges::find(round, i) != round.end(); });
    simulate_these(round);
  }
  // The Pareto front of the estimates. Candidates are in the order of their estimated steps.
  std::vector<std::size_t> front_of_estimates() const {
    std::map<const DeviceSubset*, std::vector<double>> rates;
    std::vector<std::size_t> members;
    std::vector<Objectives> merits;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& one = candidates_[i];
      std::vector<double>& rate = rates[one.place];
      if (rate.empty()) rate = rates_of(*one.place);
      const double step = one.estimate.step.in_base();
      const Objectives own{step, one.estimate.peak.in_base(),
                           step * rate[static_cast<std::size_t>(one.strategy.devices())]};
      if (std::ranges::any_of(merits, [&](const Objectives& other) { return other.beats(own); }))
        continue;
      members.push_back(i);
      merits.push_back(own);
    }
    return members;
  }
  // n -> what the first n devices of a place cost: their rent, or n where a price is not known.
  std::vector<double> rates_of(const DeviceSubset& place) const {
    const bool priced = rent_of(study_, cluster_, place.pool.devices).has_value();
    std::vector<double> rates{0};
    for (std::size_t d = 0; d < place.pool.devices.size(); ++d)
      rates.push_back(
          rates.back() +
          (priced
               ? rent_of(study_, cluster_, std::span(place.pool.devices).subspan(d, 1))->in_base()
               : 1));
    return rates;
  }

  // The time is over. If nothing that fits is simulated yet, the first waiting candidate is.
  void simulate_one() {
    result_.partial = true;
    if (!best_ && !waiting_.empty()) {
      const std::size_t first = waiting_.front();
      waiting_.erase(waiting_.begin());
      take(simulated(study_, cluster_, options_, candidates_[first]));
    }
    judge();
  }
  bool may_win(std::size_t i) const { return !best_ || candidates_[i].estimate.bound < *best_; }

  // Whether strategies that are not candidates may win. The winner can then only become certain if
  // it turns out faster than all their bounds, for which one round is tried.
  bool others_may_win() const {
    const auto may_win = [&](Seconds bound) { return best_ && bound < *best_; };
    return (unlisted_.far > 0 && may_win(*unlisted_.limit)) ||
           std::ranges::any_of(unlisted_.near, may_win);
  }

  // Simulates the first waiting candidates, at most `most`; returns how many.
  std::size_t simulate(std::size_t most) {
    const auto first = std::span(waiting_).first(std::min(most, waiting_.size()));
    const std::vector<std::size_t> round(first.begin(), first.end());
    waiting_.erase(waiting_.begin(), waiting_.begin() + std::ssize(round));
    simulate_these(round);
    return round.size();
  }

  // Whether everything is searched, and all that may win can be simulated in about a minute.
  bool can_certify_all() const {
    // A unit is a layer of a stage and micro-batch: 10 to 30 us of simulation, and 0.1 s to begin
    // one, on a server of 2026 (docs/search.md has the searches). The estimate is fixed, so that
    // certification does not depend on how fast the machine is.
    constexpr std::int64_t kToBegin = 3'000;
    constexpr std::int64_t kMost = 2'500'000;
    if (options_.space.level < kEverything || !best_ || others_may_win()) return false;
    std::int64_t units = 0;
    for (const std::size_t i : waiting_) {
      const Strategy& one = candidates_[i].strategy;
      if (may_win(i))
        units += kToBegin + one.micro_batches() * one.pipeline_parallel * study_.model.layers;
    }
    return units <= kMost;
  }

  void simulate_these(const std::vector<std::size_t>& round) {
    std::vector<const Candidate*> these;
    these.reserve(round.size());
    for (const std::size_t i : round) these.push_back(&candidates_[i]);
    auto found = simulations_.run(these);
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (!found[i]) {
        waiting_.push_back(round[i]);
        result_.partial = is_out_of_time_ = true;
        continue;
      }
      if (const Result<Simulated>& one = *found[i]; one) {
        KindRecord& of_kind = found_[kind_of(candidates_[round[i]])];
        of_kind.steps += one->step;
        of_kind.estimates += one->estimate.step;
      }
      take(*std::move(found[i]));
    }
    if (simulations_.fault() != nullptr) std::rethrow_exception(simulations_.fault());
  }

  void take(Result<Simulated> found) {
    if (found) {
      if (may_be_first(*found, options_) && (!best_ || found->step < *best_)) best_ = found->step;
      result_.simulated.push_back(*std::move(found));
    } else if (result_.unroutable++ == 0) {
      result_.no_route = found.error().message;
    }
  }

  void judge() {
    for (const Simulated& one : result_.simulated) {
      const double ratio = one.estimate.step / one.step;
      const bool first = &one == result_.simulated.data();
      result_.lowest_ratio = first ? ratio : std::min(result_.lowest_ratio, ratio);
      result_.highest_ratio = first ? ratio : std::max(result_.highest_ratio, ratio);
    }
    rank(result_);
    for (const std::size_t i : waiting_) count_slower(1, candidates_[i].estimate.bound);
    for (const Seconds bound : unlisted_.near) count_slower(1, bound);
    if (unlisted_.far > 0) count_slower(unlisted_.far, *unlisted_.limit);
    // Nothing is known of combinations that were not looked at.
    const bool is_known = result_.not_reached == 0 && result_.whole_space;
    if (!is_known) result_.best_bound.reset();
    if (!best_) {
      for (const Simulated& one : result_.simulated) {
        Estimate needs = one.estimate;
        needs.peak = one.peak;
        needs.memory = one.capacity;
        if (is_nearer(needs, result_.nearest)) result_.nearest = {one.strategy, needs};
      }
      return;
    }
    result_.nearest.reset();
    result_.certified = is_known && result_.provably_slower == result_.slower;
  }

  // Counts strategies that are not simulated and take no less than `bound`.
  void count_slower(std::int64_t count, Seconds bound) {
    result_.slower += count;
    if (!result_.best_bound || bound < *result_.best_bound) result_.best_bound = bound;
    if (best_ && bound >= *best_) result_.provably_slower += count;
  }

  const study::LoadedStudy& study_;
  const ClusterView& cluster_;
  const SearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  const Unlisted& unlisted_;
  const Deadline& deadline_;
  Simulations& simulations_;
  SearchResult& result_;
  bool is_last_;
  std::vector<std::size_t> waiting_;
  std::map<StrategyKind, KindRecord> found_;  // simulated so far
  std::optional<Seconds> best_;
  bool is_out_of_time_ = false;  // some of a round were not simulated
};

}  // namespace

void Unlisted::add(const Unlisted& others) {
  if (others.limit && (!limit || *others.limit < *limit)) limit = others.limit;
  far += others.far;
  near.insert(near.end(), others.near.begin(), others.near.end());
  if (!limit) return;
  const auto is_far = [&](Seconds bound) { return bound >= *limit; };
  far += static_cast<std::int64_t>(std::erase_if(near, is_far));
}

bool is_nearer(const Estimate& estimate, const std::optional<Nearest>& nearest) {
  return !nearest || missing(estimate) < missing(nearest->estimate);
}

// Rent and device time cannot be compared: where one device has no price, device time counts for
// all.
static void mark_front(SearchResult& result) {
  result.is_priced = std::ranges::all_of(
      result.simulated, [](const Simulated& one) { return one.rent_of_used.has_value(); });
  const auto merits = [&](const Simulated& one) {
    return Objectives{one.step.in_base(), one.peak.in_base(),
                      result.is_priced ? one.rent_of_used->in_base() : one.device_time().in_base()};
  };
  for (Simulated& one : result.simulated)
    one.on_front = one.fits && std::ranges::none_of(result.simulated, [&](const Simulated& other) {
                     return other.fits && merits(other).beats(merits(one));
                   });
}

void rank(SearchResult& result) {
  std::ranges::stable_sort(result.simulated, [](const Simulated& a, const Simulated& b) {
    if (a.fits != b.fits) return a.fits;
    return a.tight != b.tight ? b.tight : a.step < b.step;
  });
  mark_front(result);
}

std::vector<Seconds> race(const study::LoadedStudy& study, const ClusterView& cluster,
                          const SearchOptions& options, const std::vector<Candidate>& candidates,
                          const Unlisted& unlisted, const Deadline& deadline,
                          Simulations& simulations, SearchResult& result, bool is_last) {
  Race race(study, cluster, options, candidates, unlisted, deadline, simulations, result, is_last);
  race.run();
  return race.bounds_of_waiting();
}

namespace {

// Higher levels list too many strategies to rank them without families.
constexpr std::int64_t kMostLevel = 2;

// The candidates with offloading, by estimate. `left`: the part of their need that has to stay
// free.
std::vector<Candidate> with_least_offloads(const study::LoadedStudy& study,
                                           const ClusterView& cluster,
                                           const std::vector<DeviceSubset>& places,
                                           const SearchOptions& options, double left,
                                           const Deadline& deadline, SearchResult& result) {
  const auto forms = std::make_shared<SharedPlanForms>();
  SearchSpace space = options.space;
  space.level = std::min(space.level, kMostLevel);
  SearchResult counts;
  std::vector<Candidate> all;
  ListedKeys tried;
  for (const DeviceSubset& place : places) {
    Enumeration found =
        listed(study, cluster, place, space, [&] { return deadline.is_over_for_estimates(); });
    forget_known(found, places, tried);
    Ranking ranking(study, cluster, place, forms, margin_of(study, options));
    ranking.offer_only(space);
    ranking.add_least_offloads(found.candidates, deadline, left);
    add_counts(ranking.counts(), counts);
    std::ranges::move(ranking.candidates(), std::back_inserter(all));
    auto& known = tried.emplace_back();
    for (const Strategy& one : found.candidates)
      if (places.size() > 1) known.insert(key_of(one));
    if (!deadline.is_over_for_estimates()) continue;
    result.partial = true;
    result.whole_space = false;
  }
  result.no_hosts = std::exchange(counts.no_route, "");
  result.considered -= std::exchange(counts.unroutable, 0);
  add_counts(counts, result);
  std::ranges::stable_sort(all, {}, [](const Candidate& one) { return one.estimate.step; });
  return all;
}

bool is_misjudged(const Simulated& one, const SearchOptions& options) {
  return !may_be_first(one, options) && one.estimate.peak <= one.estimate.memory;
}

}  // namespace

void race_on_hosts(const study::LoadedStudy& study, const ClusterView& cluster,
                   const std::vector<DeviceSubset>& places, const SearchOptions& options,
                   const Unlisted& unlisted, const Deadline& deadline, Simulations& simulations,
                   SearchResult& result) {
  Unlisted others = unlisted;
  std::optional<double> tried;
  const auto is_wrong = [&](const Simulated& one) { return is_misjudged(one, options); };
  while (!best_step(result, options) && !result.partial) {
    const double left = std::ranges::any_of(result.simulated, is_wrong) ? kMemoryError : 0;
    if (tried == left) return;
    tried = left;
    result.tried_hosts = true;
    const auto candidates =
        with_least_offloads(study, cluster, places, options, left, deadline, result);
    others.add(
        {.near = race(study, cluster, options, candidates, others, deadline, simulations, result)});
  }
}

}  // namespace foreshard::search
