#include "strategies/reshard/internal/paths.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

namespace foreshard::reshard::internal {
namespace {

constexpr std::size_t kMostStates = 1500;
constexpr std::size_t kMostVisits = 20'000;
constexpr int kMostSteps = 8;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Edge {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};
  int to = 0;
  double seconds = 0;  // A lower bound until it is priced; kNever if it then has no price.
  bool priced = false;
};

// The explored part of the attribute graph, with states numbered in order of discovery.
class Graph {
 public:
  Graph(const MeshAttribute& from, const MeshAttribute& to, Seconds limit, Pricer& pricer)
      : mesh_(to.mesh),
        limit_(limit.in_base()),
        pricer_(pricer),
        grid_{pricer.tensor().shape, pricer.meshes().at(to.mesh).axes},
        from_(canonical(from.attribute, grid_)),
        to_(canonical(to.attribute, grid_)) {
    explore();
    measure();
  }

  std::vector<Draft> paths(std::size_t most, std::vector<Failure>& failures);

 private:
  int number_of(const Attribute& attribute) {
    const auto [at, fresh] = number_.emplace(attribute, static_cast<int>(states_.size()));
    if (fresh) {
      states_.push_back(&at->first);
      edges_.emplace_back();
    }
    return at->second;
  }

  // Finds states and edges, nearest first by lower bounds.
  void explore();
  void price(int from, Edge& edge, std::vector<Failure>& failures);
  // Computes for every state a lower bound of the seconds to the nearest goal: the target, or a
  // state from which only a pad is missing.
  void measure();
  Draft draft_of(const std::vector<const Edge*>& edges, const std::vector<Axis>& pad,
                 double seconds) const;

  MeshId mesh_;
  double limit_;
  Pricer& pricer_;
  Grid grid_;
  Attribute from_;
  Attribute to_;
  std::map<Attribute, int> number_;
  std::vector<const Attribute*> states_;
  std::vector<std::vector<Edge>> edges_;
  std::map<int, std::vector<Axis>> goals_;  // goal state -> axes that are left to pad.
  std::vector<double> remaining_;
};

void Graph::explore() {
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::vector<double> reached;
  std::set<int> done;
  open.push({0, number_of(from_)});
  reached.push_back(0);
  while (!open.empty() && done.size() < kMostStates) {
    const auto [seconds, state] = open.top();
    open.pop();
    if (!done.insert(state).second) continue;
    const Attribute& at = *states_[static_cast<std::size_t>(state)];
    if (auto pad = pad_to(at, to_, grid_)) goals_.emplace(state, *std::move(pad));
    if (goals_.contains(state) && goals_[state].empty()) continue;
    for (Route& route : routes_from(at, from_, to_, grid_)) {
      const DraftStep step{.primitive = route.primitive,
                           .from = {mesh_, at},
                           .to = {mesh_, route.to},
                           .axes = route.axes};
      const double least = pricer_.bound(step).in_base();
      if (seconds + least > limit_) continue;
      const int next = number_of(route.to);
      reached.resize(states_.size(), kNever);
      edges_[static_cast<std::size_t>(state)].push_back({.primitive = route.primitive,
                                                         .axes = std::move(route.axes),
                                                         .to = next,
                                                         .seconds = least});
      if (seconds + least < reached[static_cast<std::size_t>(next)]) {
        reached[static_cast<std::size_t>(next)] = seconds + least;
        open.push({seconds + least, next});
      }
    }
  }
}

void Graph::price(int from, Edge& edge, std::vector<Failure>& failures) {
  if (edge.priced) return;
  edge.priced = true;
  const DraftStep step{.primitive = edge.primitive,
                       .from = {mesh_, *states_[static_cast<std::size_t>(from)]},
                       .to = {mesh_, *states_[static_cast<std::size_t>(edge.to)]},
                       .axes = edge.axes};
  const auto& asked = pricer_.price(step);
  edge.seconds = asked ? asked->in_base() : kNever;
  if (!asked) failures.push_back({step, asked.error().message});
}

void Graph::measure() {
  std::vector<std::vector<std::pair<int, double>>> back(states_.size());
  for (std::size_t i = 0; i < edges_.size(); ++i)
    for (const Edge& edge : edges_[i])
      back[static_cast<std::size_t>(edge.to)].push_back({static_cast<int>(i), edge.seconds});
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  remaining_.assign(states_.size(), kNever);
  for (const auto& [goal, pad] : goals_) {
    remaining_[static_cast<std::size_t>(goal)] = 0;
    open.push({0, goal});
  }
  while (!open.empty()) {
    const auto [seconds, state] = open.top();
    open.pop();
    if (seconds > remaining_[static_cast<std::size_t>(state)]) continue;
    for (const auto& [before, price] : back[static_cast<std::size_t>(state)]) {
      double& best = remaining_[static_cast<std::size_t>(before)];
      if (seconds + price >= best) continue;
      best = seconds + price;
      open.push({best, before});
    }
  }
}

Draft Graph::draft_of(const std::vector<const Edge*>& edges, const std::vector<Axis>& pad,
                      double seconds) const {
  Draft draft{.steps = {}, .estimate = 1_s * seconds};
  Attribute at = from_;
  for (const Edge* edge : edges) {
    const Attribute& next = *states_[static_cast<std::size_t>(edge->to)];
    append(draft, {.primitive = edge->primitive,
                   .from = {mesh_, at},
                   .to = {mesh_, next},
                   .axes = edge->axes});
    at = next;
  }
  if (!pad.empty())
    append(draft,
           {.primitive = Primitive::kPad, .from = {mesh_, at}, .to = {mesh_, to_}, .axes = pad});
  return draft;
}

// A* with a lower bound of the remaining time: only prefixes of possible results are extended, and
// an edge is priced when a path that ends with it is the best open one. A visit is a path, and
// `before` is its prefix.
std::vector<Draft> Graph::paths(std::size_t most, std::vector<Failure>& failures) {
  struct PathNode {
    int state;
    int before;
    int steps;
    Edge* by;
    double until;  // Seconds before the edge.
  };
  using Entry = std::tuple<double, int, int>;  // Total seconds, steps, visit.
  std::vector<PathNode> visits;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto seconds_of = [](const PathNode& visit) {
    return visit.until + (visit.by != nullptr ? visit.by->seconds : 0);
  };
  const auto push = [&](int index) {
    const PathNode& visit = visits[static_cast<std::size_t>(index)];
    const double total = seconds_of(visit) + remaining_[static_cast<std::size_t>(visit.state)];
    if (total <= limit_ && total < kNever) open.push({total, visit.steps, index});
  };
  const auto add = [&](const PathNode& visit) {
    if (visit.steps > kMostSteps || visits.size() >= kMostVisits) return;
    visits.push_back(visit);
    push(static_cast<int>(visits.size()) - 1);
  };
  add({.state = 0, .before = -1, .steps = 0, .by = nullptr, .until = 0});
  std::vector<Draft> drafts;
  while (!open.empty() && drafts.size() < most) {
    const auto [total, steps, index] = open.top();
    open.pop();
    const PathNode visit = visits[static_cast<std::size_t>(index)];
    if (visit.by != nullptr) {
      price(visits[static_cast<std::size_t>(visit.before)].state, *visit.by, failures);
      const double now = seconds_of(visit) + remaining_[static_cast<std::size_t>(visit.state)];
      if (now > total) {
        push(index);
        continue;
      }
    }
    if (const auto goal = goals_.find(visit.state); goal != goals_.end()) {
      std::vector<const Edge*> edges;
      for (int i = index; visits[static_cast<std::size_t>(i)].by != nullptr;
           i = visits[static_cast<std::size_t>(i)].before)
        edges.push_back(visits[static_cast<std::size_t>(i)].by);
      std::ranges::reverse(edges);
      drafts.push_back(draft_of(edges, goal->second, seconds_of(visit)));
      continue;
    }
    for (Edge& edge : edges_[static_cast<std::size_t>(visit.state)]) {
      // Successive slices are one step: tried only in ascending order, unless one needs the other.
      if (visit.by != nullptr && visit.by->primitive == Primitive::kSlice &&
          edge.primitive == Primitive::kSlice && edge.axes < visit.by->axes &&
          dim_of(*states_[static_cast<std::size_t>(edge.to)], edge.axes[0]) !=
              dim_of(*states_[static_cast<std::size_t>(edge.to)], visit.by->axes[0]))
        continue;
      // Cutting an axis that is gathered again at once gains nothing.
      if (visit.by != nullptr && visit.by->primitive == Primitive::kSlice &&
          edge.primitive == Primitive::kAllGather &&
          std::ranges::find(edge.axes, visit.by->axes[0]) != edge.axes.end())
        continue;
      bool seen = false;
      for (int i = index; i >= 0 && !seen; i = visits[static_cast<std::size_t>(i)].before)
        seen = visits[static_cast<std::size_t>(i)].state == edge.to;
      if (seen) continue;
      add({.state = edge.to,
           .before = index,
           .steps = visit.steps + 1,
           .by = &edge,
           .until = seconds_of(visit)});
    }
  }
  return drafts;
}

// Beyond this many combinations, only single axes and all axes together are tried.
constexpr std::size_t kMostCombinations = 64;

// The edges that leave `at`, one function per primitive.
class RouteEnumerator {
 public:
  RouteEnumerator(const Attribute& at, const Attribute& from, const Attribute& to, const Grid& grid)
      : at_(at), from_(from), to_(to), grid_(grid) {
    for (const Partial& partial : at.partial)
      if (!kept(partial)) partial_.push_back(partial.axis);
  }

  std::vector<Route> all() && {
    slices();
    reductions();
    regroupings();
    return std::move(routes_);
  }

 private:
  bool kept(const Partial& partial) const {
    return std::ranges::find(to_.partial, partial) != to_.partial.end();
  }
  bool wanted(Axis axis) const { return dim_of(to_, axis) >= 0; }

  void add(Primitive primitive, std::vector<Axis> axes, Attribute to) {
    std::ranges::sort(axes);
    routes_.push_back({.primitive = primitive, .axes = std::move(axes), .to = std::move(to)});
  }

  void slices() {
    for (Axis axis = 0; static_cast<std::size_t>(axis) < grid_.axes.size(); ++axis) {
      if (grid_.size(axis) == 1 || state_of(at_, axis).kind != AxisState::Kind::kReplicated)
        continue;
      if (wanted(axis)) {
        if (auto next = placed(at_, grid_, {axis}, to_))
          add(Primitive::kSlice, {axis}, *std::move(next));
      } else if (state_of(from_, axis).kind == AxisState::Kind::kReplicated) {
        if (auto next = parked(at_, grid_, axis, to_))
          add(Primitive::kSlice, {axis}, *std::move(next));
      }
    }
  }

  // All runs of neighbours in `axes`, which ascend: one level of the cluster's hierarchy, or
  // several adjacent levels.
  static std::vector<std::vector<Axis>> runs(const std::vector<Axis>& axes) {
    std::vector<std::vector<Axis>> result;
    for (auto first = axes.begin(); first != axes.end(); ++first)
      for (auto last = first + 1;; ++last) {
        result.emplace_back(first, last);
        if (last == axes.end()) break;
      }
    return result;
  }

  void reductions() {
    for (const auto& axes : runs(partial_)) {
      Attribute reduced = at_;
      std::erase_if(reduced.partial, [&](const Partial& partial) {
        return std::ranges::find(axes, partial.axis) != axes.end();
      });
      // A scatter over all axes that must be gathered again would be an all-reduce.
      const bool all_again = axes.size() > 1 && axes.size() == partial_.size() &&
                             std::ranges::none_of(axes, [&](Axis axis) { return wanted(axis); });
      if (auto next = split_all(reduced, axes); next && !all_again)
        add(Primitive::kReduceScatter, axes, *std::move(next));
      add(Primitive::kAllReduce, axes, std::move(reduced));
    }
  }

  // `attribute` split by all of `axes`: axes that the target splits are placed there, and the rest
  // are parked.
  std::optional<Attribute> split_all(const Attribute& attribute,
                                     const std::vector<Axis>& axes) const {
    std::vector<Axis> here;
    std::vector<Axis> rest;
    for (const Axis axis : axes) (wanted(axis) ? here : rest).push_back(axis);
    auto next = placed(attribute, grid_, here, to_);
    for (const Axis axis : rest)
      if (next) next = parked(*next, grid_, axis, to_);
    return next;
  }

  // Gathers and all-to-alls take axes from the minor ends of the dimensions; every combination of
  // numbers of axes per dimension is tried.
  void regroupings() {
    std::vector<std::size_t> most;
    std::size_t combinations = 1;
    for (std::size_t d = 0; d < at_.dims.size(); ++d) {
      most.push_back(at_.dims[d].size() - settled(at_, to_, grid_, d));
      combinations *= most.back() + 1;
    }
    if (combinations > kMostCombinations) {
      for (std::size_t d = 0; d < most.size(); ++d) {
        std::vector<std::size_t> one(most.size(), 0);
        one[d] = 1;
        if (most[d] > 0) regroup(one, false);
      }
      regroup(most, true);
      return;
    }
    std::vector<std::size_t> counts(most.size(), 0);
    for (std::size_t i = 1; i < combinations; ++i) {
      for (std::size_t d = 0; d < counts.size(); ++d) {
        if (++counts[d] <= most[d]) break;
        counts[d] = 0;
      }
      regroup(counts, counts == most);
    }
  }

  // Moves `counts[d]` minor axes of each dimension d. Several axes move together only if they are
  // neighbours, or if they are all that are misplaced.
  void regroup(const std::vector<std::size_t>& counts, bool all) {
    std::vector<Axis> axes;
    bool all_move = true;
    for (std::size_t d = 0; d < counts.size(); ++d) {
      for (std::size_t i = 0; i < counts[d]; ++i) {
        axes.push_back(at_.dims[d][at_.dims[d].size() - 1 - i]);
        const auto target = dim_of(to_, axes.back());
        all_move = all_move && target >= 0 && target != static_cast<std::int32_t>(d);
      }
    }
    std::ranges::sort(axes);
    const bool run = axes.back() - axes.front() + 1 == static_cast<Axis>(axes.size());
    if (!run && !all) return;
    Attribute gathered = at_;
    for (std::size_t d = 0; d < counts.size(); ++d)
      if (counts[d] > 0) gathered = without_minor(gathered, grid_, d, counts[d]);
    if (all_move) {
      if (auto next = placed(gathered, grid_, axes, to_))
        add(Primitive::kAllToAll, axes, *std::move(next));
    }
    if (axes.size() == 1) move_out_of_the_way(axes[0], gathered);
    add(Primitive::kAllGather, std::move(axes), std::move(gathered));
  }

  // Parks an axis elsewhere if a more major axis of its dimension has to change first.
  void move_out_of_the_way(Axis axis, const Attribute& gathered) {
    const auto dim = static_cast<std::size_t>(dim_of(at_, axis));
    if (gathered.dims[dim].size() == settled(gathered, to_, grid_, dim)) return;
    auto next = parked(gathered, grid_, axis, to_);
    if (next && dim_of(*next, axis) != static_cast<std::int32_t>(dim))
      add(Primitive::kAllToAll, {axis}, *std::move(next));
  }

  const Attribute& at_;
  const Attribute& from_;
  const Attribute& to_;
  const Grid& grid_;
  std::vector<Axis> partial_;
  std::vector<Route> routes_;
};

}  // namespace

std::vector<Draft> cheapest_paths(const MeshAttribute& from, const MeshAttribute& to,
                                  std::size_t most, Seconds limit, Pricer& pricer,
                                  std::vector<Failure>& failures) {
  return Graph(from, to, limit, pricer).paths(most, failures);
}

std::vector<Route> routes_from(const Attribute& at, const Attribute& from, const Attribute& to,
                               const Grid& grid) {
  return RouteEnumerator(at, from, to, grid).all();
}

std::optional<std::vector<Axis>> pad_to(const Attribute& at, const Attribute& to,
                                        const Grid& grid) {
  std::vector<Axis> missing;
  for (const Partial& partial : to.partial)
    if (std::ranges::find(at.partial, partial) == at.partial.end()) missing.push_back(partial.axis);
  for (const Partial& partial : at.partial)
    if (std::ranges::find(to.partial, partial) == to.partial.end()) return std::nullopt;
  Attribute padded = at;
  for (std::size_t d = 0; d < at.dims.size(); ++d) {
    std::size_t count = 0;
    while (count < at.dims[d].size() &&
           std::ranges::find(missing, at.dims[d][at.dims[d].size() - 1 - count]) != missing.end())
      ++count;
    if (count > 0) padded = without_minor(padded, grid, d, count);
  }
  padded.partial = to.partial;
  if (padded != to) return std::nullopt;
  return missing;
}

}  // namespace foreshard::reshard::internal
