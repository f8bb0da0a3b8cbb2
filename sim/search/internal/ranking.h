/// \file
/// The candidates of a search: the strategies of a place that may fit, with their estimates.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/search/cuts.h"
#include "sim/search/estimate.h"
#include "sim/search/internal/keeper.h"
#include "sim/search/internal/race.h"
#include "sim/search/internal/times.h"
#include "sim/search/place.h"
#include "sim/search/search.h"
#include "sim/simulate/cost.h"

namespace foreshard::search {

/// By how much at most, as a part of it, Estimate::least exceeds what a simulation needs; as a part
/// of Estimate::peak also what a simulation needs beyond that.
inline constexpr double kMemoryError = 0.025;
/// The part of a device's memory that a simulation of the strategy needs at least: above 1, the
/// strategy does not fit. tests/sim/search/search_test.cc holds it to that. Estimate::least itself
/// where dense models of whole sequences predict one token, shards have the precision of training,
/// nothing is offloaded, and layers are not recomputed whole. Not counted: copies to the host that
/// are over before Estimate::peak takes them to be (offloaded activations).
double least_need(const Estimate& estimate, const Strategy& strategy, const Model& model);

/// Ranks a part of a place's strategies: keeps those that may fit, counts the others. What is kept
/// as the nearest to fitting could run but for its memory. One object for each thread.
class Ranking {
 public:
  /// All must outlive it. `forms`, `margin`: as of Estimator. `all_fit`: memory does not matter.
  Ranking(const study::LoadedStudy& study, const ClusterView& cluster, const Place& place,
          std::shared_ptr<SharedForms> forms, double margin, bool all_fit = false);

  std::vector<Candidate>& candidates() { return candidates_; }
  const SearchResult& counts() const { return counts_; }

  /// From now on, strategies that are added stand for their families. Of these, `most` by estimate
  /// and by bound may become candidates; the others are counted (keeper.h).
  /// \param best  the best simulated step of a strategy that fits, if there is one.
  void seek_families(const Ways& ways, std::optional<Seconds> best, std::size_t most);
  const Unlisted& unlisted() const { return unlisted_; }

  /// From now on, strategies that are too slow for families to be looked at are not cut otherwise.
  void cut_the_fast_alone() { cuts_slow_ = false; }
  /// From now on, what the framework cannot run and the space does not name is a misfit.
  /// \param space  must outlive it.
  void offer_only(const SearchSpace& space) { space_ = &space; }
  /// A lower bound of a strategy's family (Estimator::least_step); kNever where there is none.
  Seconds least_step(const Strategy& base);

  /// A strategy, with other cuts of the pipeline if `uneven`.
  void add(const Strategy& strategy, std::int64_t order, bool uneven);
  /// A strategy that recomputes whole layers and fits, with as few of them as still fit; nothing
  /// where it must be all, or where the plan would have too many kinds of layers.
  void add_least_recomputation(const Strategy& full);
  /// Of those that do not fit, the best estimates that do with the least on their hosts.
  /// \param left  the part of their need that stays free, for what the estimate does not see.
  void add_least_offloads(const std::vector<Strategy>& strategies, const Deadline& deadline,
                          double left = 0);
  /// The end of a ranking: the best ones were ranked by the paths that were known then, walks tell
  /// their times.
  void refine();

 private:
  bool is_offered(const Strategy& strategy);
  void add_one(const Strategy& strategy);
  void add_families(const Strategy& base, bool uneven);
  std::vector<Strategy> cuts_of_family(const Strategy& base);
  void take_kept();

  const Model& model_;
  const Place& place_;
  bool all_fit_;
  std::int64_t order_ = 0;  // of the strategy that is added
  sim::SimulatedCost cost_;
  Estimator estimator_;
  Cutter cutter_;
  std::vector<Candidate> candidates_;
  SearchResult counts_;
  const Ways* ways_ = nullptr;
  std::optional<Keeper> keeper_;
  bool cuts_slow_ = true;
  const SearchSpace* space_ = nullptr;  // null: all that is added is offered
  Seconds limit_ = kNever;              // of a Keeper, where there is none
  Unlisted unlisted_;
};

}  // namespace foreshard::search
