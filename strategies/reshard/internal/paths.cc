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
  Graph(const Place& from, const Place& to, Seconds limit, Pricer& pricer)
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
  struct Visit {
    int state;
    int before;
    int steps;
    Edge* by;
    double until;  // Seconds before the edge.
  };
  using Entry = std::tuple<double, int, int>;  // Total seconds, steps, visit.
  std::vector<Visit> visits;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto seconds_of = [](const Visit& visit) {
    return visit.until + (visit.by != nullptr ? visit.by->seconds : 0);
  };
  const auto push = [&](int index) {
    const Visit& visit = visits[static_cast<std::size_t>(index)];
    const double total = seconds_of(visit) + remaining_[static_cast<std::size_t>(visit.state)];
    if (total <= limit_ && total < kNever) open.push({total, visit.steps, index});
  };
  const auto add = [&](const Visit& visit) {
    if (visit.steps > kMostSteps || visits.size() >= kMostVisits) return;
    visits.push_back(visit);
    push(static_cast<int>(visits.size()) - 1);
  };
  add({.state = 0, .before = -1, .steps = 0, .by = nullptr, .until = 0});
  std::vector<Draft> drafts;
  while (!open.empty() && drafts.size() < most) {
    const auto [total, steps, index] = open.top();
    open.pop();
    const Visit visit = visits[static_cast<std::size_t>(index)];
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

}  // namespace

std::vector<Draft> cheapest_paths(const Place& from, const Place& to, std::size_t most,
                                  Seconds limit, Pricer& pricer, std::vector<Failure>& failures) {
  return Graph(from, to, limit, pricer).paths(most, failures);
}

}  // namespace foreshard::reshard::internal
