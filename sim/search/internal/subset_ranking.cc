// Ranks a place's strategies in parts, by several threads (subset_ranking.h), for candidates.cc.
#include "sim/search/internal/subset_ranking.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/threads.h"

#include "sim/study/run.h"

namespace foreshard::search {

void add_counts(const SearchResult& part, SearchResult& result) {
  result.considered += part.considered;
  for (const auto& [key, count] : part.misfits) result.misfits[key] += count;
  result.too_large += part.too_large;
  if (result.unroutable == 0) result.no_route = part.no_route;
  result.unroutable += part.unroutable;
  if (part.nearest && is_nearer(part.nearest->estimate, result.nearest))
    result.nearest = part.nearest;
}

Status SubsetRanking::run(std::int64_t threads) {
  const std::int64_t count = std::ssize(strategies_);
  const std::int64_t parts = std::clamp<std::int64_t>(count / kLeast, 1, kParts);
  for (std::int64_t i = 0; i < parts; ++i) {
    // A cluster caches the routes that it finds: each part has its own.
    FORESHARD_ASSIGN(auto cluster, cluster_of(study_, study_.pool.devices));
    Partition& part = parts_.emplace_back(std::move(cluster));
    part.begin = i * count / parts;
    part.count = (i + 1) * count / parts - part.begin;
    part.ranking.emplace(study_, part.cluster, place_, forms_, margin_);
    if (!cuts_slow_) part.ranking->cut_the_fast_alone();
    if (space_ != nullptr) part.ranking->offer_only(*space_);
    if (families_.choices != nullptr)
      part.ranking->seek_families(*families_.choices, families_.best, families_.most);
  }
  in_threads(std::min(threads, parts), [this](std::int64_t) { work(); });
  return {};
}

std::vector<Candidate> SubsetRanking::candidates(SearchResult& result) {
  std::vector<Candidate> all;
  for (Partition& part : parts_) {
    add_counts(part.ranking->counts(), result);
    result.partial = result.partial || part.done < part.count;
    result.not_reached += part.count - part.done;
    for (std::int64_t i = part.done; i < part.count && families_.choices != nullptr; ++i) {
      const Strategy& base = strategies_[static_cast<std::size_t>(order_of(part, i))];
      const std::int64_t others = Family(base, study_.model, *families_.choices).size() - 1;
      result.not_reached += others;
      result.considered += others;
    }
    std::ranges::move(part.ranking->candidates(), std::back_inserter(all));
  }
  std::ranges::stable_sort(all, {}, &Candidate::order);
  return all;
}

Unlisted SubsetRanking::unlisted() const {
  Unlisted all;
  for (const Partition& part : parts_) all.add(part.ranking->unlisted());
  return all;
}

// The part with the least done among those that no thread has; null where there is none.
SubsetRanking::Partition* SubsetRanking::take() {
  const std::lock_guard lock(mutex_);
  Partition* next = nullptr;
  for (Partition& part : parts_)
    if (!part.is_taken && !part.is_over && (next == nullptr || part.done < next->done))
      next = &part;
  if (next != nullptr) next->is_taken = true;
  return next;
}

void SubsetRanking::give_back(Partition& part, bool is_over) {
  const std::lock_guard lock(mutex_);
  part.is_taken = false;
  part.is_over = is_over;
}

// Sorts a part by lower bounds: the sooner a good strategy is met, the fewer families and cuts need
// be looked at, and the better is the result within the time limit. Strategies whose bound is not
// found in time come last, in their order.
void SubsetRanking::sort(Partition& part) const {
  std::vector<std::pair<Seconds, std::int64_t>> all;
  for (std::int64_t order = part.begin; order < part.begin + part.count; ++order) {
    const auto i = static_cast<std::size_t>(order);
    const bool is_over = deadline_.is_over_for_estimates();
    all.emplace_back(is_over ? kNever : part.ranking->least_step(strategies_[i]), order);
  }
  std::ranges::sort(all);
  for (const auto& [least, order] : all) part.sequence.push_back(order);
}

void SubsetRanking::work() {
  while (Partition* const part = take()) {
    if (part->sequence.empty()) sort(*part);
    const std::int64_t end = std::min(part->done + kTurn, part->count);
    bool is_over = false;
    while (part->done < end && !is_over) {
      is_over = deadline_.is_over_for_estimates();
      if (is_over) break;
      const std::int64_t order = order_of(*part, part->done);
      part->ranking->add(strategies_[static_cast<std::size_t>(order)], order, uneven_);
      ++part->done;
    }
    is_over = is_over || part->done == part->count;
    if (is_over) part->ranking->refine();
    give_back(*part, is_over);
  }
}

}  // namespace foreshard::search
