// Checks the invariants of a plan (step_plan.h, verify) that concern a single role.
#include "strategies/plan/internal/verify_role.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "strategies/plan/walk.h"

namespace foreshard::plan::internal {
namespace {

class RoleCheck {
 public:
  RoleCheck(const StepPlan& plan, std::size_t role) : plan_(plan), role_(plan.roles[role]) {}

  std::optional<std::string> fault() {
    // Order relies on the third invariant.
    if (auto text = references()) return text;
    order_.emplace(role_);
    for (const auto check : {&RoleCheck::slots, &RoleCheck::passes, &RoleCheck::whole_parameters,
                             &RoleCheck::reductions, &RoleCheck::gathers, &RoleCheck::transfers,
                             &RoleCheck::buffers, &RoleCheck::optimizer, &RoleCheck::offloads}) {
      if (auto text = (this->*check)()) return text;
    }
    return std::nullopt;
  }

 private:
  using Fault = std::optional<std::string>;
  ActionId size() const { return static_cast<ActionId>(role_.actions.size()); }
  const Action& action(ActionId id) const { return role_.actions[static_cast<std::size_t>(id)]; }
  const Bucket& bucket(const Action& of) const {
    return plan_.buckets[static_cast<std::size_t>(of.what)];
  }
  bool trains() const {
    return std::ranges::any_of(role_.actions,
                               [](const Action& a) { return a.kind == ActionKind::kOptimizer; });
  }
  std::string at(int invariant, ActionId id, std::string_view what) const {
    return fmt::format("invariant {}: {}, action {}: {}", invariant, role_.name, id, what);
  }
  static bool is(const Action& action, ActionKind kind, Direction direction) {
    return action.kind == kind && action.direction == direction;
  }
  std::int32_t piece_of(std::int32_t chunk) const {
    return role_.chunks[static_cast<std::size_t>(chunk)].piece;
  }
  std::string unit_name(std::int32_t unit) const {
    return plan_.parts.units[static_cast<std::size_t>(unit)].name;
  }

  // Indices that actions name are within the plan.
  Fault references() {
    const auto within = [](auto index, const auto& list) {
      return index >= 0 && index < static_cast<decltype(index)>(list.size());
    };
    const auto units_within = [&](const UnitRange& run) {
      return run.first >= 0 && run.count >= 0 &&
             run.first + run.count <= static_cast<std::int32_t>(plan_.parts.units.size());
    };
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      bool known = within(it.chunk, role_.chunks) && units_within(it.units);
      switch (target_of(it.kind)) {
        case Target::kBucket:
          known = known && within(it.what, plan_.buckets) &&
                  std::ranges::all_of(bucket(it).units, units_within);
          break;
        case Target::kCopies:
          known = known && within(it.what, plan_.copies);
          break;
        case Target::kCrossing:
          known = known && within(it.what, plan_.crossings);
          break;
        case Target::kUnits:
        case Target::kRole:
        case Target::kNone:
          break;
      }
      if (!known) return at(3, id, "names a chunk, units or an entry that the plan has not");
      ActionId before = -1;
      for (const ActionId earlier : it.after) {
        if (earlier <= before || earlier >= id)
          return at(3, id, fmt::format("waits for action {}, out of order", earlier));
        before = earlier;
      }
    }
    return std::nullopt;
  }

  // The receives of all slots. A receive may be issued in a slot before the one whose pass reads
  // it.
  void find_receives() {
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      if (it.kind == ActionKind::kReceive)
        receives_[{it.direction, it.chunk, it.micro_batch - it.micro_batch % role_.together}]
            .push_back(id);
    }
  }

  // A slot has the passes of all units of its chunk, and the transfers over the crossings on both
  // sides of its piece.
  Fault slots() {
    find_receives();
    auto unread = receives_;
    const auto crossings = static_cast<std::int32_t>(plan_.crossings.size());
    for (std::size_t i = 0; i < role_.slots.size(); ++i) {
      const PassSlot& slot = role_.slots[i];
      const ActionId end = i + 1 < role_.slots.size() ? role_.slots[i + 1].first : role_.end;
      const Chunk& chunk = role_.chunks.at(static_cast<std::size_t>(slot.chunk));
      if (slot.beside && !is_pair(i))
        return fmt::format("invariant 2: {}, slot {}: runs beside one that it cannot run beside",
                           role_.name, i);
      const bool is_forward = slot.direction == Direction::kForward;
      const std::int32_t in = is_forward ? chunk.piece - 1 : chunk.piece;
      const std::int32_t out = is_forward ? chunk.piece : chunk.piece - 1;
      const bool weights = slot.part == PassPart::kWeight;
      std::int32_t units = 0;
      std::vector<std::int32_t> received;
      std::vector<std::int32_t> sent;
      // Each message continues with the micro-batches after the previous message.
      const auto continues = [&](const Action& it, const std::vector<std::int32_t>& crossed) {
        const std::int32_t done =
            it.kind == ActionKind::kPass
                ? 0
                : static_cast<std::int32_t>(crossed.size()) *
                      plan_.crossings[static_cast<std::size_t>(it.what)].together;
        return it.chunk == slot.chunk && it.direction == slot.direction &&
               it.micro_batch == slot.micro_batch + done;
      };
      if (!weights) {
        const auto of = std::exchange(unread[{slot.direction, slot.chunk, slot.micro_batch}], {});
        for (const ActionId id : of) {
          if (!continues(action(id), received)) return at(6, id, "is of another slot");
          received.push_back(action(id).what);
        }
      }
      for (ActionId id = slot.first; id < end; ++id) {
        const Action& it = action(id);
        const bool is_pass = it.kind == ActionKind::kPass;
        if (!is_pass && it.kind != ActionKind::kSend) continue;
        if (!continues(it, sent)) return at(is_pass ? 2 : 6, id, "is of another slot");
        if (is_pass && it.part != slot.part && (it.part != PassPart::kWhole || weights))
          return at(2, id, "is of another slot");
        if (is_pass && it.units.count > 0 &&
            !(chunk.units.contains(it.units.first) &&
              chunk.units.contains(it.units.first + it.units.count - 1)))
          return at(2, id, "passes units of another chunk");
        if (is_pass) units += it.units.count;
        if (!is_pass) sent.push_back(it.what);
      }
      const auto only = [&](std::int32_t crossing) {
        const bool is_sent = crossing >= 0 && crossing < crossings && !weights &&
                             !plan_.crossings[static_cast<std::size_t>(crossing)].is_local();
        if (!is_sent) return std::vector<std::int32_t>{};
        const std::int32_t together = plan_.crossings[static_cast<std::size_t>(crossing)].together;
        return std::vector(static_cast<std::size_t>(role_.together / together), crossing);
      };
      const auto of_slot = [&](int invariant, std::string_view what) {
        return fmt::format("invariant {}: {}, {} {} of chunk {}: {}", invariant, role_.name,
                           is_forward ? "forward" : "backward", slot.micro_batch, slot.chunk, what);
      };
      const UnitRange wanted = is_forward ? chunk.units : plan_.parts.with_backward(chunk.units);
      if (units != (weights ? splitting(wanted) : wanted.count))
        return of_slot(2, "does not pass the units of its chunk");
      if (received != only(in))
        return of_slot(6, "does not receive what the piece before it sends");
      if (sent != only(out)) return of_slot(6, "does not send what the piece behind it reads");
    }
    for (const auto& [slot, ids] : unread)
      if (!ids.empty()) return at(6, ids.front(), "receives for no slot");
    return std::nullopt;
  }

  // Slot `i` and the one before it: a forward and a backward pass that do not depend on each other.
  bool is_pair(std::size_t i) const {
    if (i == 0) return false;
    const PassSlot& one = role_.slots[i - 1];
    const PassSlot& other = role_.slots[i];
    return !one.beside && one.direction == Direction::kForward &&
           other.direction == Direction::kBackward && other.part != PassPart::kWeight &&
           std::pair(one.chunk, one.micro_batch) != std::pair(other.chunk, other.micro_batch);
  }

  bool splits(std::int32_t unit) const { return plan_.parts.block_of(unit).splits; }
  std::int32_t splitting(const UnitRange& units) const {
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < units.count; ++i) count += splits(units.first + i) ? 1 : 0;
    return count;
  }

  Fault passes() {
    using PassActions = std::map<std::pair<std::int32_t, std::int32_t>, ActionId>;
    PassActions forward;  // by unit, micro-batch
    PassActions backward;
    PassActions inputs;
    std::set<std::int32_t> micro_batches;
    for (const PassSlot& slot : role_.slots) micro_batches.insert(slot.micro_batch);
    for (ActionId id = 0; id < size(); ++id) {
      const Action& pass = action(id);
      if (pass.kind != ActionKind::kPass) continue;
      for (std::int32_t i = 0; i < pass.units.count; ++i) {
        const std::pair key{pass.units.first + i, pass.micro_batch};
        const bool is_forward = pass.direction == Direction::kForward;
        const bool is_input = pass.part == PassPart::kInput;
        if (!(is_forward ? forward
              : is_input ? inputs
                         : backward)
                 .emplace(key, id)
                 .second ||
            (is_input && backward.contains(key)))
          return at(2, id, fmt::format("passes {} twice", unit_name(key.first)));
        if (is_forward) continue;
        if (pass.part != PassPart::kWhole && !splits(key.first))
          return at(2, id, fmt::format("splits the pass of {}", unit_name(key.first)));
        const bool behind = pass.part == PassPart::kWeight;
        const PassActions& earlier = behind ? inputs : forward;
        const auto it = earlier.find(key);
        if (it == earlier.end() || !order_->waits(id, it->second))
          return at(2, id,
                    fmt::format("does not wait for {} of {}",
                                behind ? "the gradients of inputs" : "the forward pass",
                                unit_name(key.first)));
      }
    }
    for (const auto& [key, id] : inputs)
      if (const auto it = backward.find(key); it == backward.end() || it->second < id)
        return at(2, id,
                  fmt::format("gradients of weights of {} never follow", unit_name(key.first)));
    std::size_t ahead = 0;
    std::size_t back = 0;
    for (const Chunk& chunk : role_.chunks) {
      ahead += static_cast<std::size_t>(chunk.units.count) * micro_batches.size();
      if (trains())
        back += static_cast<std::size_t>(plan_.parts.with_backward(chunk.units).count) *
                micro_batches.size();
    }
    if (forward.size() != ahead || backward.size() != back)
      return fmt::format(
          "invariant 2: {} makes {} forward and {} backward passes of units, not {} and {}",
          role_.name, forward.size(), backward.size(), ahead, back);
    return std::nullopt;
  }

  Fault whole_parameters() {
    if (plan_.states.gather != StateSharding::Gather::kBeforeUse) return std::nullopt;
    // unit -> axes -> gather, for units that are whole.
    std::map<std::int32_t, std::map<std::vector<Axis>, ActionId>> gathered;
    // Units that may be whole, except held ones, each with the pass that frees it (-1: none yet).
    std::vector<std::pair<std::int32_t, ActionId>> whole;
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      if (it.kind == ActionKind::kGather) {
        const std::int32_t unit = bucket(it).units.front().first;
        auto& of_unit = gathered[unit];
        if (of_unit.empty() || of_unit.contains(bucket(it).over)) whole.emplace_back(unit, -1);
        of_unit[bucket(it).over] = id;
        std::erase_if(whole, [&](auto& u) { return u.second >= 0 && order_->waits(id, u.second); });
        if (whole.size() > 2) return at(4, id, "a third unit is whole");
      }
      if (it.kind != ActionKind::kPass) continue;
      for (std::int32_t i = 0; i < it.units.count; ++i) {
        const std::int32_t unit = it.units.first + i;
        auto& of_unit = gathered[unit];
        for (const ParameterGroup& group : read_groups(unit)) {
          const auto found = of_unit.find(group.over);
          if (found == of_unit.end() || !order_->waits(id, found->second))
            return at(4, id, fmt::format("{} is not whole", unit_name(unit)));
        }
        if ((it.gives_back & kWhole) != 0) of_unit.clear();
        const auto known = std::ranges::find(whole, std::pair(unit, ActionId{-1}));
        if (known == whole.end()) continue;
        known->second = id;
        if ((it.gives_back & kWhole) == 0) whole.erase(known);  // held for a later pass
      }
    }
    return std::nullopt;
  }

  Fault reductions() {
    using Reduce = StateSharding::Reduce;
    const Reduce when = plan_.states.reduce;
    // (unit, axes of a group) -> backward passes that no reduction has followed yet.
    std::map<std::pair<std::int32_t, std::vector<Axis>>, std::vector<ActionId>> open;
    std::set<std::int32_t> reduced;
    std::set<std::int32_t> reduced_inside;
    // Reductions that freed gradients, in order, as (pass, last reduction after that pass).
    std::vector<std::pair<ActionId, ActionId>> freed;
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      if (it.reduces && (when == Reduce::kNever || when == Reduce::kEndOfStep))
        return at(5, id, "reduces gradients that stay until the end of the step");
      if (completes_gradients(it)) {
        for (std::int32_t unit = it.units.first; unit < it.units.first + it.units.count; ++unit) {
          if (it.reduces && !reduced_inside.insert(unit).second && when != Reduce::kEveryMicroBatch)
            return at(5, id, fmt::format("reduces gradients of {} again", unit_name(unit)));
          if (const auto& tie = plan_.parts.tie; tie && !tie->is_frozen && tie->reads_copy(unit) &&
                                                 ways(tie->over, plan_.parts.mesh) > 1)
            open[{tie->on_one_role ? tie->first_unit : tie->others.first, tie->over}].push_back(id);
          for (const ParameterGroup& group : groups_of(unit)) {
            if (!plan_.parts.is_copied(group) || group.trained() == 0) continue;
            std::vector<ActionId>& passes = open[{unit, group.over}];
            passes.push_back(id);
            if (it.reduces && group.trained() == group.reduced_inside) passes.clear();
          }
        }
      }
      if (it.kind != ActionKind::kReduce) continue;
      if (!reduced.insert(it.what).second && when != Reduce::kEveryMicroBatch)
        return at(5, id, "reduces a bucket again");
      ActionId last_pass = -1;
      for (const UnitRange& run : bucket(it).units) {
        for (std::int32_t i = 0; i < run.count; ++i) {
          for (const ActionId pass : std::exchange(open[{run.first + i, bucket(it).over}], {})) {
            if (!order_->waits(id, pass))
              return at(5, id,
                        fmt::format("does not wait for the backward pass of {}",
                                    unit_name(run.first + i)));
            last_pass = std::max(last_pass, pass);
          }
        }
      }
      if ((it.gives_back & kGradient) == 0) continue;
      if (freed.empty() || freed.back().first != last_pass) freed.emplace_back();
      freed.back() = {last_pass, id};
      if (freed.size() > 2 && last_pass >= 0 &&
          !order_->waits(last_pass, freed[freed.size() - 3].second))
        return at(5, last_pass, "a third gradient is ready and not reduced");
    }
    if (when == Reduce::kNever) return std::nullopt;
    for (const auto& [group, passes] : open)
      if (!passes.empty())
        return at(5, passes.back(),
                  fmt::format("gradients of {} are not reduced", unit_name(group.first)));
    return std::nullopt;
  }

  const std::vector<ParameterGroup>& groups_of(std::int32_t unit) {
    const auto [it, is_new] = groups_.try_emplace(unit);
    if (is_new) it->second = plan_.parts.own_groups(unit);
    return it->second;
  }

  Fault gathers() {
    using Gather = StateSharding::Gather;
    const Gather when = plan_.states.gather;
    if (when != Gather::kStartOfStep && (when != Gather::kEndOfStep || !trains()))
      return std::nullopt;
    std::map<std::pair<std::int32_t, std::vector<Axis>>, ActionId> gathered;  // by unit and axes
    ActionId stepped = -1;
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      if (it.kind == ActionKind::kOptimizer) stepped = id;
      if (it.kind == ActionKind::kGather) {
        for (const UnitRange& run : bucket(it).units) {
          for (std::int32_t i = 0; i < run.count; ++i)
            if (!gathered.try_emplace({run.first + i, bucket(it).over}, id).second)
              return at(5, id, fmt::format("gathers {} again", unit_name(run.first + i)));
        }
        if (when == Gather::kEndOfStep && (stepped < 0 || !order_->waits(id, stepped)))
          return at(5, id, "does not wait for the optimizer");
      }
      if (it.kind != ActionKind::kPass || when != Gather::kStartOfStep) continue;
      for (std::int32_t i = 0; i < it.units.count; ++i) {
        for (const ParameterGroup& group : cut_groups(it.units.first + i)) {
          const auto found = gathered.find({it.units.first + i, group.over});
          if (found == gathered.end() || !order_->waits(id, found->second))
            return at(5, id,
                      fmt::format("does not wait for the parameters of {}",
                                  unit_name(it.units.first + i)));
        }
      }
    }
    for (const Chunk& chunk : role_.chunks)
      for (std::int32_t i = 0; i < chunk.units.count; ++i)
        for (const ParameterGroup& group : cut_groups(chunk.units.first + i))
          if (!gathered.contains({chunk.units.first + i, group.over}))
            return fmt::format("invariant 5: {} does not gather {}", role_.name,
                               unit_name(chunk.units.first + i));
    return std::nullopt;
  }

  // Parameters that data-parallel ranks hold in shards: cut_groups, the unit's own trained ones;
  // read_groups, all that its passes read.
  const std::vector<ParameterGroup>& cut_groups(std::int32_t unit) {
    const auto [it, is_new] = cut_.try_emplace(unit);
    if (is_new) it->second = trained_alone(plan_.parts.cut_groups(groups_of(unit)));
    return it->second;
  }
  std::vector<ParameterGroup> read_groups(std::int32_t unit) const {
    return plan_.parts.cut_groups(plan_.parts.block_of(unit).groups);
  }

  // Each slot receives before its first pass and sends after its last one.
  Fault transfers() {
    ActionId last_pass = -1;
    std::map<std::tuple<Direction, std::int32_t, std::int32_t>, ActionId> last_of;
    for (std::size_t i = 0; i < role_.slots.size(); ++i) {
      const ActionId end = i + 1 < role_.slots.size() ? role_.slots[i + 1].first : role_.end;
      const PassSlot& slot = role_.slots[i];
      const auto& received = receives_[{slot.direction, slot.chunk, slot.micro_batch}];
      const auto waits_for_all = [&](ActionId id) {
        return std::ranges::all_of(received, [&](ActionId one) { return order_->waits(id, one); });
      };
      for (ActionId id = role_.slots[i].first; id < end; ++id) {
        const Action& it = action(id);
        if (it.kind == ActionKind::kPass) {
          if (it.part == PassPart::kWeight) continue;
          if (!waits_for_all(id))
            return at(6, id, "does not wait for what it reads to be received");
          last_pass = id;
          // This role may have made what is read: the piece before (behind, in a backward pass).
          const std::int32_t piece = piece_of(it.chunk);
          last_of[{it.direction, piece, it.micro_batch}] = id;
          const auto made = last_of.find(
              {it.direction, it.direction == Direction::kForward ? piece - 1 : piece + 1,
               it.micro_batch});
          if (made != last_of.end() && !order_->waits(id, made->second))
            return at(6, id, "does not wait for the piece whose result it reads");
        }
        if (it.kind != ActionKind::kSend) continue;
        if (last_pass >= 0 && !order_->waits(id, last_pass))
          return at(6, id, "does not wait for the pass that makes the tensor");
        if (last_pass < role_.slots[i].first && !waits_for_all(id))
          return at(6, id, "does not wait for what it hands on");
      }
    }
    return std::nullopt;
  }

  Fault buffers() {
    // unit -> buckets whose gradients its backward pass allocates.
    std::map<std::int32_t, std::set<std::int32_t>> opened_by;
    for (const Action& it : role_.actions)
      if (it.kind == ActionKind::kReduce) opened_by[bucket(it).opened_by].insert(it.what);
    std::set<std::tuple<std::uint8_t, std::int32_t, std::int32_t, std::vector<Axis>>> live;
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      for (const Buffers set : {kKept, kWhole, kGradient, kKeptForWeight, kHeld}) {
        // Owners of such a buffer: units (with axes for kWhole), or buckets for kGradient.
        std::set<std::pair<std::int32_t, std::vector<Axis>>> of;
        const bool copies = it.kind == ActionKind::kOffload || it.kind == ActionKind::kFetch;
        if (it.kind == ActionKind::kPass || copies) {
          for (std::int32_t i = 0; i < it.units.count; ++i) {
            const std::int32_t unit = it.units.first + i;
            if (set == kGradient) {
              for (const std::int32_t what : opened_by[unit]) of.insert({what, {}});
            } else if (set == kWhole) {
              for (const ParameterGroup& group : read_groups(unit)) of.insert({unit, group.over});
            } else {
              of.insert({unit, {}});
            }
          }
        } else if (it.kind == ActionKind::kReduce) {
          of.insert({it.what, {}});
        } else if (it.kind == ActionKind::kGather) {
          for (const UnitRange& run : bucket(it).units)
            for (std::int32_t i = 0; i < run.count; ++i)
              of.insert({run.first + i, bucket(it).over});
        }
        for (const auto& [what, over] : of) {
          const std::tuple key{static_cast<std::uint8_t>(set), what, it.micro_batch, over};
          if ((it.takes & set) != 0 && !live.insert(key).second)
            return at(7, id, "takes a buffer that is there");
          if ((it.gives_back & set) != 0 && live.erase(key) == 0)
            return at(7, id, "gives a buffer back that is not there");
        }
      }
    }
    if (!live.empty())
      return fmt::format("invariant 7: {} leaves {} buffers", role_.name, live.size());
    return std::nullopt;
  }

  Fault optimizer() {
    for (ActionId step = 0; step < size(); ++step) {
      const bool steps = action(step).kind == ActionKind::kOptimizer;
      if (!steps && action(step).kind != ActionKind::kReduceCopies) continue;
      for (ActionId id = 0; id < size(); ++id) {
        const Action& it = action(id);
        const bool makes_gradients = is(it, ActionKind::kPass, Direction::kBackward) ||
                                     it.kind == ActionKind::kReduce ||
                                     (steps && it.kind == ActionKind::kOffloadGradients) ||
                                     (steps && it.kind == ActionKind::kReduceCopies);
        if (makes_gradients && (id > step || !order_->waits(step, id)))
          return at(8, step, fmt::format("does not wait for action {}", id));
      }
    }
    return std::nullopt;
  }

  Fault offloads() {
    // (unit, micro-batch) -> the last pass, copy or fetch.
    std::map<std::pair<std::int32_t, std::int32_t>, ActionId> last;
    std::map<std::int32_t, ActionId> reduced;  // by bucket
    for (ActionId id = 0; id < size(); ++id) {
      const Action& it = action(id);
      if (it.kind == ActionKind::kReduce) reduced[it.what] = id;
      if (it.kind == ActionKind::kOffloadGradients &&
          (!reduced.contains(it.what) || !order_->waits(id, reduced.at(it.what))))
        return at(10, id, "does not wait for the reduction");
      const bool copies = it.kind == ActionKind::kOffload || it.kind == ActionKind::kFetch;
      if (it.kind != ActionKind::kPass && !copies) continue;
      for (std::int32_t unit = it.units.first; unit < it.units.first + it.units.count; ++unit) {
        const std::pair key{unit, it.micro_batch};
        const auto before = last.find(key);
        if (before != last.end()) {
          const Action& earlier = action(before->second);
          if (earlier.kind == ActionKind::kOffload && it.kind != ActionKind::kFetch)
            return at(10, id, fmt::format("{} is not fetched", unit_name(unit)));
          const bool needs = copies || earlier.kind == ActionKind::kFetch;
          if (needs && !order_->waits(id, before->second))
            return at(10, id, fmt::format("does not wait for action {}", before->second));
        }
        const bool follows =
            before != last.end() &&
            (it.kind == ActionKind::kFetch
                 ? action(before->second).kind == ActionKind::kOffload
                 : is(action(before->second), ActionKind::kPass, Direction::kForward));
        if (copies && !follows) return at(10, id, fmt::format("{} is not there", unit_name(unit)));
        last[key] = id;
      }
    }
    return std::nullopt;
  }

  const StepPlan& plan_;
  const Role& role_;
  std::optional<HappensBefore> order_;
  // (direction, chunk, micro-batch of the slot) -> receives of what the slot's passes read.
  std::map<std::tuple<Direction, std::int32_t, std::int32_t>, std::vector<ActionId>> receives_;
  std::map<std::int32_t, std::vector<ParameterGroup>> groups_;  // by unit
  std::map<std::int32_t, std::vector<ParameterGroup>> cut_;     // by unit
};

}  // namespace

std::optional<std::string> fault_in_role(const StepPlan& plan, std::size_t role) {
  return RoleCheck(plan, role).fault();
}

}  // namespace foreshard::plan::internal
