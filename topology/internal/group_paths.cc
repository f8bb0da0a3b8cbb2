// A way between groups combines the shortest paths inside of each group and the global cables
// between groups.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/check.h"

#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {
namespace {

std::size_t index(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

class GroupPaths final : public FabricPaths {
 public:
  GroupPaths(const FabricGraph& graph, std::vector<std::vector<std::int32_t>> groups, bool adaptive)
      : groups_(std::move(groups)),
        adaptive_(adaptive),
        otherwise_(graph.all_up ? nullptr : searched_paths(graph)),
        group_(graph.vertices, 0),
        local_(graph.vertices, 0),
        cables_(groups_.size() * groups_.size()),
        searches_(graph.vertices) {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t i = 0; i < groups_[g].size(); ++i) {
        group_[index(groups_[g][i])] = g;
        local_[index(groups_[g][i])] = static_cast<std::int32_t>(i);
      }
    std::vector<std::vector<Domain::Edge>> inner(groups_.size());
    for (Domain::Edge edge : graph.edges) {
      const auto from = group_[index(edge.from)];
      const auto to = group_[index(edge.to)];
      if (from != to) {
        cables(from, to).push_back(edge);
        continue;
      }
      edge.from = local_[index(edge.from)];
      edge.to = local_[index(edge.to)];
      inner[from].push_back(edge);
    }
    inside_.reserve(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      inside_.emplace_back(std::vector<bool>(groups_[g].size(), true), std::move(inner[g]));
  }

  Crossing measure(std::int32_t entry, std::int32_t exit) override {
    const auto ways = ways_between(entry, exit);
    if (ways.empty()) return otherwise_ ? otherwise_->measure(entry, exit) : Crossing{};
    Crossing crossing;
    for (const auto& way : ways) {
      crossing.distance = std::min(crossing.distance, way.distance);
      crossing.latency = std::max(crossing.latency, way.latency);
    }
    crossing.paths = ways.front().paths;
    return crossing;
  }

  void spread(std::int32_t entry, std::int32_t exit, double amount,
              std::vector<RoutedLink>& out) override {
    const auto ways = ways_between(entry, exit);
    if (ways.empty()) return otherwise_->spread(entry, exit, amount, out);
    double total = 0;
    for (const auto& way : ways) total += way.weight;
    for (const auto& way : ways) {
      const double part = amount * way.weight / total;
      if (way.through == kNone) {
        spread_direct(entry, exit, part, out);
      } else {
        spread_detour(entry, exit, way.through, part, out);
      }
    }
  }

  void pick(std::int32_t entry, std::int32_t exit, double choice,
            std::vector<RoutedLink>& out) override {
    const auto ways = ways_between(entry, exit);
    if (ways.empty()) return otherwise_->pick(entry, exit, choice, out);
    FORESHARD_CHECK(ways.front().through == kNone);  // A single path is minimal.
    const auto s = group_[index(entry)];
    if (s == group_[index(exit)])
      return inside_[s].pick(search(entry), false, local_[index(exit)], choice, out);
    for (const Hop& hop : shortest(entry, exit)) {
      if (choice >= hop.paths) {
        choice -= hop.paths;
        continue;
      }
      const double before = std::floor(choice / hop.after);
      inside_[s].pick(search(entry), false, local_[index(hop.cable->from)], before, out);
      out.push_back({hop.cable->link, 1.0});
      inside_[group_[index(exit)]].pick(search(hop.cable->to), false, local_[index(exit)],
                                        choice - before * hop.after, out);
      return;
    }
    FORESHARD_CHECK(false && "choice is below the number of paths");
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  /// Two global cables with a local cable on either side of each; no direct way is longer.
  static constexpr Metric kDetourDistance = 10;

  struct Way {
    std::size_t through = kNone;  ///< A third group; kNone: the direct way.
    double weight = 1;
    Metric distance = 0;
    double paths = 1;
    Seconds latency;
  };
  /// One global cable with the shortest paths to and from it.
  struct Hop {
    const Domain::Edge* cable = nullptr;
    Metric distance = 0;
    double paths = 0;
    double after = 0;  ///< Paths from the cable to the exit.
    Seconds latency;
  };

  std::vector<Domain::Edge>& cables(std::size_t from, std::size_t to) {
    return cables_[from * groups_.size() + to];
  }
  const Search& search(std::int32_t from) {
    auto& slot = searches_[index(from)];
    if (!slot) slot = inside_[group_[index(from)]].search_from(local_[index(from)]);
    return *slot;
  }

  /// The cables between the two groups on shortest ways from `entry` to `exit`.
  std::vector<Hop> shortest(std::int32_t entry, std::int32_t exit) {
    std::vector<Hop> hops;
    Metric best = kUnreachable;
    const Search& start = search(entry);
    const auto end = index(local_[index(exit)]);
    for (const auto& cable : cables(group_[index(entry)], group_[index(exit)])) {
      const auto gateway = index(local_[index(cable.from)]);
      const Search& arrival = search(cable.to);
      if (start.paths[gateway] == 0 || arrival.paths[end] == 0) continue;
      const Metric distance = start.distance[gateway] + cable.metric + arrival.distance[end];
      if (distance > best) continue;
      if (distance < best) hops.clear();
      best = distance;
      hops.push_back({&cable, distance, start.paths[gateway] * arrival.paths[end],
                      arrival.paths[end],
                      start.latency[gateway] + cable.latency + arrival.latency[end]});
    }
    return hops;
  }

  /// A flow over all cables between two groups, in equal parts: its share at each near end and at
  /// each far end of the cables.
  struct Leg {
    std::map<std::int32_t, double> leaves;   ///< Gateway of the first group -> share of the flow.
    std::map<std::int32_t, double> arrives;  ///< Gateway of the second group -> share.
    Seconds latency;
  };
  Leg leg(std::size_t from, std::size_t to) {
    Leg result;
    const auto& between = cables(from, to);
    for (const auto& cable : between) {
      result.leaves[cable.from] += 1.0 / static_cast<double>(between.size());
      result.arrives[cable.to] += 1.0 / static_cast<double>(between.size());
      result.latency = std::max(result.latency, cable.latency);
    }
    return result;
  }

  /// The largest latency of the paths within one group, from each vertex of one set to each of
  /// another.
  /// \return nothing if some pair is not joined.
  template <class From, class To>
  std::optional<Seconds> slowest(const From& from, const To& to) {
    Seconds result;
    for (const auto& [a, part] : from)
      for (const auto& [b, other] : to) {
        const Search& found = search(a);
        const auto end = index(local_[index(b)]);
        if (found.paths[end] == 0) return std::nullopt;
        result = std::max(result, found.latency[end]);
      }
    return result;
  }

  std::optional<Way> detour(std::int32_t entry, std::int32_t exit, std::size_t through) {
    const Leg first = leg(group_[index(entry)], through);
    const Leg second = leg(through, group_[index(exit)]);
    if (first.leaves.empty() || second.leaves.empty()) return std::nullopt;
    const auto before = slowest(std::map<std::int32_t, double>{{entry, 1.0}}, first.leaves);
    const auto between = slowest(first.arrives, second.leaves);
    const auto after = slowest(second.arrives, std::map<std::int32_t, double>{{exit, 1.0}});
    if (!before || !between || !after) return std::nullopt;
    return Way{.through = through,
               .weight = 0.5,
               .distance = kDetourDistance,
               .paths = 1,
               .latency = *before + first.latency + *between + second.latency + *after};
  }

  /// The direct way, then the ways through a third group. Empty if none of them is up.
  std::vector<Way> ways_between(std::int32_t entry, std::int32_t exit) {
    std::vector<Way> ways;
    const auto s = group_[index(entry)];
    const auto t = group_[index(exit)];
    if (s == t) {
      const auto end = index(local_[index(exit)]);
      const Search& found = search(entry);
      if (found.paths[end] > 0)
        ways.push_back({.through = kNone,
                        .weight = 1,
                        .distance = found.distance[end],
                        .paths = found.paths[end],
                        .latency = found.latency[end]});
      return ways;
    }
    Way direct{.through = kNone, .weight = 1, .distance = kUnreachable, .paths = 0, .latency = {}};
    for (const Hop& hop : shortest(entry, exit)) {
      direct.distance = hop.distance;
      direct.paths += hop.paths;
      direct.latency = std::max(direct.latency, hop.latency);
    }
    if (direct.paths > 0) ways.push_back(direct);
    if (!adaptive_) return ways;
    for (std::size_t w = 0; w < groups_.size(); ++w)
      if (w != s && w != t)
        if (auto way = detour(entry, exit, w)) ways.push_back(*way);
    return ways;
  }

  void within(std::int32_t from, std::int32_t to, double amount, std::vector<RoutedLink>& out) {
    inside_[group_[index(from)]].spread(search(from), false, local_[index(to)], amount, out);
  }

  void spread_direct(std::int32_t entry, std::int32_t exit, double amount,
                     std::vector<RoutedLink>& out) {
    if (group_[index(entry)] == group_[index(exit)]) return within(entry, exit, amount, out);
    const auto hops = shortest(entry, exit);
    double total = 0;
    for (const auto& hop : hops) total += hop.paths;
    for (const auto& hop : hops) {
      const double part = amount * hop.paths / total;
      within(entry, hop.cable->from, part, out);
      out.push_back({hop.cable->link, part});
      within(hop.cable->to, exit, part, out);
    }
  }

  void spread_detour(std::int32_t entry, std::int32_t exit, std::size_t through, double amount,
                     std::vector<RoutedLink>& out) {
    const auto s = group_[index(entry)];
    const auto t = group_[index(exit)];
    const Leg first = leg(s, through);
    const Leg second = leg(through, t);
    for (const auto& [gateway, part] : first.leaves) within(entry, gateway, amount * part, out);
    for (const auto& [a, part] : first.arrives)
      for (const auto& [b, other] : second.leaves) within(a, b, amount * part * other, out);
    for (const auto& [gateway, part] : second.arrives) within(gateway, exit, amount * part, out);
    for (const auto* between : {&cables(s, through), &cables(through, t)})
      for (const auto& cable : *between)
        out.push_back({cable.link, amount / static_cast<double>(between->size())});
  }

  std::vector<std::vector<std::int32_t>> groups_;
  bool adaptive_ = false;
  std::unique_ptr<FabricPaths> otherwise_;         ///< Fallback if cables are down; else null.
  std::vector<std::size_t> group_;                 ///< vertex -> group.
  std::vector<std::int32_t> local_;                ///< vertex -> index in its group.
  std::vector<std::vector<Domain::Edge>> cables_;  ///< Index: group, group.
  std::vector<Domain> inside_;                     ///< One per group, with vertices local to it.
  std::vector<std::optional<Search>> searches_;    ///< vertex -> search inside its group.
};

}  // namespace

std::unique_ptr<FabricPaths> group_paths(const FabricGraph& graph,
                                         std::vector<std::vector<std::int32_t>> groups,
                                         bool adaptive) {
  return std::make_unique<GroupPaths>(graph, std::move(groups), adaptive);
}

}  // namespace foreshard::internal
