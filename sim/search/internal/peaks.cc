#include "sim/search/internal/peaks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "strategies/plan/order.h"

namespace foreshard::search {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;

// Whether `more` has at least as much of everything as `less`.
bool covers(const Load& more, const Load& less) {
  const auto has_less = [](const BlockCounts& a, const BlockCounts& b) {
    return !std::ranges::equal(a, b, std::ranges::greater_equal());
  };
  if (has_less(more.kept, less.kept) || has_less(more.held, less.held) ||
      has_less(more.whole, less.whole))
    return false;
  for (std::size_t g = 0; g < kBucketsOfUnit; ++g)
    if (has_less(more.gradient[g], less.gradient[g])) return false;
  return more.pass == less.pass && (more.trailing == less.trailing || less.trailing.block < 0);
}

class Loads {
 public:
  Loads(const plan::StepPlan& plan, const plan::Role& role, bool blocking_launches,
        bool waits_for_conversions)
      : plan_(plan),
        role_(role),
        blocking_launches_(blocking_launches),
        waits_for_conversions_(waits_for_conversions) {
    constexpr int kOfBuckets = plan::kGradient | plan::kWhole;
    bool has_buckets = false;
    for (const Action& action : role.actions) {
      has_buckets = has_buckets || ((action.takes | action.gives_back) & kOfBuckets) != 0;
      if (action.kind == ActionKind::kReduce)
        opened_by_[bucket(action).opened_by].insert(action.what);
    }
    if (has_buckets) order_.emplace(role, blocking_launches);
  }

  std::vector<Load> all() {
    for (ActionId id = 0; id < static_cast<ActionId>(role_.actions.size()); ++id) {
      const Action& it = action(id);
      if (it.kind == ActionKind::kPass) {
        add(id);
      } else if (it.kind == ActionKind::kReduce && (it.gives_back & plan::kGradient) != 0) {
        reduced_[it.what] = id;
      } else if (it.kind == ActionKind::kSync && it.after.empty()) {
        pass_before_ = {};
      }
    }
    return largest({loads_.begin(), loads_.end()});
  }

 private:
  const Action& action(ActionId id) const { return role_.actions[static_cast<std::size_t>(id)]; }
  const plan::Bucket& bucket(const Action& of) const {
    return plan_.buckets[static_cast<std::size_t>(of.what)];
  }
  std::size_t block_of(std::int32_t unit) const {
    return static_cast<std::size_t>(plan_.parts.units[static_cast<std::size_t>(unit)].block);
  }
  std::int32_t& gradients(Load& load, std::int32_t index) const {
    const plan::Bucket& bucket = plan_.buckets[static_cast<std::size_t>(index)];
    const std::size_t block = block_of(bucket.units.front().first);
    const auto over = reduced_over(plan_.parts.blocks[block].groups);
    const auto place = std::ranges::find(over, bucket.over) - over.begin();
    return load.gradient.at(static_cast<std::size_t>(place)).at(block);
  }

  // A pass takes gradients that have yet to be reduced; those that it knows to be reduced, go.
  void update_gradients(ActionId id) {
    std::erase_if(reduced_, [&](const auto& reduction) {
      const auto& [what, by] = reduction;
      if (!order_->waits(id, by)) return false;
      const auto it = open_.find(what);
      if (it != open_.end() && --it->second == 0) open_.erase(it);
      return true;
    });
    if ((action(id).takes & plan::kGradient) == 0) return;
    for (const std::int32_t what : opened_by_[action(id).units.first]) ++open_[what];
  }

  // Gathers for later passes that may proceed beside this one: those issued since the pass before,
  // or behind this one without waiting for it.
  std::vector<ActionId> gathers_beside(ActionId id) const {
    std::vector<ActionId> gathers;
    if ((action(id).gives_back & plan::kWhole) == 0) return gathers;
    const auto consider = [&](ActionId gather) {
      const Action& it = action(gather);
      if (it.kind != ActionKind::kGather || (gather > id && order_->waits(gather, id))) return;
      if (bucket(it).units.front().first != action(id).units.first) gathers.push_back(gather);
    };
    const auto is_pass = [&](ActionId of) { return action(of).kind == ActionKind::kPass; };
    for (ActionId before = id - 1; before >= 0 && !is_pass(before); --before) consider(before);
    const auto end = static_cast<ActionId>(role_.actions.size());
    for (ActionId behind = id + 1; behind < end && !is_pass(behind); ++behind) consider(behind);
    return gathers;
  }

  // What is whole while the pass runs, before the gathers beside it begin and then. On the lane of
  // the reductions, a gather begins when those before it are done: their gradients have gone.
  const std::vector<Load>& beside(ActionId id) {
    beside_.clear();
    Load before;
    for (const auto& [what, times] : open_) gradients(before, what) += times;
    if ((action(id).gives_back & plan::kWhole) != 0)
      ++before.whole.at(block_of(action(id).units.first));
    const std::vector<ActionId> gathers = gathers_beside(id);
    beside_.push_back(before);
    if (gathers.empty()) return beside_;
    Load then = before;
    std::set<std::int32_t> units;  // each is gathered in one bucket or several
    for (const ActionId gather : gathers) units.insert(bucket(action(gather)).units.front().first);
    for (const std::int32_t unit : units) ++then.whole.at(block_of(unit));
    for (const auto& [what, by] : reduced_)
      if (order_->waits(gathers.front(), by)) --gradients(then, what);
    beside_.push_back(then);
    return beside_;
  }

  // Whether the pass waits for the conversion that ends the one before it.
  bool follows_on(const Action& pass) const {
    if (!waits_for_conversions_ || pass_before_id_ < 0) return false;
    const Action& earlier = action(pass_before_id_);
    return earlier.chunk == pass.chunk && earlier.micro_batch == pass.micro_batch;
  }

  // What is live in the pass at hand, behind the pass `trailing`.
  void keep(const std::vector<Load>& loads, const PassOf& trailing) {
    for (Load load : loads) {
      load.pass = pass_before_;
      load.trailing = trailing;
      load.kept = kept_;
      load.held = held_;
      // In a pipeline that runs full, mostly that of some pass not far before.
      if (std::ranges::find(recent_, load) != recent_.end()) continue;
      recent_[next_recent_++ % recent_.size()] = load;
      loads_.insert(load);
    }
  }

  void add(ActionId id) {
    const Action& pass = action(id);
    const bool is_forward = pass.direction == Direction::kForward;
    const bool receives = std::ranges::any_of(
        pass.after, [&](ActionId of) { return action(of).kind == ActionKind::kReceive; });
    const bool waits_for_pass = receives || blocking_launches_ || follows_on(pass) ||
                                std::ranges::find(pass.after, pass_before_id_) != pass.after.end();
    update_gradients(id);
    PassOf before = waits_for_pass ? PassOf{} : pass_before_;
    const std::vector<Load>& loads = beside(id);
    const auto unit_at = [&](std::int32_t i) {
      return is_forward ? pass.units.first + i : pass.units.first + pass.units.count - 1 - i;
    };
    for (std::int32_t i = 0; i < pass.units.count; ++i) {
      const std::size_t block = block_of(unit_at(i));
      // Among units of one block, what is kept grows to the last one, or shrinks from the first.
      const auto is_like = [&](std::int32_t other) { return block_of(unit_at(other)) == block; };
      const bool is_inner = i >= 2 && i + 1 < pass.units.count && (pass.takes & plan::kHeld) == 0 &&
                            is_like(i - 2) && is_like(i - 1) && is_like(i + 1);
      pass_before_ = {static_cast<std::int32_t>(block), pass.direction, pass.part};
      if (is_forward && (pass.takes & plan::kKept) != 0) ++kept_.at(block);
      if (!is_inner) keep(loads, before);
      if ((pass.gives_back & plan::kKept) != 0) --kept_.at(block);
      if ((pass.takes & plan::kHeld) != 0) ++held_.at(block);
      if ((pass.gives_back & plan::kHeld) != 0) --held_.at(block);
      before = blocking_launches_ || waits_for_conversions_ ? PassOf{} : pass_before_;
    }
    pass_before_id_ = id;
  }

  const plan::StepPlan& plan_;
  const plan::Role& role_;
  bool blocking_launches_;
  bool waits_for_conversions_;
  std::optional<plan::Order> order_;  // where buffers come and go on other lanes
  std::map<std::int32_t, std::set<std::int32_t>> opened_by_;  // buckets by unit
  std::map<std::int32_t, std::int32_t> open_;                 // whole gradients by bucket
  std::map<std::int32_t, ActionId> reduced_;                  // their reductions, perhaps not done
  BlockCounts kept_{};
  BlockCounts held_{};
  PassOf pass_before_{};
  ActionId pass_before_id_ = -1;
  std::vector<Load> beside_;
  std::set<Load> loads_;
  std::array<Load, 16> recent_{};
  std::size_t next_recent_ = 0;
};

}  // namespace

std::vector<std::vector<Axis>> reduced_over(const std::vector<plan::ParameterGroup>& groups) {
  std::set<std::vector<Axis>> over;
  for (const plan::ParameterGroup& group : groups) over.insert(group.over);
  return {over.begin(), over.end()};
}

std::vector<Load> largest(const std::vector<Load>& loads) {
  std::vector<Load> result;
  for (const Load& load : loads) {
    if (std::ranges::any_of(result, [&](const Load& other) { return covers(other, load); }))
      continue;
    std::erase_if(result, [&](const Load& other) { return covers(load, other); });
    result.push_back(load);
  }
  return result;
}

std::vector<Load> loads_of(const plan::StepPlan& plan, const plan::Role& role,
                           bool blocking_launches, bool waits_for_conversions) {
  return Loads(plan, role, blocking_launches, waits_for_conversions).all();
}

Bytes peak(const std::vector<Load>& loads, const std::array<BlockBytes, kBlocks>& bytes) {
  const auto of = [&](const PassOf& pass) -> const BlockBytes& {
    return bytes[static_cast<std::size_t>(pass.block)];
  };
  Bytes most;
  for (const Load& load : loads) {
    Bytes sum = of(load.pass).work[load.pass.form()];
    for (std::size_t b = 0; b < kBlocks; ++b)
      sum += static_cast<double>(load.kept[b]) * bytes[b].kept +
             static_cast<double>(load.held[b]) * bytes[b].held +
             static_cast<double>(load.whole[b]) * bytes[b].whole;
    for (std::size_t g = 0; g < kBucketsOfUnit; ++g)
      for (std::size_t b = 0; b < kBlocks; ++b)
        sum += static_cast<double>(load.gradient[g][b]) * bytes[b].gradient[g];
    const PassOf& before = load.trailing;
    if (before.block >= 0 && of(before).trails[before.form()]) {
      sum += of(before).work[before.form()];
      if (before.part == plan::Part::kWeight)
        sum += of(before).held;
      else if (before.direction == Direction::kBackward)
        sum += of(before).kept;
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace foreshard::search
