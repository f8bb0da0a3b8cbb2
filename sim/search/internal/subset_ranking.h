/// \file
/// Ranks all strategies of a place, divided into parts. Threads take turns with the parts, a few
/// strategies at a time. The parts are the same for any number of threads, and so is the result.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"

#include "sim/search/device_subset.h"
#include "sim/search/internal/ranking.h"

namespace foreshard::search {

/// Adds the counts of a part of a ranking to `result`.
void add_counts(const SearchResult& part, SearchResult& result);

class SubsetRanking {
 public:
  /// All must outlive it. `forms`, `margin`: as in Estimator.
  SubsetRanking(const study::LoadedStudy& study, const DeviceSubset& place,
                std::shared_ptr<SharedPlanForms> forms, const std::vector<Strategy>& strategies,
                double margin, bool uneven, const Deadline& deadline)
      : study_(study),
        place_(place),
        forms_(std::move(forms)),
        strategies_(strategies),
        margin_(margin),
        uneven_(uneven),
        deadline_(deadline) {}

  /// Calls Ranking::seek_families on all parts: strategies stand for their families.
  void seek_families(const RecomputeChoices& choices, std::optional<Seconds> best,
                     std::size_t most) {
    families_ = {&choices, best, most};
  }

  /// Calls Ranking::offer_only on all parts.
  void offer_only(const SearchSpace& space) { space_ = &space; }

  /// Calls Ranking::cut_the_fast_alone on all parts.
  void cut_the_fast_alone() { cuts_slow_ = false; }

  Status run(std::int64_t threads);

  /// The candidates, in the order of the strategies; counts are added to `result`. \pre run() has
  /// ended.
  std::vector<Candidate> candidates(SearchResult& result);
  Unlisted unlisted() const;

 private:
  static constexpr std::int64_t kParts = 4;
  // The fewest strategies for which a part with its own caches pays.
  static constexpr std::int64_t kLeast = 256;
  static constexpr std::int64_t kTurn = 64;

  struct Partition {
    explicit Partition(ClusterView view) : cluster(std::move(view)) {}
    ClusterView cluster;
    std::optional<Ranking> ranking;
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::vector<std::int64_t> sequence{};  // indices of strategies, by lower bound
    std::int64_t done = 0;
    bool is_taken = false;
    bool is_over = false;
  };

  struct Families {
    const RecomputeChoices* choices = nullptr;
    std::optional<Seconds> best{};
    std::size_t most = 0;
  };

  Partition* take();
  void give_back(Partition& part, bool is_over);
  void work();
  void sort(Partition& part) const;
  // Index of the strategy that a part looks at as its `place`-th.
  static std::int64_t order_of(const Partition& part, std::int64_t place) {
    return part.sequence.empty() ? part.begin + place
                                 : part.sequence[static_cast<std::size_t>(place)];
  }

  const study::LoadedStudy& study_;
  const DeviceSubset& place_;
  std::shared_ptr<SharedPlanForms> forms_;
  const std::vector<Strategy>& strategies_;
  double margin_;
  bool uneven_;
  const Deadline& deadline_;
  std::deque<Partition> parts_;
  std::mutex mutex_;
  Families families_;
  bool cuts_slow_ = true;
  const SearchSpace* space_ = nullptr;
};

}  // namespace foreshard::search
