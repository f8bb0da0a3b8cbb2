#include "sim/search/internal/on_hosts.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "sim/search/internal/candidates.h"
#include "sim/search/internal/listing.h"
#include "sim/search/internal/place_ranking.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/internal/shared_forms.h"

namespace foreshard::search {
namespace {

// Higher levels list too many strategies to rank them without families.
constexpr std::int64_t kMostLevel = 2;

// The candidates with offloading, by estimate. `left`: the part of their need that has to stay
// free.
std::vector<Candidate> with_least_offloads(const study::LoadedStudy& study,
                                           const ClusterView& cluster,
                                           const std::vector<Place>& places,
                                           const SearchOptions& options, double left,
                                           const Deadline& deadline, SearchResult& result) {
  const auto forms = std::make_shared<SharedForms>();
  SearchSpace space = options.space;
  space.level = std::min(space.level, kMostLevel);
  SearchResult counts;
  std::vector<Candidate> all;
  Tried tried;
  for (const Place& place : places) {
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
                   const std::vector<Place>& places, const SearchOptions& options,
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
