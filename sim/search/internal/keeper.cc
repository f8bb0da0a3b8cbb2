#include "sim/search/internal/keeper.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/search/internal/ranking.h"
#include "sim/search/internal/times.h"

namespace foreshard::search {
namespace {

// Kept members are thinned out when there are this many times more than may stay.
constexpr std::size_t kTimesKept = 8;

}  // namespace

Keeper::Keeper(std::optional<Seconds> best, std::size_t most, const Model& model, bool all_fit)
    : limit_(best.value_or(kNever)), most_(most), model_(model), all_fit_(all_fit) {}

void Keeper::begin(const Family& family, std::int64_t order) {
  family_ = &family;
  is_remembered_ = false;
  order_ = order;
  told_ = 0;
}

void Keeper::count_slower(std::int64_t members, Seconds) {
  told_ += members;
  unlisted_.far += members;
}

bool Keeper::may_fit(const Estimate& estimate) const {
  return all_fit_ || (1 - kMemoryError) * estimate.least <= 1;
}

bool Keeper::fits(const Member& member, const Estimate& estimate) const {
  if (all_fit_ || estimate.peak <= estimate.memory) return true;
  return least_need(estimate, family_->strategy_of(member), model_) <= 1;
}

void Keeper::add_large(const Member& member, const Estimate& estimate) {
  ++told_;
  ++large_;
  if (is_nearer(estimate, nearest_)) nearest_ = {family_->strategy_of(member), estimate};
}

// Members that may be nearer to fitting than all before are looked at one by one.
bool Keeper::is_large(const Estimate& least) const {
  return !may_fit(least) && !is_nearer(least, nearest_);
}

void Keeper::count_large(std::int64_t members) {
  told_ += members;
  large_ += members;
}

void Keeper::add(const Member& member, const Estimate& estimate) {
  ++told_;
  if (!is_remembered_) family_ = &families_.emplace_back(*family_);
  is_remembered_ = true;
  kept_.push_back({family_, member, estimate, order_});
  if (estimate.peak <= estimate.memory || all_fit_)
    limit_ = std::min(limit_, kMargin * estimate.step);
  if (kept_.size() >= kTimesKept * most_) keep_best();
}

void Keeper::keep_best() {
  std::vector<std::size_t> by_step(kept_.size());
  std::iota(by_step.begin(), by_step.end(), std::size_t{0});
  std::vector<std::size_t> by_bound = by_step;
  std::ranges::stable_sort(by_step, {}, [&](std::size_t i) { return kept_[i].estimate.step; });
  std::ranges::stable_sort(by_bound, {}, [&](std::size_t i) { return kept_[i].estimate.bound; });
  std::vector<bool> stays(kept_.size(), false);
  for (std::size_t place = 0; place < std::min(most_, kept_.size()); ++place)
    stays[by_bound[place]] = true;
  // Half of the members kept by estimate are the best of their families, so that errors of one
  // family's estimates do not fill the list.
  std::set<const Family*> met;
  const auto is_first = [&](std::size_t i) {
    const bool fits = all_fit_ || kept_[i].estimate.peak <= kept_[i].estimate.memory;
    return met.size() < most_ / 2 && fits && met.insert(kept_[i].family).second;
  };
  std::vector<std::size_t> in_order;
  std::vector<std::size_t> others;
  for (const std::size_t i : by_step) (is_first(i) ? in_order : others).push_back(i);
  in_order.insert(in_order.end(), others.begin(), others.end());
  for (std::size_t place = 0; place < std::min(most_, kept_.size()); ++place)
    stays[in_order[place]] = true;
  std::vector<Kept> best;
  for (const std::size_t i : by_step) {
    const Seconds bound = kept_[i].estimate.bound;
    if (!is_of_interest(bound))
      ++unlisted_.far;
    else if (stays[i])
      best.push_back(kept_[i]);
    else
      unlisted_.near.push_back(bound);
  }
  kept_ = std::move(best);
}

std::vector<Keeper::Kept> Keeper::finish() {
  keep_best();
  if (limit_ != kNever) unlisted_.limit = limit_;
  const auto is_far = [&](Seconds bound) { return !is_of_interest(bound); };
  unlisted_.far += static_cast<std::int64_t>(std::erase_if(unlisted_.near, is_far));
  return std::move(kept_);
}

}  // namespace foreshard::search
