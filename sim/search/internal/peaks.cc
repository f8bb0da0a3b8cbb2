// Finds the buffers that are live at once on a stage (peaks.h), for the forms of the Estimator.
// Here they are counts of units; bytes come in with live_of().
#include "sim/search/internal/peaks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/check.h"

#include "strategies/plan/walk.h"

namespace foreshard::search {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;

// Whether `more` has at least as much of everything as `less`.
bool covers(const LiveSet& more, const LiveSet& less) {
  const auto has_less = [](const BlockCounts& a, const BlockCounts& b) {
    return !std::ranges::equal(a, b, std::ranges::greater_equal());
  };
  if (has_less(more.kept, less.kept) || has_less(more.held, less.held) ||
      has_less(more.whole, less.whole))
    return false;
  for (std::size_t g = 0; g < kBucketsOfUnit; ++g)
    if (has_less(more.gradient[g], less.gradient[g])) return false;
  return more.pass == less.pass &&
         (!less.has_tail || (more.has_tail && more.before == less.before));
}

bool has_as_many(const std::vector<LiveUnits>& more, const std::vector<LiveUnits>& less) {
  return std::ranges::all_of(less, [&](const LiveUnits& of) {
    // Units of a run of `less` for which `more` has at least as many.
    std::int32_t covered = 0;
    for (const LiveUnits& other : more) {
      if (other.count < of.count) continue;
      const std::int32_t begin = std::max(other.units.first, of.units.first);
      const std::int32_t end =
          std::min(other.units.first + other.units.count, of.units.first + of.units.count);
      covered += std::max(0, end - begin);
    }
    return covered == of.units.count;
  });
}

// Whether `more` is the same pass with at least as much of everything.
bool covers(const PassForm& more, const PassForm& less) {
  return more.units == less.units && more.direction == less.direction && more.part == less.part &&
         more.takes == less.takes && more.gives_back == less.gives_back &&
         (!less.has_tail || (more.has_tail && more.before == less.before)) &&
         more.beside == less.beside && has_as_many(more.kept, less.kept) &&
         has_as_many(more.held, less.held);
}

// Adds `one` unless another covers it, and removes those that it covers.
template <class T>
void keep_largest(std::vector<T>& largest, const T& one) {
  if (std::ranges::any_of(largest, [&](const T& other) { return covers(other, one); })) return;
  std::erase_if(largest, [&](const T& other) { return covers(one, other); });
  largest.push_back(one);
}

// unit -> how often something of it is live.
class Live {
 public:
  void add(const plan::UnitRange& units, std::int32_t count) {
    if (units.first < first_ || times_.empty()) {
      if (times_.empty()) first_ = units.first;
      times_.insert(times_.begin(), static_cast<std::size_t>(first_ - units.first), 0);
      first_ = units.first;
    }
    const auto begin = static_cast<std::size_t>(units.first - first_);
    const auto end = begin + static_cast<std::size_t>(units.count);
    if (times_.size() < end) times_.resize(end, 0);
    for (std::size_t i = begin; i < end; ++i) times_[i] += count;
  }
  std::vector<LiveUnits> runs() const {
    std::vector<LiveUnits> runs;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (times_[i] == 0) continue;
      if (i > 0 && times_[i] == times_[i - 1])
        ++runs.back().units.count;
      else
        runs.push_back({{first_ + static_cast<std::int32_t>(i), 1}, times_[i]});
    }
    return runs;
  }

 private:
  std::int32_t first_ = 0;
  std::vector<std::int32_t> times_;
};

class Passes {
 public:
  Passes(const plan::StepPlan& plan, const plan::Role& role,
         const std::vector<std::int32_t>& first_like, bool blocking_launches)
      : plan_(plan), role_(role), first_like_(first_like), blocking_launches_(blocking_launches) {
    constexpr int kOfBuckets = plan::kGradient | plan::kWhole;
    bool has_buckets = false;
    for (const Action& action : role.actions) {
      has_buckets = has_buckets || ((action.takes | action.gives_back) & kOfBuckets) != 0;
      if (action.kind == ActionKind::kReduce)
        opened_by_[bucket(action).opened_by].insert(action.what);
      has_buckets = has_buckets || action.kind == ActionKind::kOffload;
    }
    if (has_buckets) order_.emplace(role, blocking_launches);
  }

  std::vector<PassForm> all() {
    for (ActionId id = 0; id < static_cast<ActionId>(role_.actions.size()); ++id) {
      const Action& it = action(id);
      if (it.kind == ActionKind::kPass) {
        add(id);
        if ((it.gives_back & plan::kWhole) != 0) whole_.erase(it.units.first);
      } else if (it.kind == ActionKind::kGather && (it.takes & plan::kWhole) != 0) {
        whole_.insert(bucket(it).units.front().first);
      } else if (it.kind == ActionKind::kReduce && (it.gives_back & plan::kGradient) != 0) {
        reduced_[it.what] = id;
      } else if (it.kind == ActionKind::kOffload) {
        offloads_.push_back(id);
      } else if (it.kind == ActionKind::kFetch) {
        kept_.add({like(it.units.first), 1}, 1);  // the fetch may begin as soon as it is issued
      } else if (it.kind == ActionKind::kSync && it.after.empty()) {
        pass_before_ = {};
      }
    }
    return std::move(passes_);
  }

 private:
  const Action& action(ActionId id) const { return role_.actions[static_cast<std::size_t>(id)]; }
  const plan::Bucket& bucket(const Action& of) const { return bucket(of.what); }
  const plan::Bucket& bucket(std::int32_t index) const {
    return plan_.buckets[static_cast<std::size_t>(index)];
  }
  // The representative of a unit of the role.
  std::int32_t like(std::int32_t unit) const {
    for (std::size_t chunk = 0; chunk < role_.chunks.size(); ++chunk)
      if (role_.chunks[chunk].units.contains(unit))
        return first_like_[chunk] + unit - role_.chunks[chunk].units.first;
    FORESHARD_CHECK(false && "a pass of the role's own units");
    return -1;
  }
  plan::UnitRange like(const Action& pass) const {
    const auto chunk = static_cast<std::size_t>(pass.chunk);
    return {first_like_[chunk] + pass.units.first - role_.chunks[chunk].units.first,
            pass.units.count};
  }

  // Adds the gradients that a pass opens, and removes those that are certainly reduced before it.
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

  // Gathers for later passes that may run beside this one: those issued since the pass before, or
  // after this one without waiting for it.
  std::vector<ActionId> gathers_beside(ActionId id) const {
    std::vector<ActionId> gathers;
    if (!order_) return gathers;
    const auto consider = [&](ActionId gather) {
      const Action& it = action(gather);
      if (it.kind != ActionKind::kGather || (it.takes & plan::kWhole) == 0 ||
          (gather > id && order_->waits(gather, id)))
        return;
      if (bucket(it).units.front().first != action(id).units.first) gathers.push_back(gather);
    };
    const auto is_pass = [&](ActionId of) { return action(of).kind == ActionKind::kPass; };
    for (ActionId before = id - 1; before >= 0 && !is_pass(before); --before) consider(before);
    const auto end = static_cast<ActionId>(role_.actions.size());
    for (ActionId behind = id + 1; behind < end && !is_pass(behind); ++behind) consider(behind);
    return gathers;
  }

  void add_gradient(PassForm::LiveParameters& beside, std::int32_t what, std::int32_t times) const {
    const std::int32_t unit = bucket(what).units.front().first;
    const auto over = reduced_over(plan_.parts.block_of(unit).groups);
    const auto place = std::ranges::find(over, bucket(what).over) - over.begin();
    FORESHARD_CHECK(place < static_cast<std::ptrdiff_t>(kBucketsOfUnit));
    beside.gradient.push_back({like(unit), static_cast<std::int32_t>(place), times});
  }

  // What is whole while the pass runs: before gathers beside it begin, and afterwards. Gathers run
  // on the lane of the reductions, so when one begins, the reductions before it are done and their
  // gradients are freed.
  std::vector<PassForm::LiveParameters> beside(ActionId id) const {
    PassForm::LiveParameters before;
    for (const auto& [what, times] : open_) add_gradient(before, what, times);
    if (whole_.contains(action(id).units.first))
      before.whole.push_back(like(action(id).units.first));
    const std::vector<ActionId> gathers = gathers_beside(id);
    if (gathers.empty()) return {before};
    PassForm::LiveParameters then = before;
    std::set<std::int32_t> units;  // each is gathered in one bucket or several
    for (const ActionId gather : gathers) units.insert(bucket(action(gather)).units.front().first);
    for (const std::int32_t unit : units) then.whole.push_back(like(unit));
    for (const auto& [what, by] : reduced_)
      if (order_->waits(gathers.front(), by)) add_gradient(then, what, -1);
    return {before, then};
  }

  // Whether the pass waits for the conversion at the end of the pass before.
  bool follows_on(const Action& pass) const {
    if (pass_before_id_ < 0) return false;
    const Action& earlier = action(pass_before_id_);
    return earlier.chunk == pass.chunk && earlier.micro_batch == pass.micro_batch;
  }

  void add(ActionId id) {
    const Action& pass = action(id);
    const bool receives = std::ranges::any_of(
        pass.after, [&](ActionId of) { return action(of).kind == ActionKind::kReceive; });
    const bool waits_for_pass = receives || blocking_launches_ || follows_on(pass) ||
                                std::ranges::find(pass.after, pass_before_id_) != pass.after.end();
    update_gradients(id);
    // Activations are certainly on the host if the pass waits for their copy.
    std::erase_if(offloads_, [&](ActionId offload) {
      if (!order_->waits(id, offload)) return false;
      kept_.add({like(action(offload).units.first), 1}, -1);
      return true;
    });
    const plan::UnitRange units = like(pass);
    PassForm form{.units = units,
                  .direction = pass.direction,
                  .part = pass.part,
                  .takes = pass.takes,
                  .gives_back = pass.gives_back,
                  .before = pass_before_,
                  .has_tail = pass_before_.unit >= 0 && !waits_for_pass,
                  .beside = beside(id),
                  .kept = kept_.runs(),
                  .held = held_.runs()};
    keep_largest(passes_, form);
    if (pass.direction == Direction::kForward && (pass.takes & plan::kKept) != 0)
      kept_.add(units, 1);
    if ((pass.gives_back & plan::kKept) != 0) kept_.add(units, -1);
    if ((pass.takes & plan::kHeld) != 0) held_.add(units, 1);
    if ((pass.gives_back & plan::kHeld) != 0) held_.add(units, -1);
    if (units.count > 0)
      pass_before_ = {
          pass.direction == Direction::kForward ? units.first + units.count - 1 : units.first,
          pass.direction, pass.part};
    pass_before_id_ = id;
  }

  const plan::StepPlan& plan_;
  const plan::Role& role_;
  const std::vector<std::int32_t>& first_like_;
  bool blocking_launches_;
  std::optional<plan::HappensBefore> order_;  // set where other lanes allocate or free buffers
  std::map<std::int32_t, std::set<std::int32_t>> opened_by_;  // unit -> buckets
  std::map<std::int32_t, std::int32_t> open_;                 // bucket -> whole gradients
  std::map<std::int32_t, ActionId> reduced_;  // bucket -> its reduction, maybe not done
  std::vector<ActionId> offloads_;            // offloads that are maybe not done
  std::set<std::int32_t> whole_;              // gathered units that are not freed
  Live kept_;
  Live held_;
  UnitPass pass_before_{};
  ActionId pass_before_id_ = -1;
  std::vector<PassForm> passes_;
};

// Computes what is live in each unit of the passes.
class Loads {
 public:
  Loads(const StagePasses& passes, const Labels& labels) : passes_(passes), labels_(labels) {}

  std::vector<LiveSet> all() {
    for (const PassForm& pass : passes_.all) add(pass);
    return std::move(live_sets_);
  }

 private:
  std::size_t block_of(std::int32_t unit) const {
    return static_cast<std::size_t>(labels_.block(unit));
  }
  BlockCounts counts(const std::vector<LiveUnits>& live) const {
    BlockCounts sum{};
    for (const LiveUnits& one : live) {
      const BlockCounts own = labels_.counts(one.units);
      for (std::size_t b = 0; b < kBlocks; ++b) sum[b] += one.count * own[b];
    }
    return sum;
  }

  void add(const PassForm& pass) {
    const bool is_forward = pass.direction == Direction::kForward;
    LiveSet live_set{.kept = counts(pass.kept), .held = counts(pass.held)};
    if (pass.before.unit >= 0)
      live_set.before = {labels_.block(pass.before.unit), pass.before.direction, pass.before.part};
    live_set.has_tail = pass.has_tail;
    const auto unit_at = [&](std::int32_t i) {
      return is_forward ? pass.units.first + i : pass.units.first + pass.units.count - 1 - i;
    };
    for (std::int32_t i = 0; i < pass.units.count; ++i) {
      const std::size_t block = block_of(unit_at(i));
      // Within units of one block, kept memory grows up to the last unit, or shrinks from the
      // first.
      const auto is_like = [&](std::int32_t other) { return block_of(unit_at(other)) == block; };
      const bool is_inner = i >= 2 && i + 1 < pass.units.count && (pass.takes & plan::kHeld) == 0 &&
                            is_like(i - 2) && is_like(i - 1) && is_like(i + 1);
      live_set.pass = {static_cast<std::int32_t>(block), pass.direction, pass.part};
      if (is_forward && (pass.takes & plan::kKept) != 0) ++live_set.kept[block];
      if (!is_inner)
        for (const PassForm::LiveParameters& beside : pass.beside) keep(live_set, beside);
      if ((pass.gives_back & plan::kKept) != 0) --live_set.kept[block];
      if ((pass.takes & plan::kHeld) != 0) ++live_set.held[block];
      if ((pass.gives_back & plan::kHeld) != 0) --live_set.held[block];
      live_set.before = live_set.pass;
      live_set.has_tail = false;  // a unit waits for what ends the one before it
    }
  }

  void keep(LiveSet live_set, const PassForm::LiveParameters& beside) {
    for (const std::int32_t unit : beside.whole) ++live_set.whole[block_of(unit)];
    for (const auto& [unit, place, times] : beside.gradient)
      live_set.gradient[static_cast<std::size_t>(place)][block_of(unit)] += times;
    keep_largest(live_sets_, live_set);
  }

  const StagePasses& passes_;
  const Labels& labels_;
  std::vector<LiveSet> live_sets_;
};

}  // namespace

std::vector<std::vector<Axis>> reduced_over(const std::vector<plan::ParameterGroup>& groups) {
  std::set<std::vector<Axis>> over;
  for (const plan::ParameterGroup& group : groups) over.insert(group.over);
  return {over.begin(), over.end()};
}

void Labels::add(std::int32_t block) {
  if (before.empty()) before.emplace_back();
  block_of.push_back(block);
  before.push_back(before.back());
  ++before.back().at(static_cast<std::size_t>(block));
}

BlockCounts Labels::counts(const plan::UnitRange& units) const {
  const auto begin = static_cast<std::size_t>(units.first);
  const BlockCounts& first = before[begin];
  BlockCounts counts = before[begin + static_cast<std::size_t>(units.count)];
  for (std::size_t b = 0; b < kBlocks; ++b) counts[b] -= first[b];
  return counts;
}

Labels labels_of(const plan::PlannedModel& parts) {
  Labels labels;
  for (const plan::Unit& unit : parts.units) labels.add(unit.block);
  return labels;
}

void StagePasses::add(const StagePasses& others) {
  for (const PassForm& pass : others.all) keep_largest(all, pass);
}

StagePasses passes_of(const plan::StepPlan& plan, const plan::Role& role,
                      const std::vector<std::int32_t>& first_like, bool blocking_launches) {
  return {.all = Passes(plan, role, first_like, blocking_launches).all()};
}

std::vector<LiveSet> live_sets_of(const StagePasses& passes, const Labels& labels) {
  return Loads(passes, labels).all();
}

LiveBytes live_of(const LiveSet& live_set, const std::array<BlockBytes, kBlocks>& bytes) {
  const auto of = [&](const BlockPass& pass) -> const BlockBytes& {
    return bytes[static_cast<std::size_t>(pass.block)];
  };
  Bytes own = of(live_set.pass).work[live_set.pass.form()];
  Bytes others;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    own += static_cast<double>(live_set.kept[b]) * bytes[b].kept +
           static_cast<double>(live_set.held[b]) * bytes[b].held;
    others += static_cast<double>(live_set.whole[b]) * bytes[b].whole;
  }
  if (live_set.whole[static_cast<std::size_t>(live_set.pass.block)] > 0) {
    own += of(live_set.pass).whole;
    others -= of(live_set.pass).whole;
  }
  for (std::size_t g = 0; g < kBucketsOfUnit; ++g)
    for (std::size_t b = 0; b < kBlocks; ++b)
      others += static_cast<double>(live_set.gradient[g][b]) * bytes[b].gradient[g];
  if (live_set.has_tail) others += tail_bytes(live_set.before, of(live_set.before));
  return {.most = own + others, .least = own};
}

bool depends_on_others(const LiveSet& live_set) {
  const auto units_in = [](const BlockCounts& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0);
  };
  // If units are gathered, the pass's own unit is among them.
  return live_set.has_tail || units_in(live_set.whole) > 1 ||
         std::ranges::any_of(live_set.gradient, units_in);
}

}  // namespace foreshard::search
