/// \file
/// What a search keeps of the families that it visits: the members that it may simulate, by
/// estimate and by lower bound, and counts of all others.
///
/// The limit is the best simulated step, or kMargin times the best estimate if that is less.
/// Members whose lower bound reaches the limit are counted as far. Members below the limit that are
/// not kept leave their bounds. So every member can be judged in the end: whether it is certainly
/// slower than the best simulated one.
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
  /// A simulated step is hardly ever longer than its estimate times this. So a strategy whose step
  /// is longer than the best estimate times this is not the best.
  static constexpr double kMargin = 1.05;

  struct Kept {
    const Family* family;
    Member member;
    Estimate estimate;
    std::int64_t order = 0;
  };

  /// \param best  the best simulated step; nothing where there is none.
  /// \param most  how many members are kept by estimate, and how many by bound.
  /// \param model  must outlive it.
  Keeper(std::optional<Seconds> best, std::size_t most, const Model& model, bool all_fit);

  /// Begins a family, to which the members that follow belong. `order`: the index of its base.
  void begin(const Family& family, std::int64_t order);
  /// Members of the family at hand that were not visited because an error came first.
  std::int64_t left() const { return family_->size() - told_; }

  bool is_of_interest(Seconds bound) const override { return bound < limit_; }
  void count_slower(std::int64_t members, Seconds bound) override;
  bool fits(const Member& member, const Estimate& estimate) const override;
  void add_large(const Member& member, const Estimate& estimate) override;
  bool is_large(const Estimate& least) const override;
  void count_large(std::int64_t members) override;
  void add(const Member& member, const Estimate& estimate) override;

  /// The kept members, the best estimates first. Counts are complete afterwards.
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
  std::deque<Family> families_;  // families of kept members
  std::vector<Kept> kept_;
  Unlisted unlisted_;
  std::int64_t large_ = 0;
  std::optional<Nearest> nearest_;
};

}  // namespace foreshard::search
