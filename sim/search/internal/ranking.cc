// Ranks the strategies of one place by their estimates (ranking.h), for candidates.cc and
// subset_ranking.cc; it is the main caller of the Estimator.
#include "sim/search/internal/ranking.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/estimate.h"
#include "sim/search/internal/times.h"
#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/exchanges.h"

namespace foreshard::search {
namespace {

// Kept members are thinned out when there are this many times more than may stay.
constexpr std::size_t kTimesKept = 8;

}  // namespace

Shortlist::Shortlist(std::optional<Seconds> best, std::size_t most, const Model& model,
                     bool all_fit)
    : limit_(best.value_or(kNever)), most_(most), model_(model), all_fit_(all_fit) {}

void Shortlist::begin(const Family& family, std::int64_t order) {
  family_ = &family;
  is_remembered_ = false;
  order_ = order;
  told_ = 0;
}

void Shortlist::count_slower(std::int64_t members, Seconds) {
  told_ += members;
  unlisted_.far += members;
}

bool Shortlist::may_fit(const Estimate& estimate) const {
  return all_fit_ || (1 - kMemoryError) * estimate.least <= 1;
}

bool Shortlist::fits(const FamilyMember& member, const Estimate& estimate) const {
  if (all_fit_ || estimate.peak <= estimate.memory) return true;
  return least_need(estimate, family_->strategy_of(member), model_) <= 1;
}

void Shortlist::add_large(const FamilyMember& member, const Estimate& estimate) {
  ++told_;
  ++large_;
  if (is_nearer(estimate, nearest_)) nearest_ = {family_->strategy_of(member), estimate};
}

// Members that may be nearer to fitting than all before are looked at one by one.
bool Shortlist::is_large(const Estimate& least) const {
  return !may_fit(least) && !is_nearer(least, nearest_);
}

void Shortlist::count_large(std::int64_t members) {
  told_ += members;
  large_ += members;
}

void Shortlist::add(const FamilyMember& member, const Estimate& estimate) {
  ++told_;
  if (!is_remembered_) family_ = &families_.emplace_back(*family_);
  is_remembered_ = true;
  kept_.push_back({family_, member, estimate, order_});
  if (estimate.peak <= estimate.memory || all_fit_)
    limit_ = std::min(limit_, kMargin * estimate.step);
  if (kept_.size() >= kTimesKept * most_) keep_best();
}

void Shortlist::keep_best() {
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
  std::vector<Entry> best;
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

std::vector<Shortlist::Entry> Shortlist::finish() {
  keep_best();
  if (limit_ != kNever) unlisted_.limit = limit_;
  const auto is_far = [&](Seconds bound) { return !is_of_interest(bound); };
  unlisted_.far += static_cast<std::int64_t>(std::erase_if(unlisted_.near, is_far));
  return std::move(kept_);
}

namespace {

// Offloading for strategies that need more memory than their devices have: what goes to the hosts'
// memory is the least that makes the strategy fit.

// A way to offload optimizer states and parameters.
struct OffloadChoice {
  OptimizerOffload optimizer;
  bool parameters;
};
constexpr OffloadChoice kOffloadChoices[] = {{OptimizerOffload::kNone, false},
                                             {OptimizerOffload::kFetch, false},
                                             {OptimizerOffload::kCpu, false},
                                             {OptimizerOffload::kCpu, true}};

std::int64_t most_layers(const Strategy& strategy, const Model& model) {
  const auto layers = layers_of_stages(strategy, model.layers);
  return *std::ranges::max_element(layers);
}

// Checks whether strategies fit with the margin `left`.
class Room {
 public:
  Room(const Model& model, std::int64_t devices, Estimator& estimator, double left)
      : model_(model), devices_(devices), estimator_(estimator), left_(left) {}

  bool allows(const Strategy& one) const { return faults_in(one, model_, devices_).empty(); }
  bool holds(const Strategy& one) const {
    if (!allows(one)) return false;
    const auto memory = estimator_.memory(one);
    return memory && memory->peak * (1 + left_) <= memory->memory;
  }

 private:
  const Model& model_;
  std::int64_t devices_;
  Estimator& estimator_;
  double left_;
};

Strategy offloaded(const Strategy& strategy, const OffloadChoice& choice) {
  Strategy one = strategy;
  one.offload_optimizer = choice.optimizer;
  one.offload_parameters = choice.parameters;
  return one;
}

// Whether least_offloads() finds any strategy.
bool fits_with_hosts(const Strategy& strategy, const Model& model, std::int64_t devices,
                     Estimator& estimator, double left = 0) {
  const Room room(model, devices, estimator, left);
  const auto fits = [&](const OffloadChoice& choice) {
    Strategy one = offloaded(strategy, choice);
    if (room.holds(one)) return true;
    one.offload_activation_layers = most_layers(one, model);
    return room.holds(one);
  };
  return std::any_of(std::rbegin(kOffloadChoices), std::rend(kOffloadChoices),
                     fits);  // the last one most likely fits
}

// The strategy offloaded in up to four ways: its optimizer states stay on the device; they are on
// the host and fetched for the step; they are on the host, whose CPU takes the step; and the same
// with the shards of the parameters on the host too (ZeRO 3). Each way that the framework can do
// also offloads the activations of as few layers per stage as make it fit. Ways that do not fit
// even with the activations of all layers are left out.
// Not tried: other numbers of layers; activations on the host where the backward pass runs in two
// parts (strategies/parallelism/strategy.h says what is not modelled).
// \param devices  that ranks may run on.
// \param left  margin, as a part of the memory that the strategy needs, which has to stay free.
// \pre `strategy` offloads nothing and has no faults on `devices`.
std::vector<Strategy> least_offloads(const Strategy& strategy, const Model& model,
                                     std::int64_t devices, Estimator& estimator, double left = 0) {
  const Room room(model, devices, estimator, left);
  std::vector<Strategy> found;
  for (const OffloadChoice& choice : kOffloadChoices) {
    Strategy one = offloaded(strategy, choice);
    if (!room.allows(one)) continue;
    if (room.holds(one)) {
      found.push_back(one);
      continue;
    }
    std::int64_t least = 0;  // activation layers: too few to fit
    std::int64_t most = most_layers(one, model);
    one.offload_activation_layers = most;
    if (!room.holds(one)) continue;
    while (least + 1 < most) {
      one.offload_activation_layers = (least + most) / 2;
      (room.holds(one) ? most : least) = one.offload_activation_layers;
    }
    one.offload_activation_layers = most;
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

double least_need(const Estimate& estimate, const Strategy& strategy, const Model& model) {
  constexpr double kRounding = 1e-9;
  const bool is_exact = model.experts == 0 && model.multi_token_prediction == 0 &&
                        strategy.context_parallel == 1 && !strategy.offloads() &&
                        strategy.recompute != Recompute::kFull && !strategy.framework->shards.fp32;
  return (1 - (is_exact ? kRounding : kMemoryError)) * estimate.least;
}

Ranking::Ranking(const study::LoadedStudy& study, const ClusterView& cluster,
                 const DeviceSubset& place, std::shared_ptr<SharedPlanForms> forms, double margin,
                 bool all_fit)
    : model_(study.model),
      place_(place),
      all_fit_(all_fit),
      cost_(cluster, study.communication, lower::routing_of(study.model)),
      estimator_(study.model, cluster, place.pool.devices, cost_, std::move(forms), margin,
                 study.pool.devices),
      cutter_(study.model, estimator_) {}

void Ranking::seek_families(const RecomputeChoices& choices, std::optional<Seconds> best,
                            std::size_t most) {
  choices_ = &choices;
  keeper_.emplace(best, most, model_, all_fit_);
}

void Ranking::add(const Strategy& strategy, std::int64_t order, bool uneven) {
  order_ = order;
  if (keeper_) return add_families(strategy, uneven);
  if (!uneven || (!cuts_slow_ && least_step(strategy) >= limit_)) return add_one(strategy);
  const std::vector<Strategy> cuts = cutter_.with_cuts(strategy, place_.pool.size());
  counts_.considered += std::ssize(cuts) - 1;
  for (const Strategy& one : cuts) add_one(one);
}

Seconds Ranking::least_step(const Strategy& base) {
  const auto least = estimator_.least_step(base);
  return least ? *least : kNever;
}

void Ranking::add_families(const Strategy& base, bool uneven) {
  const Family uncut(base, model_, *choices_);
  keeper_->begin(uncut, order_);
  auto least = estimator_.least_step(base);
  if (least && keeper_->is_of_interest(*least)) least = estimator_.least_step_laid_out(base);
  if (least && !keeper_->is_of_interest(*least)) {
    counts_.considered += uncut.size() - 1;  // the others are not listed
    return keeper_->count_slower(uncut.size(), *least);
  }
  --counts_.considered;
  for (const Strategy& cut : uneven ? cuts_of_family(base) : std::vector{base}) {
    if (!is_offered(cut)) continue;
    const Family family(cut, model_, *choices_);
    keeper_->begin(family, order_);
    counts_.considered += family.size();
    const auto done = estimator_.family(family, *keeper_);
    if (done.ok()) continue;
    if (done.error().code == Error::Code::kInvalidInput)
      counts_.misfits["sharding"] += keeper_->left();
    else if ((counts_.unroutable += keeper_->left()) == keeper_->left())
      counts_.no_route = done.error().message;
  }
}

// Where stages are best cut hardly depends on the recomputation: takes the cuts for no
// recomputation, for the usual parts, and for full recomputation.
std::vector<Strategy> Ranking::cuts_of_family(const Strategy& base) {
  std::vector<Strategy> cuts;
  for (const Recompute how : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    Strategy one = base;
    one.recompute = how;
    if (!faults_in(one, model_, place_.pool.size()).empty()) continue;
    for (Strategy& cut : cutter_.with_cuts(one, place_.pool.size())) {
      cut.recompute = Recompute::kNone;
      if (std::ranges::find(cuts, cut.layers_per_stage, &Strategy::layers_per_stage) == cuts.end())
        cuts.push_back(std::move(cut));
    }
  }
  return cuts;
}

void Ranking::take_kept() {
  for (const Shortlist::Entry& one : keeper_->finish())
    candidates_.push_back({one.family->strategy_of(one.member), one.estimate, &place_, one.order});
  unlisted_ = keeper_->unlisted();
  counts_.too_large += keeper_->large();
  counts_.nearest = keeper_->nearest();
  keeper_.reset();
}

void Ranking::add_least_recomputation(const Strategy& full) {
  const auto cut = layers_of_stages(full, model_.layers);
  std::int64_t most = *std::ranges::max_element(cut);  // layers; fits
  std::int64_t least = 0;                              // layers; does not fit
  Strategy one = full;
  while (least + 1 < most) {
    one.recompute_layers = (least + most) / 2;
    const auto memory = estimator_.memory(one);
    if (!memory) return;
    (memory->peak <= memory->memory ? most : least) = one.recompute_layers;
  }
  if (most == *std::ranges::max_element(cut)) return;
  one.recompute_layers = most;
  ++counts_.considered;
  add_one(one);
}

void Ranking::add_least_offloads(const std::vector<Strategy>& strategies, const Deadline& deadline,
                                 double left) {
  constexpr std::size_t kMost = 24;
  std::vector<std::pair<Seconds, const Strategy*>> large;
  for (const Strategy& one : strategies) {
    if (deadline.is_over_for_estimates()) break;
    const auto memory = estimator_.memory(one);
    if (!memory || memory->peak * (1 + left) <= memory->memory) continue;
    if (!fits_with_hosts(one, model_, place_.pool.size(), estimator_, left)) continue;
    if (const auto estimate = estimator_.rank(one)) large.emplace_back(estimate->step, &one);
  }
  std::ranges::stable_sort(large, {}, &std::pair<Seconds, const Strategy*>::first);
  if (large.size() > kMost) large.resize(kMost);
  for (const auto& [step, one] : large) {
    for (const Strategy& offloaded :
         least_offloads(*one, model_, place_.pool.size(), estimator_, left)) {
      ++counts_.considered;
      add_one(offloaded);
    }
  }
}

void Ranking::refine() {
  constexpr std::size_t kMost = 64;
  if (keeper_) take_kept();
  std::vector<Candidate*> best;
  for (Candidate& one : candidates_) best.push_back(&one);
  std::ranges::stable_sort(best, {}, [](const Candidate* one) { return one->estimate.step; });
  if (best.size() > kMost) best.resize(kMost);
  for (Candidate* one : best)
    if (const auto walked = estimator_.estimate(one->strategy)) one->estimate = *walked;
}

bool Ranking::is_offered(const Strategy& strategy) {
  if (space_ == nullptr || !limitation_in(strategy, model_, *space_)) return true;
  ++counts_.misfits[std::string(kFrameworkMisfit)];
  return false;
}

void Ranking::add_one(const Strategy& strategy) {
  if (!is_offered(strategy)) return;
  const auto memory = estimator_.memory(strategy);
  if (!memory) {
    ++counts_.misfits["sharding"];
    return;
  }
  const auto is_large = [&](const Estimate& estimate) {
    return !all_fit_ && least_need(estimate, strategy, model_) > 1;
  };
  if (is_large(*memory) && !is_nearer(*memory, counts_.nearest)) {
    ++counts_.too_large;
    return;
  }
  const auto estimate = estimator_.rank(strategy);
  if (!estimate) {
    if (counts_.unroutable++ == 0) counts_.no_route = estimate.error().message;
  } else if (is_large(*estimate)) {
    ++counts_.too_large;
    if (is_nearer(*memory, counts_.nearest)) counts_.nearest = {strategy, *memory};
  } else {
    if (estimate->peak <= estimate->memory)
      limit_ = std::min(limit_, Shortlist::kMargin * estimate->step);
    candidates_.push_back({strategy, *estimate, &place_, order_});
  }
}

}  // namespace foreshard::search
