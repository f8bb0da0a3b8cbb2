#include "sim/search/internal/shape.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "strategies/plan/order.h"

namespace foreshard::search {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;
using plan::StepPlan;

using plan::kLanes;

// Nodes as they are found, role by role; later put in an order in which they can be walked.
class Compiler {
 public:
  Compiler(const StepPlan& plan, const StageClasses& classes,
           const std::function<std::int32_t(std::int32_t, std::int32_t)>& transfer_kind,
           bool blocking_launches, bool norm)
      : plan_(plan),
        classes_(classes),
        transfer_kind_(transfer_kind),
        blocking_launches_(blocking_launches),
        norm_(norm) {}

  struct Node {
    Symbol symbol;
    std::vector<std::int32_t> before;
  };

  std::vector<Node> run() {
    if (norm_) {
      bool trains = false;
      for (const plan::Role& role : plan_.roles)
        trains = trains || std::ranges::any_of(role.actions, is_optimizer);
      if (trains) norm_node_ = add({.kind = Symbol::Kind::kNorm});
    }
    for (std::size_t role = 0; role < plan_.roles.size(); ++role) compile(role);
    return std::move(nodes_);
  }

 private:
  static bool is_optimizer(const Action& action) { return action.kind == ActionKind::kOptimizer; }

  std::int32_t add(const Symbol& symbol) {
    nodes_.push_back({symbol, {}});
    return static_cast<std::int32_t>(nodes_.size()) - 1;
  }
  void wait(std::int32_t node, std::int32_t earlier) {
    auto& before = nodes_[static_cast<std::size_t>(node)].before;
    if (earlier >= 0 && earlier != node && std::ranges::find(before, earlier) == before.end())
      before.push_back(earlier);
  }

  std::int32_t block_of(std::int32_t unit) const {
    return plan_.parts.units[static_cast<std::size_t>(unit)].block;
  }
  const plan::Bucket& bucket(const Action& action) const {
    return plan_.buckets[static_cast<std::size_t>(action.what)];
  }

  Symbol symbol_of(const Action& action, std::int32_t role) const {
    using Kind = Symbol::Kind;
    const std::int32_t of_class = classes_.of_stage[static_cast<std::size_t>(role)];
    const auto of_bucket = [&](Kind one, Kind all, bool at_end) {
      Symbol symbol{.kind = at_end ? all : one, .direction = action.direction};
      (at_end ? symbol.role : symbol.block) =
          at_end ? of_class : block_of(bucket(action).units.front().first);
      symbol.other = group_of(action, at_end ? role : -1);
      return symbol;
    };
    switch (action.kind) {
      case ActionKind::kPass: {
        Symbol symbol{.kind = Kind::kPass,
                      .direction = action.direction,
                      .part = action.part,
                      .role = of_class};
        for (std::int32_t i = 0; i < action.units.count; ++i)
          ++symbol.units.at(static_cast<std::size_t>(block_of(action.units.first + i)));
        return symbol;
      }
      case ActionKind::kGather:
        return of_bucket(Kind::kGather, Kind::kGatherAll,
                         plan_.states.gather == StateSharding::Gather::kEndOfStep);
      case ActionKind::kReduce:
        return of_bucket(Kind::kReduce, Kind::kReduceAll,
                         plan_.states.reduce == StateSharding::Reduce::kEndOfStep);
      case ActionKind::kReduceCopies: {
        const plan::Copies& copies = plan_.copies[static_cast<std::size_t>(action.what)];
        if (copies.roles.size() > 1) return {.kind = Kind::kTie};
        const auto is_earlier = [&](const plan::Copies& other) {
          return other.roles == copies.roles;
        };
        return {.kind = Kind::kCopies,
                .role = of_class,
                .other = static_cast<std::int32_t>(std::count_if(
                    plan_.copies.begin(), plan_.copies.begin() + action.what, is_earlier))};
      }
      case ActionKind::kSend:
      case ActionKind::kReceive:
        return transfer(action);
      case ActionKind::kOptimizer:
        return {.kind = Kind::kOptimizer, .role = of_class};
      case ActionKind::kOffload:
      case ActionKind::kFetch:
      case ActionKind::kOffloadGradients:
        FORESHARD_CHECK(false && "a search offloads nothing");
      case ActionKind::kSync:
        break;
    }
    return {.kind = Kind::kSync};
  }

  // Which of their groups the parameters of a bucket are: of a role, or of one unit.
  std::int32_t group_of(const Action& action, std::int32_t role) const {
    const plan::Parts& parts = plan_.parts;
    std::vector<plan::ParameterGroup> groups;
    for (const plan::Run& run : bucket(action).units) {
      for (std::int32_t i = 0; i < run.count; ++i) {
        const auto& own = parts.block_of(run.first + i).groups;
        groups.insert(groups.end(), own.begin(), own.end());
      }
    }
    std::vector<std::vector<Axis>> over = reduced_over(groups);
    if (action.kind == ActionKind::kGather) {
      over.clear();
      for (const auto& group : parts.cut_groups(
               role < 0 ? groups : plan_.roles[static_cast<std::size_t>(role)].parameters))
        over.push_back(group.over);
    }
    const auto place = std::ranges::find(over, bucket(action).over);
    FORESHARD_CHECK(place != over.end());
    return static_cast<std::int32_t>(place - over.begin());
  }

  Symbol transfer(const Action& action) const {
    const plan::Crossing& crossing = plan_.crossings[static_cast<std::size_t>(action.what)];
    const bool is_forward = action.direction == Direction::kForward;
    return {.kind = Symbol::Kind::kTransfer,
            .other = transfer_kind_(is_forward ? crossing.from_role : crossing.to_role,
                                    is_forward ? crossing.to_role : crossing.from_role)};
  }

  // The node of an action in which roles meet is made by the first of them.
  std::int32_t node_of(const Action& action, const Symbol& symbol) {
    const bool is_tie = action.kind == ActionKind::kReduceCopies &&
                        plan_.copies[static_cast<std::size_t>(action.what)].roles.size() > 1;
    if (!is_transfer(action) && !is_tie) return add(symbol);
    const std::tuple key{is_tie, action.direction, action.what, action.micro_batch};
    if (const auto it = meetings_.find(key); it != meetings_.end()) return it->second;
    return meetings_[key] = add(symbol);
  }

  void compile(std::size_t index) {
    const plan::Role& role = plan_.roles[index];
    std::array<std::int32_t, kLanes> last;  // node of each lane
    std::array<std::int32_t, kLanes> host;  // the sync that the lane has heard of
    last.fill(-1);
    host.fill(-1);
    std::int32_t synced = -1;  // the latest sync
    std::vector<std::int32_t> node(role.actions.size());
    const Action* pass_before = nullptr;
    for (std::size_t id = 0; id < role.actions.size(); ++id) {
      const Action& action = role.actions[id];
      Symbol symbol = symbol_of(action, static_cast<std::int32_t>(index));
      if (action.kind == ActionKind::kPass) {
        symbol.follows =
            action.units.count == 1 && pass_before != nullptr &&
            pass_before->direction == action.direction && pass_before->part == action.part &&
            pass_before->micro_batch == action.micro_batch && pass_before->chunk == action.chunk &&
            block_of(pass_before->units.first) == block_of(action.units.first);
        pass_before = &action;
      }
      const std::int32_t own = node[id] = node_of(action, symbol);
      const std::size_t lane = lane_index(action);
      wait(own, last[lane]);
      if (std::exchange(host[lane], synced) != synced) wait(own, synced);
      for (const ActionId earlier : action.after)
        wait(own, node[static_cast<std::size_t>(earlier)]);
      if (action.kind == ActionKind::kSync) {
        if (action.after.empty())
          for (const std::int32_t earlier : last) wait(own, earlier);
        synced = own;
      }
      if (blocking_launches_ && !is_transfer(action)) synced = own;
      if (is_optimizer(action) && norm_node_ >= 0) {
        for (const std::int32_t earlier : nodes_[static_cast<std::size_t>(own)].before)
          wait(norm_node_, earlier);
        nodes_[static_cast<std::size_t>(own)].before = {norm_node_};
      }
      last[lane] = own;
    }
  }

  const StepPlan& plan_;
  const StageClasses& classes_;
  const std::function<std::int32_t(std::int32_t, std::int32_t)>& transfer_kind_;
  bool blocking_launches_;
  bool norm_;
  std::int32_t norm_node_ = -1;
  std::vector<Node> nodes_;
  std::map<std::tuple<bool, Direction, std::int32_t, std::int32_t>, std::int32_t> meetings_;
};

}  // namespace

StageClasses classes_of(const StepPlan& plan, const std::vector<std::int32_t>& devices) {
  StageClasses classes;
  for (std::size_t stage = 0; stage < plan.roles.size(); ++stage) {
    const auto number = static_cast<std::int32_t>(stage);
    StageClass own{.first = number, .last = number, .devices = devices.at(stage)};
    for (const plan::Chunk& chunk : plan.roles[stage].chunks) {
      BlockCounts& units = own.chunks.emplace_back();
      for (std::int32_t unit = chunk.units.first; unit < chunk.units.first + chunk.units.count;
           ++unit) {
        const auto block = plan.parts.units[static_cast<std::size_t>(unit)].block;
        ++units.at(static_cast<std::size_t>(block));
        ++own.units.at(static_cast<std::size_t>(block));
      }
    }
    auto known = std::ranges::find_if(classes.all, [&](const StageClass& one) {
      return one.chunks == own.chunks && one.devices == own.devices;
    });
    if (known == classes.all.end()) known = classes.all.insert(known, std::move(own));
    known->last = number;
    classes.of_stage.push_back(static_cast<std::int32_t>(known - classes.all.begin()));
  }
  for (StageClass& one : classes.all) {
    one.before.assign(classes.all.size(), 0);
    for (std::int32_t stage = 0; stage < one.last; ++stage)
      ++one.before[static_cast<std::size_t>(classes.of_stage[static_cast<std::size_t>(stage)])];
  }
  return classes;
}

PlanShape::PlanShape(const StepPlan& plan, const StageClasses& classes,
                     const std::function<std::int32_t(std::int32_t, std::int32_t)>& transfer_kind,
                     bool blocking_launches, bool norm) {
  const std::vector<Compiler::Node> nodes =
      Compiler(plan, classes, transfer_kind, blocking_launches, norm).run();
  std::map<Symbol, std::int32_t> known;
  std::vector<std::int32_t> waits(nodes.size());
  std::vector<std::vector<std::int32_t>> behind(nodes.size());
  std::vector<std::int32_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = static_cast<std::int32_t>(nodes[i].before.size());
    for (const std::int32_t earlier : nodes[i].before)
      behind[static_cast<std::size_t>(earlier)].push_back(static_cast<std::int32_t>(i));
    if (waits[i] == 0) ready.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> place(nodes.size());
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const auto index = static_cast<std::size_t>(ready[next]);
    place[index] = static_cast<std::int32_t>(next);
    for (const std::int32_t later : behind[index])
      if (--waits[static_cast<std::size_t>(later)] == 0) ready.push_back(later);
    const auto [it, is_new] =
        known.emplace(nodes[index].symbol, static_cast<std::int32_t>(symbols_.size()));
    if (is_new) symbols_.push_back(nodes[index].symbol);
    symbol_of_.push_back(it->second);
    first_before_.push_back(static_cast<std::int32_t>(before_.size()));
    for (const std::int32_t earlier : nodes[index].before)
      before_.push_back(place[static_cast<std::size_t>(earlier)]);
  }
  FORESHARD_CHECK(ready.size() == nodes.size());  // verify(plan), invariant 9
  first_before_.push_back(static_cast<std::int32_t>(before_.size()));
  end_.resize(nodes.size());
}

Seconds PlanShape::walk(std::span<const double> times) {
  double most = 0;
  std::size_t last = 0;
  const std::int32_t* earlier = before_.data();
  for (std::size_t node = 0; node < symbol_of_.size(); ++node) {
    double begin = 0;
    for (const std::int32_t* end = before_.data() + first_before_[node + 1]; earlier != end;
         ++earlier)
      begin = std::max(begin, end_[static_cast<std::size_t>(*earlier)]);
    end_[node] = begin + times[static_cast<std::size_t>(symbol_of_[node])];
    if (end_[node] > most) {
      most = end_[node];
      last = node;
    }
  }
  // Sums in another order differ in their last bits.
  constexpr double kRounding = 1e-9;
  if (most > longest_path(times).in_base() * (1 + kRounding)) {
    remember_path(last);
    known_again_ = 0;
  } else {
    ++known_again_;
  }
  return Seconds::from_base(most);
}

void PlanShape::remember_path(std::size_t last) {
  const std::size_t path = paths_.size();
  paths_.resize(path + symbols_.size(), 0);
  for (std::size_t node = last;;) {
    const auto symbol = static_cast<std::size_t>(symbol_of_[node]);
    ++paths_[path + symbol];
    std::int32_t latest = -1;
    for (std::int32_t i = first_before_[node]; i < first_before_[node + 1]; ++i) {
      const std::int32_t earlier = before_[static_cast<std::size_t>(i)];
      if (latest < 0 ||
          end_[static_cast<std::size_t>(earlier)] > end_[static_cast<std::size_t>(latest)])
        latest = earlier;
    }
    if (latest < 0) break;
    node = static_cast<std::size_t>(latest);
  }
}

Seconds PlanShape::longest_path(std::span<const double> times) const {
  double most = 0;
  for (std::size_t path = 0; path < paths_.size(); path += symbols_.size()) {
    double length = 0;
    for (std::size_t i = 0; i < symbols_.size(); ++i) length += paths_[path + i] * times[i];
    most = std::max(most, length);
  }
  return Seconds::from_base(most);
}

}  // namespace foreshard::search
