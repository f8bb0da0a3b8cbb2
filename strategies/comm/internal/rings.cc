#include "strategies/comm/internal/rings.h"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"

#include "strategies/comm/internal/traffic.h"

namespace foreshard::comm::internal {
namespace {

using Ring = std::vector<std::int32_t>;

constexpr std::size_t kMostMembersToSearch = 8;  // 7! orders
constexpr int kMostRings = 12;

// The rail by which ring number `ring` enters node `node` of `nodes`. Ring 0 enters by rails 0, 1,
// 0, 1 ..., so that it leaves each node on the rail by which it enters the next one. An odd number
// of nodes needs a third rail to close.
std::size_t entrance(std::size_t node, std::size_t nodes, std::size_t rails, std::size_t ring) {
  if (node == nodes) node = 0;
  const bool is_third = nodes % 2 == 1 && node + 1 == nodes && rails > 2 && nodes > 1;
  return (ring + (is_third ? 2 : node % 2)) % rails;
}

// Appends the members of one node to the ring, from member `enter` to member `leave`.
void visit(const std::vector<std::int32_t>& members, std::size_t enter, std::size_t leave,
           Ring* ring) {
  const std::size_t count = members.size();
  ring->push_back(members[enter]);
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t member = (enter + i) % count;
    if (member != leave) ring->push_back(members[member]);
  }
  if (leave != enter) ring->push_back(members[leave]);
}

// Seconds per byte that rings put on each link.
class LinkTimes {
 public:
  explicit LinkTimes(const Participants& group) : group_(&group) {}

  Status prepare() {
    const auto count = static_cast<std::int32_t>(group_->devices.size());
    routes_.resize(group_->devices.size() * group_->devices.size());
    kinds_.resize(routes_.size());
    for (std::int32_t from = 0; from < count; ++from) {
      for (std::int32_t to = 0; to < count; ++to) {
        if (from == to) continue;
        FORESHARD_ASSIGN(auto route, route_between(*group_, from, to));
        kinds_[slot(from, to)] = route.widest_kind != LinkKind::kNvLink ? 2
                                 : route.links.size() > 1               ? 1
                                                                        : 0;
        for (const RoutedLink& routed : route.links) {
          const auto [place, is_new] =
              index_.try_emplace(routed.link, static_cast<int>(index_.size()));
          const double time =
              routed.share / group_->cluster->links()[routed.link.index()].bandwidth.in_base();
          routes_[slot(from, to)].push_back({place->second, time});
        }
      }
    }
    times_.assign(index_.size(), 0.0);
    return {};
  }

  // The slowest kind of hop that the ring takes: 0: one NVLink, 1: several NVLinks (a relay), 2:
  // any other link.
  int kind_of(const Ring& ring) const {
    int kind = 0;
    for (std::size_t i = 0; i < ring.size(); ++i)
      kind = std::max(kind, kinds_[slot(ring[i], ring[(i + 1) % ring.size()])]);
    return kind;
  }

  void add(const Ring& ring, double weight) {
    for (std::size_t i = 0; i < ring.size(); ++i)
      for (const auto& [link, time] : routes_[slot(ring[i], ring[(i + 1) % ring.size()])])
        times_[static_cast<std::size_t>(link)] += weight * time;
  }

  double largest() const { return *std::max_element(times_.begin(), times_.end()); }
  double squares() const {
    return std::inner_product(times_.begin(), times_.end(), times_.begin(), 0.0);
  }

 private:
  std::size_t slot(std::int32_t from, std::int32_t to) const {
    return static_cast<std::size_t>(from) * group_->devices.size() + static_cast<std::size_t>(to);
  }

  const Participants* group_;
  std::map<LinkId, int> index_;
  std::vector<std::vector<std::pair<int, double>>> routes_;
  std::vector<int> kinds_;  // Indexed as routes_.
  std::vector<double> times_;
};

bool no_switch_between(const Participants& group) {
  for (std::int32_t to = 1; to < static_cast<std::int32_t>(group.devices.size()); ++to) {
    const auto route = route_between(group, 0, to);
    if (route && route->links.size() == 1 && route->links.front().share == 1) return true;
  }
  return false;
}

// Orders the members inside a node where they have unequal links of their own (a hybrid cube mesh):
// from the first to the last member over the order whose slowest link is fastest. Nodes with a
// switch, and meshes with equal links between all members, keep their order.
class MeshOrders {
 public:
  explicit MeshOrders(const Participants& group) : group_(&group) {}

  void improve(std::span<std::int32_t> path) {
    if (path.size() < 4 || path.size() > kMostMembersToSearch || !may_be_mesh(path)) return;
    const std::size_t count = path.size();
    std::vector<double> times(count * count, 0);
    bool alike = true;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < count; ++j)
        if (i != j) {
          times[i * count + j] = time_between(path[i], path[j]);
          alike = alike && times[i * count + j] == times[1];
        }
    if (alike) return;
    const auto [known, is_new] = found_.try_emplace(times);
    if (is_new) known->second = best_order(times, count);
    const Ring before(path.begin(), path.end());
    for (std::size_t i = 0; i < count; ++i)
      path[i] = before[static_cast<std::size_t>(known->second[i])];
  }

 private:
  // Checked on the first node with devices of this type: other nodes with them are the same.
  bool may_be_mesh(std::span<const std::int32_t> path) {
    const DeviceId device = group_->devices[static_cast<std::size_t>(path[0])];
    const auto [known, is_new] =
        is_mesh_.try_emplace(group_->cluster->devices()[device.index()].type, false);
    for (std::size_t i = 1; is_new && i < path.size() && !known->second; ++i) {
      const auto route = route_between(*group_, path[0], path[i]);
      known->second = route && route->links.size() == 1;
    }
    return known->second;
  }

  double time_between(std::int32_t from, std::int32_t to) const {
    const auto route = route_between(*group_, from, to);
    if (!route) return std::numeric_limits<double>::infinity();
    double time = 0;
    for (const RoutedLink& routed : route->links)
      time = std::max(
          time, routed.share / group_->cluster->links()[routed.link.index()].bandwidth.in_base());
    return time;
  }

  // The order whose slowest hop is fastest; ties: the least sum of hop times. O((count-2)! count).
  static Ring best_order(const std::vector<double>& times, std::size_t count) {
    Ring order(count);
    std::iota(order.begin(), order.end(), 0);
    Ring best = order;
    std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
    do {
      std::pair<double, double> now{0, 0};
      for (std::size_t i = 0; i + 1 < count; ++i) {
        const double time = times[static_cast<std::size_t>(order[i]) * count +
                                  static_cast<std::size_t>(order[i + 1])];
        now.first = std::max(now.first, time);
        now.second += time;
      }
      if (now >= least) continue;
      least = now;
      best = order;
    } while (std::next_permutation(order.begin() + 1, order.end() - 1));
    return best;
  }

  const Participants* group_;
  std::map<DeviceTypeId, bool> is_mesh_;
  std::map<std::vector<double>, Ring> found_;
};

// Whether every two of the members have a direct link of their own, all equally fast.
bool all_joined_alike(const Participants& group, const std::vector<std::int32_t>& members) {
  std::optional<BytesPerSecond> rate;
  for (const std::int32_t from : members) {
    for (const std::int32_t to : members) {
      if (from == to) continue;
      const auto route = route_between(group, from, to);
      if (!route || route->links.size() != 1 || route->links.front().share < 1) return false;
      const BytesPerSecond own =
          group.cluster->links()[route->links.front().link.index()].bandwidth;
      if (rate && own != *rate) return false;
      rate = own;
    }
  }
  return true;
}

// A ring that leaves each node on the rail by which it enters the next one, except at the end of an
// odd number of nodes.
Ring ring_on_all_links(const std::vector<std::vector<std::int32_t>>& nodes, std::size_t number) {
  Ring ring;
  const std::size_t count = nodes.front().size();
  for (std::size_t i = 0; i < nodes.size(); ++i)
    std::ranges::copy(chain_on_all_links(nodes[i], (number + (i % 2) * (count / 2)) % count),
                      std::back_inserter(ring));
  return ring;
}

Ring ring_over_nodes(const std::vector<std::vector<std::int32_t>>& nodes, std::size_t rails,
                     std::size_t number, MeshOrders& orders) {
  Ring ring;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t first = ring.size();
    visit(nodes[i], entrance(i, nodes.size(), rails, number) % nodes[i].size(),
          entrance(i + 1, nodes.size(), rails, number) % nodes[i].size(), &ring);
    if (nodes.size() > 1) orders.improve(std::span(ring).subspan(first));
  }
  return ring;
}

// For members with equal links between every two: as many rings as a member has links, such that
// each link carries one ring in each direction. Empty where there are no such rings (4 and 6
// members; Bermond and Faber, "Decomposition of the complete directed graph into k-circuits", J.
// Combin. Theory B 21, 1976), where none are found in `kMostSteps`, or where the members have other
// links. `candidates`: all orders, each beginning with member 0.
std::vector<Ring> rings_on_all_links(const Participants& group,
                                     const std::vector<Ring>& candidates) {
  constexpr int kMostSteps = 1 << 20;
  const std::size_t count = group.devices.size();
  std::vector<std::int32_t> members(count);
  std::iota(members.begin(), members.end(), 0);
  if (!all_joined_alike(group, members)) return {};

  // A bit per directed link; candidates grouped by the member that follows member 0.
  using Links = std::bitset<kMostMembersToSearch * kMostMembersToSearch>;
  std::vector<std::vector<std::pair<Links, const Ring*>>> by_first_hop(count);
  for (const Ring& ring : candidates) {
    Links links;
    for (std::size_t i = 0; i < count; ++i)
      links.set(static_cast<std::size_t>(ring[i]) * count +
                static_cast<std::size_t>(ring[(i + 1) % count]));
    by_first_hop[static_cast<std::size_t>(ring[1])].emplace_back(links, &ring);
  }
  std::vector<Ring> chosen;
  int steps = 0;
  const auto extend = [&](const auto& again, std::size_t next, const Links& taken) -> bool {
    if (next == count) return true;
    for (const auto& [links, ring] : by_first_hop[next]) {
      if (++steps > kMostSteps) return false;
      if ((links & taken).any()) continue;
      chosen.push_back(*ring);
      if (again(again, next + 1, taken | links)) return true;
      chosen.pop_back();
    }
    return false;
  };
  return extend(extend, 1, Links{}) ? chosen : std::vector<Ring>{};
}

// Nominal rate per member of the adapters by which members reach the next node; where the PCIe link
// to an adapter is slower, that link's rate counts.
Result<BytesPerSecond> adapter_rate(const Participants& group,
                                    const std::vector<std::int32_t>& members,
                                    const std::vector<std::int32_t>& next) {
  const ClusterView& cluster = *group.cluster;
  std::map<LinkId, BytesPerSecond> adapters;
  for (std::size_t i = 0; i < members.size(); ++i) {
    FORESHARD_ASSIGN(const auto route, route_between(group, members[i], next[i % next.size()]));
    const std::int32_t node =
        cluster.devices()[group.devices[static_cast<std::size_t>(members[i])].index()].node;
    BytesPerSecond inside = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
    std::vector<LinkId> used;
    for (const RoutedLink& routed : route.links) {
      const Link& link = cluster.links()[routed.link.index()];
      const Vertex& from = cluster.vertices()[link.from.index()];
      if (link.kind == LinkKind::kPcie && from.node == node)
        inside = std::min(inside, link.nominal());
      if (link.kind == LinkKind::kNetwork && from.kind == VertexKind::kNic)
        used.push_back(routed.link);
    }
    for (const LinkId adapter : used)
      adapters[adapter] = std::min(inside, cluster.links()[adapter.index()].nominal());
  }
  BytesPerSecond total;
  for (const auto& [unused, rate] : adapters) total += rate;
  return total / static_cast<double>(members.size());
}

// NVIDIA/nccl v2.28, src/graph/search.cc: the fastest entries of speedArrayInter, and the
// thresholds of ncclTopoDupChannels.
constexpr double kFastestChannel = 48;           // GB/s
constexpr double kFastestChannelBlackwell = 96;  // GB/s
constexpr double kChannelPart = 0.96;            // a channel's speed: 48 on 50 GB/s, 24 on 25 GB/s
constexpr double kCopiedFrom = 50;               // GB/s
constexpr double kFewCopiedFrom = 25;  // GB/s; up to Ampere whatever the number of channels
constexpr std::size_t kFew = 4;
constexpr std::int64_t kAmpere = 80;
constexpr std::int64_t kBlackwell = 100;

std::size_t rings_offered(const Participants& group, const std::vector<std::int32_t>& members,
                          BytesPerSecond rate) {
  const auto& type =
      group.cluster->type_of(group.devices[static_cast<std::size_t>(members.front())]);
  const std::int64_t capability = *type.compute_capability;
  const double fastest = capability >= kBlackwell ? kFastestChannelBlackwell : kFastestChannel;
  const double speed = kChannelPart * (rate / 1_GB_s);
  const std::size_t each = std::max<std::size_t>(1, static_cast<std::size_t>(speed / fastest));
  const std::size_t channels = each * members.size();
  const double of_one = speed / static_cast<double>(each);
  const bool copied = of_one >= kCopiedFrom ||
                      (of_one >= kFewCopiedFrom && (channels <= kFew || capability <= kAmpere));
  return copied ? 2 * channels : channels;
}

// Considers only the orders whose slowest hop is of the best kind (NCCL uses a slower kind of path
// only where it found no ring without: src/graph/search.cc, v2.28). Adds rings one after another,
// each time the ring that leaves the busiest link (then all links) least busy, and keeps as many as
// give the best rate.
Result<std::vector<Ring>> search_rings(const Participants& group) {
  LinkTimes times(group);
  FORESHARD_TRY(times.prepare());

  std::vector<Ring> candidates;
  Ring order(group.devices.size());
  std::iota(order.begin(), order.end(), 0);
  int kind = std::numeric_limits<int>::max();
  do {
    const int own = times.kind_of(order);
    if (own > kind) continue;
    if (own < kind) candidates.clear();
    kind = own;
    candidates.push_back(order);
  } while (std::next_permutation(order.begin() + 1, order.end()));

  if (std::vector<Ring> cover = rings_on_all_links(group, candidates); !cover.empty()) return cover;
  std::vector<Ring> chosen;
  double best_time = 0;
  std::size_t best_count = 0;
  const double tolerance = 1 + 1e-9;
  while (chosen.size() < kMostRings) {
    const Ring* best = nullptr;
    double largest = 0;
    double squares = 0;
    for (const Ring& candidate : candidates) {
      times.add(candidate, 1);
      const double now = times.largest();
      const double now_squares = times.squares();
      times.add(candidate, -1);
      if (best == nullptr || now * tolerance < largest ||
          (now < largest * tolerance && now_squares * tolerance < squares)) {
        best = &candidate;
        largest = now;
        squares = now_squares;
      }
    }
    chosen.push_back(*best);
    times.add(*best, 1);
    const double time_of_one = largest / static_cast<double>(chosen.size());
    if (best_count == 0 || time_of_one * tolerance < best_time) {
      best_time = time_of_one;
      best_count = chosen.size();
    }
  }
  chosen.resize(best_count);
  return chosen;
}

constexpr double kMostMessages = 64e6;

Path longest_path(const Traffic& traffic, const std::vector<std::int32_t>& ring, int rounds) {
  const std::size_t count = ring.size();
  const auto hop = [&](std::size_t i) {
    return traffic.hop(ring[i % count], ring[(i + 1) % count]);
  };
  Path total;
  for (std::size_t i = 0; i < count; ++i) total.add(hop(i), rounds);
  Path longest;
  for (std::size_t i = 0; i < count; ++i) {
    Path path = total;
    for (int skipped = 0; skipped < rounds; ++skipped)
      path.add(hop(i + static_cast<std::size_t>(skipped)), -1);
    if (i == 0 || longer(path, longest)) longest = path;
  }
  return longest;
}

}  // namespace

std::vector<std::vector<std::int32_t>> members_by_node(const Participants& group) {
  std::map<std::int32_t, std::size_t> place_of;
  std::vector<std::vector<std::int32_t>> nodes;
  for (std::size_t i = 0; i < group.devices.size(); ++i) {
    const std::int32_t node = group.cluster->devices()[group.devices[i].index()].node;
    const auto [place, is_new] = place_of.try_emplace(node, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[place->second].push_back(static_cast<std::int32_t>(i));
  }
  return nodes;
}

std::size_t rails_of(const std::vector<std::vector<std::int32_t>>& nodes) {
  // src/graph/search.cc, v2.28: half of MAXCHANNELS, the other half is for the doubling.
  constexpr std::size_t kMostOfSearch = 32;
  return std::min(kMostOfSearch,
                  std::ranges::min(nodes, {}, &std::vector<std::int32_t>::size).size());
}

bool has_chains_on_all_links(const Participants& group,
                             const std::vector<std::vector<std::int32_t>>& nodes) {
  const std::size_t members = nodes.front().size();
  return members >= 4 && members % 2 == 0 &&
         std::ranges::all_of(nodes, [&](const std::vector<std::int32_t>& node) {
           return node.size() == members && all_joined_alike(group, node);
         });
}

// Walecki's construction (Alspach, "The wonderful Walecki construction", Bulletin of the ICA 52,
// 2008). AMD's RCCL has a table of such chains for eight GPUs (ROCm/rccl,
// src/graph/rome_models.cc, rome_model_81).
std::vector<std::int32_t> chain_on_all_links(const std::vector<std::int32_t>& node,
                                             std::size_t first) {
  std::vector<std::int32_t> chain;
  const std::size_t count = node.size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t step = (k + 1) / 2;
    chain.push_back(node[(first + (k % 2 == 1 ? step : count - step)) % count]);
  }
  return chain;
}

Result<std::size_t> rings_over(const Participants& group,
                               const std::vector<std::vector<std::int32_t>>& nodes) {
  const std::size_t least = rails_of(nodes);
  const auto has_more = [&](const auto& node) { return node.size() > least; };
  if (nodes.size() == 1 || std::ranges::none_of(nodes, has_more)) return least;
  std::vector<double> rates;  // node -> adapter rate per member
  std::size_t offered = std::numeric_limits<std::size_t>::max();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    FORESHARD_ASSIGN(const BytesPerSecond rate,
                     adapter_rate(group, nodes[n], nodes[(n + 1) % nodes.size()]));
    rates.push_back(rate.in_base());
    offered = std::min(offered, rings_offered(group, nodes[n], rate));
  }
  const auto time_of = [&](std::size_t count) {
    double slowest = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const std::size_t rings_of_one = (count + nodes[n].size() - 1) / nodes[n].size();
      slowest = std::max(slowest,
                         static_cast<double>(rings_of_one) / static_cast<double>(count) / rates[n]);
    }
    return slowest;
  };
  constexpr double kRounding = 1 - 1e-9;
  return time_of(offered) < time_of(least) * kRounding ? offered : least;
}

Result<std::vector<std::vector<std::int32_t>>> rings(const Participants& group) {
  const auto nodes = members_by_node(group);
  if (nodes.size() == 1) {
    const std::size_t members = group.devices.size();
    if (members > 2 && members <= kMostMembersToSearch && no_switch_between(group))
      return search_rings(group);
    return std::vector<Ring>{nodes.front()};
  }
  FORESHARD_ASSIGN(const std::size_t count, rings_over(group, nodes));
  std::vector<Ring> all;
  all.reserve(count);
  if (count == nodes.front().size() && has_chains_on_all_links(group, nodes)) {
    for (std::size_t number = 0; number < count; ++number)
      all.push_back(ring_on_all_links(nodes, number));
    return all;
  }
  MeshOrders orders(group);
  for (std::size_t number = 0; number < count; ++number)
    all.push_back(ring_over_nodes(nodes, count, number, orders));
  return all;
}

Result<Pattern> ring_pattern(const Participants& group, int rounds) {
  FORESHARD_ASSIGN(const auto all, rings(group));

  const auto members = static_cast<double>(group.devices.size());
  const double share = rounds * (members - 1) / members / static_cast<double>(all.size());
  Traffic traffic(group);
  for (const auto& ring : all)
    for (std::size_t i = 0; i < ring.size(); ++i)
      traffic.add(ring[i], ring[(i + 1) % ring.size()], share);
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  for (const auto& ring : all) {
    const Path path = longest_path(traffic, ring, rounds);
    if (&ring == &all.front() || longer(path, pattern.path)) pattern.path = path;
  }
  pattern.ways = static_cast<double>(all.size());
  pattern.message = 1 / members;
  pattern.sent_per_member = rounds * (members - 1) / members;
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

Result<StepwiseCollective> ring_steps(const Participants& group, int reduce_rounds,
                                      int gather_rounds) {
  FORESHARD_ASSIGN(const auto all, rings(group));
  const auto ways = static_cast<std::int32_t>(all.size());
  const auto count = static_cast<std::int32_t>(group.devices.size());
  const std::int32_t steps = (reduce_rounds + gather_rounds) * (count - 1);
  FORESHARD_TRY(too_many_messages("ring", static_cast<double>(steps) * count * ways));

  StepwiseCollective result{.algorithm = "ring", .chunks = count * ways, .messages = {}};
  result.messages.reserve(static_cast<std::size_t>(steps * count) * all.size());
  std::vector<Seconds> latency;
  for (const auto& ring : all) {
    for (std::int32_t i = 0; i < count; ++i) {
      FORESHARD_ASSIGN(const auto route,
                       route_between(group, ring[static_cast<std::size_t>(i)],
                                     ring[static_cast<std::size_t>((i + 1) % count)]));
      latency.push_back(route.latency);
    }
  }
  // Every member owns as many adjacent chunks as there are rings: reduce-scatter leaves them with
  // the member, all-gather starts from it, and ring w carries the w-th chunk of each member. In
  // step s of a round the member at place i passes on the chunk of the member s places before it
  // (gathering) or s + 1 places before it (reducing).
  for (std::int32_t step = 0; step < steps; ++step) {
    const bool reduces = step < reduce_rounds * (count - 1);
    const std::int32_t back = step % (count - 1) + (reduces ? 1 : 0);
    for (std::int32_t way = 0; way < ways; ++way) {
      const auto& ring = all[static_cast<std::size_t>(way)];
      const std::int32_t before = ((step - 1) * ways + way) * count;  // this ring's last step
      for (std::int32_t i = 0; i < count; ++i) {
        const std::int32_t owner = ring[static_cast<std::size_t>((i - back + 2 * count) % count)];
        Message message{.from = ring[static_cast<std::size_t>(i)],
                        .to = ring[static_cast<std::size_t>((i + 1) % count)],
                        .part = 1.0 / (count * ways),
                        .latency = latency[static_cast<std::size_t>(std::int64_t{way} * count + i)],
                        .after = {},
                        .first_chunk = owner * ways + way,
                        .chunk_count = 1,
                        .reduces = reduces};
        if (step > 0) {  // its own last send, and the message that it passes on
          message.after = {before + (i + count - 1) % count, before + i};
          std::ranges::sort(message.after);
        }
        result.messages.push_back(std::move(message));
      }
    }
  }
  return result;
}

Status too_many_messages(std::string_view algorithm, double messages) {
  if (messages <= kMostMessages) return {};
  return Error{Error::Code::kUnsupported,
               std::string(algorithm) + ": the stepwise form of this group has " +
                   std::to_string(messages) + " messages; at most " +
                   std::to_string(kMostMessages) + " are written out. Use the flat form."};
}

}  // namespace foreshard::comm::internal
