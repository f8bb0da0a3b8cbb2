/// \file
/// The candidates of a search: the strategies of a place that may fit, with their estimates.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "sim/search/cuts.h"
#include "sim/search/device_subset.h"
#include "sim/search/estimate.h"
#include "sim/search/family.h"
#include "sim/search/internal/race.h"
#include "sim/search/internal/times.h"
#include "sim/search/search.h"
#include "sim/simulate/cost.h"

namespace foreshard::search {

// What a search keeps of the families that it visits: the members that it may simulate, by
// estimate and by lower bound, and counts of all others.
//
// The limit is the best simulated step, or kMargin times the best estimate if that is less.
// Members whose lower bound reaches the limit are counted as far. Members below the limit that are
// not kept leave their bounds. So every member can be judged in the end: whether it is certainly
// slower than the best simulated one.

class Shortlist : public FamilyVisitor {
 public:
  /// A simulated step is hardly ever longer than its estimate times this. So a strategy whose step
  /// is longer than the best estimate times this is not the best.
  static constexpr double kMargin = 1.05;

  struct Entry {
    const Family* family;
    FamilyMember member;
    Estimate estimate;
    std::int64_t order = 0;
  };

  /// \param best  the best simulated step; nothing where there is none.
  /// \param most  how many members are kept by estimate, and how many by bound.
  /// \param model  must outlive it.
  Shortlist(std::optional<Seconds> best, std::size_t most, const Model& model, bool all_fit);

  /// Begins a family, to which the members that follow belong. `order`: the index of its base.
  void begin(const Family& family, std::int64_t order);
  /// Members of the family at hand that were not visited because an error came first.
  std::int64_t left() const { return family_->size() - told_; }

  bool is_of_interest(Seconds bound) const override { return bound < limit_; }
  void count_slower(std::int64_t members, Seconds bound) override;
  bool fits(const FamilyMember& member, const Estimate& estimate) const override;
  void add_large(const FamilyMember& member, const Estimate& estimate) override;
  bool is_large(const Estimate& least) const override;
  void count_large(std::int64_t members) override;
  void add(const FamilyMember& member, const Estimate& estimate) override;

  /// The kept members, the best estimates first. Counts are complete afterwards.
  std::vector<Entry> finish();
  const Unlisted& unlisted() const { return unlisted_; }
  std::int64_t large() const { return large_; }
  const std::optional<Nearest>& nearest() const { return nearest_; }

 private:
  bool may_fit(const Estimate& estimate) const;
  void keep_best();

  Seconds limit_;
  std::size_t most_;
  const Model& model_;
  bool all_fit_;
  const Family* family_ = nullptr;
  bool is_remembered_ = false;
  std::int64_t order_ = 0;
  std::int64_t told_ = 0;
  std::deque<Family> families_;  // families of kept members
  std::vector<Entry> kept_;
  Unlisted unlisted_;
  std::int64_t large_ = 0;
  std::optional<Nearest> nearest_;
};

/// The largest relative errors of estimated memory: Estimate::least exceeds the need of a
/// simulation by at most this part of itself, and a simulation needs at most this part of
/// Estimate::peak more than Estimate::peak.
inline constexpr double kMemoryError = 0.025;
/// A lower bound of the part of a device's memory that a simulation of the strategy needs: above 1,
/// the strategy does not fit. tests/sim/search/search_test.cc checks that. It is Estimate::least
/// itself for dense models that predict one token, with sequences that are not split, shards in the
/// precision of training, no offloading, and no full recomputation. Not counted: copies of
/// activations to the host that end earlier than Estimate::peak assumes.
double least_need(const Estimate& estimate, const Strategy& strategy, const Model& model);

/// Ranks a part of a place's strategies: keeps those that may fit and counts the others. The one
/// kept as nearest to fitting could run apart from its memory. Use one object per thread.
class Ranking {
 public:
  /// All must outlive it. `forms`, `margin`: as in Estimator. `all_fit`: memory does not matter.
  Ranking(const study::LoadedStudy& study, const ClusterView& cluster, const DeviceSubset& place,
          std::shared_ptr<SharedPlanForms> forms, double margin, bool all_fit = false);

  std::vector<Candidate>& candidates() { return candidates_; }
  const SearchResult& counts() const { return counts_; }

  /// From now on, strategies that are added stand for their families. The `most` best members by
  /// estimate and the `most` best by bound may become candidates; the others are counted
  /// (Shortlist).
  /// \param best  the best simulated step of a strategy that fits, if there is one.
  void seek_families(const RecomputeChoices& choices, std::optional<Seconds> best,
                     std::size_t most);
  const Unlisted& unlisted() const { return unlisted_; }

  /// From now on, other cuts of the pipeline are not tried for strategies whose lower bound is too
  /// slow.
  void cut_the_fast_alone() { cuts_slow_ = false; }
  /// From now on, strategies that the framework cannot run, with values that the space does not
  /// name, are misfits.
  /// \param space  must outlive it.
  void offer_only(const SearchSpace& space) { space_ = &space; }
  /// A lower bound of a strategy's family (Estimator::least_step); kNever where there is none.
  Seconds least_step(const Strategy& base);

  /// Adds a strategy, and with other cuts of the pipeline if `uneven`. `order`: its index in the
  /// enumeration.
  void add(const Strategy& strategy, std::int64_t order, bool uneven);
  /// Adds `full`, a strategy that recomputes all layers and fits, with as few recomputed layers as
  /// still fit. Adds nothing where all must recompute, or where the plan would have too many kinds
  /// of layers.
  void add_least_recomputation(const Strategy& full);
  /// Adds the best estimates among strategies that do not fit, but do with offloading; each
  /// offloads as little as possible.
  /// \param left  the part of their need that has to stay free, for errors of the estimate.
  void add_least_offloads(const std::vector<Strategy>& strategies, const Deadline& deadline,
                          double left = 0);
  /// Ends a ranking. The best candidates were ranked by the paths known at the time; their
  /// estimates are now replaced by estimates from walks.
  void refine();

 private:
  bool is_offered(const Strategy& strategy);
  void add_one(const Strategy& strategy);
  void add_families(const Strategy& base, bool uneven);
  std::vector<Strategy> cuts_of_family(const Strategy& base);
  void take_kept();

  const Model& model_;
  const DeviceSubset& place_;
  bool all_fit_;
  std::int64_t order_ = 0;  // order of the strategy that is being added
  sim::SimulatedCost cost_;
  Estimator estimator_;
  Cutter cutter_;
  std::vector<Candidate> candidates_;
  SearchResult counts_;
  const RecomputeChoices* choices_ = nullptr;
  std::optional<Shortlist> keeper_;
  bool cuts_slow_ = true;
  const SearchSpace* space_ = nullptr;  // null: every strategy is offered
  Seconds limit_ = kNever;  // the limit that a Shortlist would have, where there is none
  Unlisted unlisted_;
};

}  // namespace foreshard::search
