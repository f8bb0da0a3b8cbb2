/// \file
/// What a search keeps of the families that it goes through: the members that it may simulate, by
/// estimate and by lower bound, and counts of all others.
///
/// The limit is the best simulated step, or somewhat more than the best estimate. What takes no
/// less for certain is counted as far; of what is nearer and not kept, the bound is remembered. So
/// it can be told in the end, of every member, whether it is slower for certain than the best that
/// was simulated.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/search/family.h"
#include "sim/search/internal/race.h"
#include "sim/search/search.h"

namespace foreshard::search {

class Keeper : public FamilyVisitor {
 public:
  /// A simulation hardly takes this much longer than the estimate of the same strategy: what takes
  /// longer than the best estimate by it is not the best.
  static constexpr double kMargin = 1.05;

  struct Kept {
    const Family* family;
    Member member;
    Estimate estimate;
    std::int64_t order = 0;
  };

  /// \param best  the best simulated step; nothing: there is none.
  /// \param most  that is kept, by estimate and by bound each.
  /// \param model  must outlive it.
  Keeper(std::optional<Seconds> best, std::size_t most, const Model& model, bool all_fit);

  /// The members that follow are of this family, which has the order of its base.
  void begin(const Family& family, std::int64_t order);
  /// Those of one that nothing was told of, since an error came first.
  std::int64_t left() const { return family_->size() - told_; }

  bool is_of_interest(Seconds bound) const override { return bound < limit_; }
  void count_slower(std::int64_t members, Seconds bound) override;
  bool fits(const Member& member, const Estimate& estimate) const override;
  void add_large(const Member& member, const Estimate& estimate) override;
  bool is_large(const Estimate& least) const override;
  void count_large(std::int64_t members) override;
  void add(const Member& member, const Estimate& estimate) override;

  /// Members, the best estimates first. The counts are complete then.
  std::vector<Kept> finish();
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
  std::deque<Family> families_;  // of what is kept
  std::vector<Kept> kept_;
  Unlisted unlisted_;
  std::int64_t large_ = 0;
  std::optional<Nearest> nearest_;
};

}  // namespace foreshard::search
