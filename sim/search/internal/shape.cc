// Compiles a step plan to a graph of durations and walks it (shape.h), for forms.cc. Durations are
// seconds, filled in for each walk.
#include "sim/search/internal/shape.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace foreshard::search {
namespace {

using plan::Action;
using plan::ActionId;
using plan::ActionKind;
using plan::StepPlan;

using plan::kLanes;
using plan::Target;

// Makes nodes role by role; PlanShape later puts them in an order in which they can be walked.
class Compiler {
 public:
  Compiler(const StepPlan& plan, const StageClasses& classes, ExecutionTraits outside)
      : plan_(plan),
        classes_(classes),
        outside_(outside),
        of_bucket_(plan.buckets.size()),
        of_crossing_(plan.crossings.size() * kDirections, -1) {
    for (const plan::Role& role : plan.roles)
      for (const plan::PassSlot& slot : role.slots)
        micro_batches_ = std::max(micro_batches_, index(slot.micro_batch) + 1);
    transfers_.assign(of_crossing_.size() * micro_batches_, -1);
  }

  void run() {
    if (outside_.norm) {
      bool trains = false;
      for (const plan::Role& role : plan_.roles)
        trains = trains || std::ranges::any_of(role.actions, is_optimizer);
      if (trains)
        norm_node_ =
            add(number_of({.kind = ActionKind::kOptimizer, .segment = Segment::kAhead, .role = 0}));
    }
    for (std::size_t role = 0; role < plan_.roles.size(); ++role) compile(role);
  }

  std::vector<Work>& works() { return works_; }
  std::size_t nodes() const { return nodes_.size(); }
  std::int32_t work_of(std::size_t node) const { return nodes_[node].work; }
  template <class Visit>
  void for_each_before(std::size_t node, Visit visit) const {
    for (std::int32_t edge = nodes_[node].edge; edge >= 0; edge = edges_[index(edge)].next)
      visit(edges_[index(edge)].before);
  }

 private:
  struct Node {
    std::int32_t work;
    std::int32_t edge = -1;  // first of the node's list of edges; -1: none
  };
  struct Edge {
    std::int32_t before;
    std::int32_t next;
  };
  static constexpr std::size_t kDirections = 2;

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  static bool is_optimizer(const Action& action) { return action.kind == ActionKind::kOptimizer; }

  std::int32_t add(std::int32_t work) {
    nodes_.push_back({work});
    return static_cast<std::int32_t>(nodes_.size()) - 1;
  }
  void wait(std::int32_t node, std::int32_t earlier) {
    if (earlier < 0 || earlier == node) return;
    Node& own = nodes_[index(node)];
    for (std::int32_t edge = own.edge; edge >= 0; edge = edges_[index(edge)].next)
      if (edges_[index(edge)].before == earlier) return;
    edges_.push_back({earlier, own.edge});
    own.edge = static_cast<std::int32_t>(edges_.size()) - 1;
  }

  const plan::Bucket& bucket(const Action& action) const {
    return plan_.buckets[index(action.what)];
  }

  // The representative units of these units, which are in a chunk of the role.
  plan::UnitRange like(std::int32_t role, std::int32_t chunk, const plan::UnitRange& units) const {
    const StageClass& one = classes_.all[index(classes_.of_stage[index(role)])];
    const plan::UnitRange& own = plan_.roles[index(role)].chunks[index(chunk)].units;
    return {one.first_like[index(chunk)] + units.first - own.first, units.count};
  }
  plan::UnitRange like(std::int32_t role, const plan::UnitRange& units) const {
    const auto& chunks = plan_.roles[index(role)].chunks;
    const auto holds = [&](const plan::Chunk& chunk) { return chunk.units.contains(units.first); };
    const auto chunk = std::ranges::find_if(chunks, holds);
    FORESHARD_CHECK(chunk != chunks.end());
    return like(role, static_cast<std::int32_t>(chunk - chunks.begin()), units);
  }

  std::int32_t number_of(const Work& work) {
    const auto [known, added] = known_.try_emplace(work, static_cast<std::int32_t>(works_.size()));
    if (added) works_.push_back(work);
    return known->second;
  }

  // `behind`: for a pass of one unit, as in Work.
  std::int32_t work_of(const Action& action, std::int32_t role, std::int32_t behind, bool beside) {
    const std::int32_t of_class = classes_.of_stage[index(role)];
    switch (target_of(action.kind)) {
      case Target::kUnits:
        return action.kind == ActionKind::kPass
                   ? of_pass({.kind = ActionKind::kPass,
                              .direction = action.direction,
                              .part = action.part,
                              .role = of_class,
                              .units = like(role, action.chunk, action.units),
                              .behind = behind,
                              .beside = beside})
                   : number_of({.kind = action.kind,
                                .units = like(role, action.chunk, {action.units.first, 1})});
      case Target::kBucket: {
        auto& known = of_bucket_[index(action.what)];
        const auto is_same = [&](std::int32_t work) {
          return works_[index(work)].kind == action.kind &&
                 works_[index(work)].direction == action.direction;
        };
        const auto it = std::ranges::find_if(known, is_same);
        if (it != known.end()) return *it;
        known.push_back(number_of(of_bucket(action, role)));
        return known.back();
      }
      case Target::kCopies:
        return number_of(of_copies(action, of_class));
      case Target::kCrossing: {
        std::int32_t& known = of_crossing_[index(action.what) * kDirections +
                                           static_cast<std::size_t>(action.direction)];
        if (known < 0) known = number_of(of_transfer(action));
        return known;
      }
      case Target::kRole:
        return number_of({.kind = action.kind, .segment = Segment::kBehind, .role = of_class});
      case Target::kNone:
        break;
    }
    if (sync_ < 0) sync_ = number_of({.kind = ActionKind::kSync});
    return sync_;
  }

  // The work is mostly the same as of some action not far before.
  std::int32_t of_pass(const Work& work) {
    for (std::int32_t& recent : recent_)
      if (recent >= 0 && works_[index(recent)] == work) return recent;
    return recent_[next_recent_++ % recent_.size()] = number_of(work);
  }

  Work of_bucket(const Action& action, std::int32_t role) const {
    const bool gathers_ahead = outside_.copies_ahead && action.kind == ActionKind::kGather &&
                               (action.takes & plan::kWhole) != 0;
    Work work{.kind = action.kind,
              .direction = action.direction,
              .segment = gathers_ahead ? Segment::kBehind : Segment::kAll};
    const bool is_one = of_one_unit(plan_.states, action);
    if (is_one)
      work.units = like(role, {bucket(action).units.front().first, 1});
    else
      work.role = classes_.of_stage[index(role)];
    work.other = group_of(action, is_one ? -1 : role);
    return work;
  }

  Work of_copies(const Action& action, std::int32_t of_class) const {
    const plan::GradientCopies& copies = plan_.copies[index(action.what)];
    if (copies.roles.size() > 1) return {.kind = action.kind};
    const auto is_earlier = [&](const plan::GradientCopies& other) {
      return other.roles == copies.roles;
    };
    return {.kind = action.kind,
            .role = of_class,
            .other = static_cast<std::int32_t>(std::count_if(
                plan_.copies.begin(), plan_.copies.begin() + action.what, is_earlier))};
  }

  Work of_transfer(const Action& action) const {
    const plan::Crossing& crossing = plan_.crossings[index(action.what)];
    const bool is_forward = action.direction == Direction::kForward;
    return {.kind = ActionKind::kReceive,
            .other = is_forward ? crossing.from_role : crossing.to_role,
            .to = is_forward ? crossing.to_role : crossing.from_role};
  }

  // The index of a bucket's group among the groups of its role, or of its one unit (`role` < 0).
  std::int32_t group_of(const Action& action, std::int32_t role) const {
    const plan::PlannedModel& parts = plan_.parts;
    std::vector<plan::ParameterGroup> groups;
    for (const plan::UnitRange& run : bucket(action).units) {
      for (std::int32_t i = 0; i < run.count; ++i) {
        const auto& own = parts.block_of(run.first + i).groups;
        groups.insert(groups.end(), own.begin(), own.end());
      }
    }
    std::vector<std::vector<Axis>> over = reduced_over(groups);
    if (action.kind == ActionKind::kGather) {
      over.clear();
      for (const auto& group :
           parts.cut_groups(role < 0 ? groups : plan_.roles[index(role)].parameters))
        over.push_back(group.over);
    }
    const auto place = std::ranges::find(over, bucket(action).over);
    FORESHARD_CHECK(place != over.end());
    return static_cast<std::int32_t>(place - over.begin());
  }

  // The node of an action. Where roles meet in it, the first role makes the node.
  std::int32_t node_of(const Action& action, std::int32_t work) {
    if (is_transfer(action)) {
      std::int32_t& node = transfers_[(index(action.what) * kDirections +
                                       static_cast<std::size_t>(action.direction)) *
                                          micro_batches_ +
                                      index(action.micro_batch)];
      if (node < 0) node = add(work);
      return node;
    }
    const bool is_tie = action.kind == ActionKind::kReduceCopies &&
                        plan_.copies[index(action.what)].roles.size() > 1;
    if (!is_tie) return add(work);
    const std::pair key{action.what, action.micro_batch};
    if (const auto it = ties_.find(key); it != ties_.end()) return it->second;
    return ties_[key] = add(work);
  }

  // action -> whether it alternates with actions of another slot.
  static std::vector<bool> beside_others(const plan::Role& role) {
    std::vector<bool> beside(role.actions.size());
    for (std::size_t slot = 1; slot < role.slots.size(); ++slot) {
      if (!role.slots[slot].beside) continue;
      const auto end = slot + 1 < role.slots.size() ? role.slots[slot + 1].first : role.end;
      std::fill(beside.begin() + role.slots[slot - 1].first, beside.begin() + end, true);
    }
    return beside;
  }

  void compile(std::size_t number) {
    const plan::Role& role = plan_.roles[number];
    const std::vector<bool> beside = beside_others(role);
    std::array<std::int32_t, kLanes> last;  // lane -> its last node
    std::array<std::int32_t, kLanes> host;  // lane -> the last sync that it waits for
    last.fill(-1);
    host.fill(-1);
    std::int32_t synced = -1;  // the latest sync
    const auto put = [&](std::int32_t node, std::size_t lane, const Action& action) {
      wait(node, last[lane]);
      if (std::exchange(host[lane], synced) != synced) wait(node, synced);
      for (const ActionId earlier : action.after) wait(node, node_of_[index(earlier)]);
      last[lane] = node;
    };
    node_of_.assign(role.actions.size(), -1);
    const Action* pass_before = nullptr;
    for (std::size_t id = 0; id < role.actions.size(); ++id) {
      const Action& action = role.actions[id];
      const auto role_number = static_cast<std::int32_t>(number);
      std::int32_t behind = -1;
      if (action.kind == ActionKind::kPass) {
        const bool follows =
            action.units.count == 1 && pass_before != nullptr &&
            pass_before->direction == action.direction && pass_before->part == action.part &&
            pass_before->micro_batch == action.micro_batch && pass_before->chunk == action.chunk;
        if (follows) behind = like(role_number, action.chunk, {pass_before->units.first, 1}).first;
        pass_before = &action;
      }
      const std::int32_t own = node_of_[id] = node_of(
          action,
          work_of(action, role_number, behind, action.kind == ActionKind::kPass && beside[id]));
      if (Work copy = works_[index(nodes_[index(own)].work)];
          copy.kind == ActionKind::kGather && copy.segment == Segment::kBehind) {
        copy.segment = Segment::kAhead;
        const std::int32_t copied = add(number_of(copy));
        put(copied, static_cast<std::size_t>(plan::Lane::kFromHost), action);
        wait(own, copied);
      }
      const auto before = last;
      put(own, lane_index(action), action);
      if (action.kind == ActionKind::kSync) {
        if (action.after.empty())
          for (const std::int32_t earlier : before) wait(own, earlier);
        synced = own;
      }
      if (outside_.blocking_launches && !is_transfer(action)) synced = own;
      if (is_optimizer(action) && norm_node_ >= 0) {
        for_each_before(index(own), [&](std::int32_t earlier) { wait(norm_node_, earlier); });
        nodes_[index(own)].edge = -1;
        wait(own, norm_node_);
      }
    }
  }

  const StepPlan& plan_;
  const StageClasses& classes_;
  ExecutionTraits outside_;
  std::size_t micro_batches_ = 1;
  std::int32_t norm_node_ = -1;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<std::int32_t> node_of_;  // action of the role at hand -> node
  std::vector<Work> works_;
  std::map<Work, std::int32_t> known_;
  // Works that were met before: bucket -> works, [crossing][direction] -> work; -1: none.
  std::vector<std::vector<std::int32_t>> of_bucket_;
  std::vector<std::int32_t> of_crossing_;
  std::int32_t sync_ = -1;
  std::array<std::int32_t, 4> recent_{-1, -1, -1, -1};  // recent works of passes
  std::size_t next_recent_ = 0;
  std::vector<std::int32_t> transfers_;  // [crossing][direction][micro-batch] -> node
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> ties_;
};

}  // namespace

StageClasses classes_of(const StepPlan& plan, const std::vector<std::int32_t>& devices) {
  const auto are_alike = [&](const plan::UnitRange& a, const plan::UnitRange& b) {
    const auto block_at = [&](std::int32_t unit) {
      return plan.parts.units[static_cast<std::size_t>(unit)].block;
    };
    if (a.count != b.count) return false;
    for (std::int32_t i = 0; i < a.count; ++i)
      if (block_at(a.first + i) != block_at(b.first + i)) return false;
    return true;
  };
  StageClasses classes;
  for (std::size_t stage = 0; stage < plan.roles.size(); ++stage) {
    const auto number = static_cast<std::int32_t>(stage);
    StageClass own{.first = number, .last = number, .devices = devices.at(stage)};
    for (const plan::Chunk& chunk : plan.roles[stage].chunks) own.chunks.push_back(chunk.units);
    auto known = std::ranges::find_if(classes.all, [&](const StageClass& one) {
      return one.devices == own.devices && std::ranges::equal(one.chunks, own.chunks, are_alike);
    });
    if (known == classes.all.end()) {
      for (const plan::UnitRange& chunk : own.chunks)
        own.first_like.push_back(
            std::ranges::find_if(own.chunks, [&](const plan::UnitRange& other) {
              return are_alike(other, chunk);
            })->first);
      known = classes.all.insert(known, std::move(own));
    }
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

BlockCounts StageClass::units(const Labels& labels) const {
  BlockCounts sum{};
  for (const plan::UnitRange& chunk : chunks) {
    const BlockCounts own = labels.counts(chunk);
    for (std::size_t b = 0; b < kBlocks; ++b) sum[b] += own[b];
  }
  return sum;
}

// The kind of a transfer. Pieces that follow one another are on the same stage or on neighbours.
static std::int32_t kind_of(const Work& transfer, const TransferKinds& transfers) {
  const auto from = static_cast<std::size_t>(transfer.other);
  const auto to = static_cast<std::size_t>(transfer.to);
  const std::size_t stages = transfers.size() / 2;
  const auto is_behind = [&](std::size_t a, std::size_t b) { return (a + 1) % stages == b; };
  FORESHARD_CHECK(is_behind(from, to) || is_behind(to, from));
  return is_behind(from, to) ? transfers[2 * from] : transfers[2 * to + 1];
}

TimedAction timed_action_of(const Work& work, const Labels& labels,
                            const TransferKinds& transfers) {
  TimedAction timed{.kind = work.kind,
                    .direction = work.direction,
                    .part = work.part,
                    .segment = work.segment,
                    .role = work.role,
                    .other = work.other,
                    .beside = work.beside};
  if (work.to >= 0) {
    timed.other = kind_of(work, transfers);
  } else if (work.kind == ActionKind::kPass) {
    timed.units = labels.counts(work.units);
    timed.follows = work.behind >= 0 && labels.block(work.behind) == labels.block(work.units.first);
  } else if (work.units.count > 0) {
    timed.block = labels.block(work.units.first);
  }
  return timed;
}

PlanShape::PlanShape(const StepPlan& plan, const StageClasses& classes, ExecutionTraits outside) {
  Compiler compiler(plan, classes, outside);
  compiler.run();
  const std::size_t count = compiler.nodes();
  Graph graph;
  // node -> nodes that wait for it.
  std::vector<std::int32_t> first_behind(count + 1, 0);
  std::vector<std::int32_t> waits(count, 0);
  for (std::size_t node = 0; node < count; ++node)
    compiler.for_each_before(node, [&](std::int32_t earlier) {
      ++first_behind[static_cast<std::size_t>(earlier) + 1];
      ++waits[node];
    });
  std::partial_sum(first_behind.begin(), first_behind.end(), first_behind.begin());
  std::vector<std::int32_t> behind(static_cast<std::size_t>(first_behind.back()));
  std::vector<std::int32_t> filled(first_behind.begin(), first_behind.end() - 1);
  std::vector<std::int32_t> ready;
  ready.reserve(count);
  for (std::size_t node = 0; node < count; ++node) {
    compiler.for_each_before(node, [&](std::int32_t earlier) {
      behind[static_cast<std::size_t>(filled[static_cast<std::size_t>(earlier)]++)] =
          static_cast<std::int32_t>(node);
    });
    if (waits[node] == 0) ready.push_back(static_cast<std::int32_t>(node));
  }
  std::vector<std::int32_t> place(count);
  graph.work_of.reserve(count);
  graph.first_before.reserve(count + 1);
  graph.before.reserve(behind.size());
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const auto node = static_cast<std::size_t>(ready[next]);
    place[node] = static_cast<std::int32_t>(next);
    for (std::int32_t i = first_behind[node]; i < first_behind[node + 1]; ++i) {
      const std::int32_t later = behind[static_cast<std::size_t>(i)];
      if (--waits[static_cast<std::size_t>(later)] == 0) ready.push_back(later);
    }
    graph.work_of.push_back(compiler.work_of(node));
    graph.first_before.push_back(static_cast<std::int32_t>(graph.before.size()));
    compiler.for_each_before(node, [&](std::int32_t earlier) {
      graph.before.push_back(place[static_cast<std::size_t>(earlier)]);
    });
  }
  FORESHARD_CHECK(ready.size() == count);  // verify(plan), invariant 9
  graph.first_before.push_back(static_cast<std::int32_t>(graph.before.size()));
  graph.works = std::move(compiler.works());
  graph_ = std::make_shared<const Graph>(std::move(graph));
}

std::span<const std::int32_t> PlanShape::before(std::size_t node) const {
  const auto first = static_cast<std::size_t>(graph_->first_before[node]);
  return std::span(graph_->before)
      .subspan(first, static_cast<std::size_t>(graph_->first_before[node + 1]) - first);
}

Seconds PlanShape::walk(std::span<const double> times) {
  const Graph& graph = *graph_;
  end_.resize(nodes());
  double most = 0;
  std::size_t last = 0;
  const std::int32_t* earlier = graph.before.data();
  for (std::size_t node = 0; node < graph.work_of.size(); ++node) {
    double begin = 0;
    for (const std::int32_t* end = graph.before.data() + graph.first_before[node + 1];
         earlier != end; ++earlier)
      begin = std::max(begin, end_[static_cast<std::size_t>(*earlier)]);
    end_[node] = begin + times[static_cast<std::size_t>(graph.work_of[node])];
    if (end_[node] > most) {
      most = end_[node];
      last = node;
    }
  }
  // Sums in different orders differ in their last bits.
  constexpr double kRounding = 1e-9;
  if (most > longest_path(times).in_base() * (1 + kRounding)) remember_path(last);
  return Seconds::from_base(most);
}

std::vector<double> PlanShape::counts() const {
  std::vector<double> counts(works().size());
  for (const std::int32_t work : graph_->work_of) ++counts[static_cast<std::size_t>(work)];
  return counts;
}

Seconds PlanShape::around_passes(std::span<const double> times) const {
  const std::size_t count = nodes();
  const auto work_of = [&](std::size_t node) {
    return static_cast<std::size_t>(graph_->work_of[node]);
  };
  const auto time_of = [&](std::size_t node) { return times[work_of(node)]; };
  const auto is_pass = [&](std::size_t node) {
    return graph_->works[work_of(node)].kind == ActionKind::kPass;
  };
  std::vector<double> end(count);
  double begin = 0;
  for (std::size_t node = 0; node < count; ++node) {
    begin = 0;
    for (const std::int32_t earlier : before(node))
      begin = std::max(begin, end[static_cast<std::size_t>(earlier)]);
    if (is_pass(node)) break;
    end[node] = begin + time_of(node);
  }
  std::vector<double> behind(count);  // node -> longest chain after its end
  for (std::size_t node = count; node-- > 0;) {
    if (is_pass(node)) return Seconds::from_base(begin + behind[node]);
    for (const std::int32_t earlier : before(node)) {
      double& own = behind[static_cast<std::size_t>(earlier)];
      own = std::max(own, behind[node] + time_of(node));
    }
  }
  return {};
}

void PlanShape::remember_path(std::size_t last) {
  const std::size_t path = paths_.size();
  paths_.resize(path + works().size(), 0);
  for (std::size_t node = last;;) {
    ++paths_[path + static_cast<std::size_t>(graph_->work_of[node])];
    std::int32_t latest = -1;
    for (const std::int32_t earlier : before(node)) {
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
  for (std::size_t path = 0; path < paths_.size(); path += works().size()) {
    double length = 0;
    for (std::size_t i = 0; i < works().size(); ++i) length += paths_[path + i] * times[i];
    most = std::max(most, length);
  }
  return Seconds::from_base(most);
}

}  // namespace foreshard::search
