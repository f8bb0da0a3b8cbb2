#include "sim/simulate/stepwise.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/index.h"

#include "sim/engine/workload.h"
#include "sim/simulate/internal/pair_routes.h"
#include "sim/simulate/internal/signature.h"

namespace foreshard::sim {
namespace {

using internal::joined;
using internal::rounded;

// One lane on the links of the cluster.
struct Way {
  double latency = 0;
  double seconds = 0;         // of a message alone, without the latency
  std::size_t first_use = 0;  // into Ways::uses
};
struct Ways {
  std::vector<Way> of;  // per lane, and one more
  std::vector<RoutedLink> uses;
  bool shared = false;  // whether two lanes use one link

  std::span<const RoutedLink> links(std::size_t lane) const {
    return {uses.data() + of[lane].first_use, uses.data() + of[lane + 1].first_use};
  }
};

Result<Ways> ways_of(const comm::LaneForm& form, Bytes bytes, const comm::Participants& group,
                     const StepwiseOptions& options) {
  const ClusterView& cluster = *group.cluster;
  std::optional<Congruence> own;
  if (options.congruence == nullptr) own.emplace(cluster);
  internal::PairRoutes routes(cluster, own ? *own : *options.congruence);
  Ways ways;
  ways.of.reserve(form.lanes.size() + 1);
  std::vector<bool> used(cluster.links().size(), false);
  for (const comm::Lane& lane : form.lanes) {
    const auto route =
        routes.route(group.devices[at(lane.from)], group.devices[at(lane.to)], group.flow);
    if (!route) return route.error();
    double per_byte = 0;
    ways.of.push_back({route->latency.in_base(), 0, ways.uses.size()});
    for (const RoutedLink& routed : route->links) {
      ways.uses.push_back(routed);
      per_byte = std::max(per_byte,
                          routed.share / cluster.links()[routed.link.index()].bandwidth.in_base());
      ways.shared = ways.shared || used[routed.link.index()];
      used[routed.link.index()] = true;
    }
    ways.of.back().seconds = lane.part * bytes.in_base() * per_byte;
  }
  ways.of.push_back({0, 0, ways.uses.size()});
  return ways;
}

// Lanes of equal classes are alike. Links likewise, if they matter.
struct Classes {
  std::int32_t count = 0;
  std::vector<std::int32_t> of;     // per lane
  std::vector<std::int32_t> first;  // per class, its first lane
};

Classes numbered(const std::vector<std::uint64_t>& signatures) {
  Classes classes;
  std::unordered_map<std::uint64_t, std::int32_t> known;
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    const auto [place, is_new] = known.try_emplace(signatures[i], classes.count);
    if (is_new) {
      ++classes.count;
      classes.first.push_back(static_cast<std::int32_t>(i));
    }
    classes.of.push_back(place->second);
  }
  return classes;
}

Classes one_class_each(std::size_t count) {
  Classes classes{static_cast<std::int32_t>(count), std::vector<std::int32_t>(count), {}};
  for (std::size_t i = 0; i < count; ++i) classes.of[i] = static_cast<std::int32_t>(i);
  classes.first = classes.of;
  return classes;
}

bool is_ring(const comm::LaneForm& form) {
  const auto count = static_cast<std::int32_t>(form.lanes.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const auto& after = form.lanes[at(i)].after;
    if (after.size() != 2 || after[0].lane != (i + count - 1) % count ||
        after[0].steps_before != 1 || after[1].lane != i || after[1].steps_before != 1)
      return false;
  }
  return count > 0;
}

std::vector<std::uint64_t> first_signatures(const comm::LaneForm& form, const Ways& ways) {
  std::vector<std::uint64_t> signatures;
  for (std::size_t i = 0; i < form.lanes.size(); ++i)
    signatures.push_back(joined(rounded(ways.of[i].latency), rounded(ways.of[i].seconds)));
  return signatures;
}

// The shortest period of a ring's lanes: a turn by it changes nothing. By the failure function of
// Knuth, Morris and Pratt, "Fast pattern matching in strings", SIAM J. Computing 6(2), 1977.
Classes ring_classes(const std::vector<std::uint64_t>& signatures) {
  const std::size_t count = signatures.size();
  std::vector<std::size_t> border(count + 1, 0);
  for (std::size_t i = 1, k = 0; i < count; ++i) {
    while (k > 0 && signatures[i] != signatures[k]) k = border[k];
    if (signatures[i] == signatures[k]) ++k;
    border[i + 1] = k;
  }
  const std::size_t period = count - border[count];
  if (count % period != 0) return one_class_each(count);
  Classes classes = one_class_each(period);
  classes.of.resize(count);
  for (std::size_t i = 0; i < count; ++i) classes.of[i] = static_cast<std::int32_t>(i % period);
  return classes;
}

struct Refined {
  Classes lanes;
  std::vector<std::int32_t> class_of_link;  // of those in use, else -1
};

// Colours of lanes by the lanes that they wait for and, with links, by the links that they use,
// whose colours are those of their users.
Refined refined(const ClusterView& cluster, const comm::LaneForm& form, const Ways& ways) {
  auto lane = first_signatures(form, ways);
  std::vector<std::uint64_t> link;
  for (const Link& of : cluster.links()) link.push_back(mixed(rounded(of.bandwidth.in_base())));
  std::vector<std::uint64_t> users(link.size(), 0);
  Refined result;
  std::int32_t before = 0;
  for (;;) {
    auto next = lane;
    std::ranges::fill(users, 0);
    for (std::size_t i = 0; i < lane.size(); ++i) {
      std::uint64_t waits = 0;
      for (const comm::LaneDependency& after : form.lanes[i].after)
        waits += joined(lane[at(after.lane)], static_cast<std::uint64_t>(after.steps_before));
      std::uint64_t uses = 0;
      for (const RoutedLink& routed : ways.links(i)) {
        uses += joined(link[routed.link.index()], rounded(routed.share));
        users[routed.link.index()] += joined(lane[i], rounded(routed.share));
      }
      next[i] = joined(joined(lane[i], waits), uses);
    }
    lane = std::move(next);
    for (std::size_t l = 0; l < link.size(); ++l) {
      if (users[l] != 0) link[l] = joined(link[l], users[l]);
    }
    result.lanes = numbered(lane);
    std::vector<std::uint64_t> used;
    std::vector<std::size_t> which;
    for (std::size_t l = 0; l < link.size(); ++l) {
      if (users[l] == 0) continue;
      used.push_back(link[l]);
      which.push_back(l);
    }
    const Classes links = numbered(used);
    if (result.lanes.count + links.count == before) {
      result.class_of_link.assign(link.size(), -1);
      for (std::size_t i = 0; i < which.size(); ++i) result.class_of_link[which[i]] = links.of[i];
      return result;
    }
    before = result.lanes.count + links.count;
  }
}

Refined unfolded(const ClusterView& cluster, const comm::LaneForm& form) {
  Refined result{one_class_each(form.lanes.size()), {}};
  result.class_of_link = one_class_each(cluster.links().size()).of;
  return result;
}

// A ring without shared links, in closed form (stepwise.h). Per class the lanes that its messages
// may have waited at, nearest first: the finish in step s >= back is `sum` + s x `pace`.
struct Slower {
  std::int32_t back = 0;  // places round the ring
  double pace = 0;        // of one message
  double sum = 0;
};

std::vector<std::vector<Slower>> slower_lanes(const Ways& ways, const Classes& classes) {
  const std::size_t count = at(classes.count);
  std::vector<double> before{0};  // sums of two rounds
  std::vector<double> pace;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const Way& way = ways.of[at(classes.first[i % count])];
    pace.push_back(way.latency + way.seconds);
    before.push_back(before.back() + pace.back());
  }
  std::vector<std::vector<Slower>> slower(count);
  std::vector<std::size_t> ahead;  // places each of which is slower than all after it
  for (std::size_t i = 0; i < 2 * count; ++i) {
    while (!ahead.empty() && pace[ahead.back()] <= pace[i]) ahead.pop_back();
    ahead.push_back(i);
    if (i < count) continue;
    for (auto place = ahead.rbegin(); place != ahead.rend() && i - *place < count; ++place) {
      const auto back = static_cast<double>(i - *place);
      slower[i - count].push_back({static_cast<std::int32_t>(i - *place), pace[*place],
                                   before[i + 1] - before[*place] - back * pace[*place]});
    }
  }
  return slower;
}

double finish_in(std::int32_t step, const std::vector<Slower>& lanes) {
  double finish = 0;
  for (const Slower& lane : lanes) {
    if (lane.back <= step) finish = std::max(finish, lane.sum + step * lane.pace);
  }
  return finish;
}

void solve_ring(const comm::LaneForm& form, const Ways& ways, const Classes& classes, bool keep_all,
                StepwiseTimes& times) {
  const auto slower = slower_lanes(ways, classes);
  double last = 0;
  for (const auto& lanes : slower) last = std::max(last, finish_in(form.steps - 1, lanes));
  times.time = Seconds::from_base(last);
  if (!keep_all) return;
  times.finish.reserve(at(form.steps) * slower.size());
  for (std::int32_t step = 0; step < form.steps; ++step)
    for (const auto& lanes : slower) times.finish.push_back(finish_in(step, lanes));
}

// Without shared links.
void evaluate(const comm::LaneForm& form, const Ways& ways, const Classes& classes, bool keep_all,
              StepwiseTimes& times) {
  const std::size_t count = at(classes.count);
  const std::size_t rows = keep_all ? at(form.steps) : std::min<std::size_t>(2, at(form.steps));
  times.finish.assign(rows * count, 0);
  std::vector<double> own;
  for (const std::int32_t lane : classes.first)
    own.push_back(ways.of[at(lane)].latency + ways.of[at(lane)].seconds);
  double last = 0;
  for (std::int32_t step = 0; step < form.steps; ++step) {
    const auto row = [&](std::int32_t of) { return times.finish.data() + at(of) % rows * count; };
    double* const now = row(step);
    for (std::size_t c = 0; c < count; ++c) {
      double ready = 0;
      for (const comm::LaneDependency& after : form.lanes[at(classes.first[c])].after) {
        if (after.steps_before <= step)
          ready = std::max(ready, row(step - after.steps_before)[classes.of[at(after.lane)]]);
      }
      now[c] = ready + own[c];
    }
    last = std::max(last, *std::max_element(now, now + count));
  }
  times.time = Seconds::from_base(last);
  if (!keep_all) times.finish.clear();
}

// With shared links: what each class of lanes puts on one link of each class.
Status run_engine(const comm::LaneForm& form, Bytes bytes, const Ways& ways, const Refined& refined,
                  const ClusterView& cluster, bool keep_all, StepwiseTimes& times) {
  struct Sum {
    double weight = 0;
    double total = 0;
  };
  engine::Workload workload;
  std::map<std::int32_t, std::pair<LinkId, engine::ResourceId>> resources;  // by link class
  std::vector<std::map<std::int32_t, Sum>> loads(at(refined.lanes.count));
  for (std::size_t i = 0; i < form.lanes.size(); ++i) {
    for (const RoutedLink& routed : ways.links(i)) {
      const std::int32_t of = refined.class_of_link[routed.link.index()];
      auto known = resources.find(of);
      if (known == resources.end()) {
        const double capacity = cluster.links()[routed.link.index()].bandwidth.in_base();
        known =
            resources.emplace(of, std::pair(routed.link, workload.add_resource(capacity))).first;
      }
      if (known->second.first != routed.link) continue;  // the class's first link stands for it
      Sum& sum = loads[at(refined.lanes.of[i])][of];
      sum.weight = std::max(sum.weight, routed.share);
      sum.total += routed.share;
    }
  }
  std::vector<engine::ShapeId> shapes;
  for (const auto& of_class : loads) {
    engine::Shape shape{.usages = {}, .occupations = {}};
    for (const auto& [link, sum] : of_class)
      shape.usages.push_back({.resource = resources.at(link).second,
                              .weight = sum.weight,
                              .multiplicity = sum.total / sum.weight});
    shapes.push_back(workload.add_shape(std::move(shape)));
  }
  const auto count = static_cast<std::int64_t>(refined.lanes.count);
  for (std::int32_t step = 0; step < form.steps; ++step) {
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int32_t lane = refined.lanes.first[static_cast<std::size_t>(c)];
      const auto id =
          workload.add_activity({.shape = shapes[static_cast<std::size_t>(c)],
                                 .latency = Seconds::from_base(ways.of[at(lane)].latency),
                                 .work = form.lanes[at(lane)].part * bytes.in_base(),
                                 .release_from = {},
                                 .release_lag = {}});
      for (const comm::LaneDependency& after : form.lanes[at(lane)].after) {
        if (after.steps_before > step) continue;
        workload.add_edge(engine::ActivityId((step - after.steps_before) * count +
                                             refined.lanes.of[at(after.lane)]),
                          id);
      }
    }
  }
  FORESHARD_ASSIGN(const auto run, engine::run_fluid(workload));
  times.time = run.makespan;
  if (keep_all) {
    for (const Seconds finish : run.finish) times.finish.push_back(finish.in_base());
  }
  return {};
}

}  // namespace

Seconds StepwiseTimes::finish_of(std::int32_t step, std::int32_t lane) const {
  FORESHARD_CHECK(!finish.empty());
  return Seconds::from_base(finish[at(step) * at(classes) + at(class_of_lane[at(lane)])]);
}

Result<StepwiseTimes> stepwise_times(std::string_view algorithm, comm::CollectiveKind kind,
                                     Bytes bytes, const comm::Participants& group,
                                     const StepwiseOptions& options) {
  FORESHARD_ASSIGN(const auto form, comm::lane_form(algorithm, kind, group));
  StepwiseTimes times;
  times.steps = form.steps;
  if (form.lanes.empty()) return times;  // nobody to talk to
  const auto ways = ways_of(form, bytes, group, options);
  if (!ways) return ways.error();
  times.shares_links = ways->shared;
  const bool ring = options.fold && !ways->shared && is_ring(form);
  Refined classes;
  if (ring) {
    classes.lanes = ring_classes(first_signatures(form, *ways));
  } else {
    classes = options.fold ? refined(*group.cluster, form, *ways) : unfolded(*group.cluster, form);
  }
  times.classes = classes.lanes.count;
  times.class_of_lane = classes.lanes.of;
  if (ring) {
    solve_ring(form, *ways, classes.lanes, options.every_message, times);
  } else if (!ways->shared) {
    evaluate(form, *ways, classes.lanes, options.every_message, times);
  } else if (const Status fault = run_engine(form, bytes, *ways, classes, *group.cluster,
                                             options.every_message, times);
             !fault.ok()) {
    return fault.error();
  }
  return times;
}

}  // namespace foreshard::sim
