#include "strategies/comm/nccl/search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "strategies/comm/internal/rings.h"
#include "strategies/comm/internal/switch_sums.h"
#include "strategies/comm/internal/traffic.h"
#include "strategies/comm/nccl/local_node.h"

namespace foreshard::comm::nccl {
namespace {

// The limit of the search: half of NCCL's MAXCHANNELS, since the channels may be doubled
// afterwards.
std::int64_t most_channels_of_search(const Tables& tables) {
  return tables.most_channels / 2;
}
constexpr int kMostSteps = 1 << 14;  // limit of one channel's search
constexpr double kTolerance = 1e-6;

// Options of the search for channels.
struct ChannelOptions {
  bool crosses_network = false;
  bool may_cross_nics = false;  ///< A channel may come in by one adapter and leave by another.
  bool repeats = true;          ///< A channel is placed again as long as it fits.
};

// Places channels of one speed on a node.
class ChannelPlacement {
 public:
  ChannelPlacement(const LocalNode& node, double speed, const ChannelOptions& manner)
      : node_(node),
        speed_(speed),
        crosses_network_(manner.crosses_network),
        may_cross_nics_(manner.may_cross_nics),
        repeats_(manner.repeats),
        left_(node.capacity) {}

  /// The number of channels that fit, at most `most`.
  std::int64_t place(std::int64_t most) {
    std::int64_t placed = 0;
    while (placed < most) {
      if (!(repeats_ && has_last_ && take(last_))) {
        if (!find()) break;
      }
      ++placed;
    }
    return placed;
  }
  LinkKind widest() const { return widest_; }
  bool far_nic() const { return far_nic_; }

 private:
  using Hops = std::vector<const LocalHop*>;

  bool fits(const LocalHop& hop) const {
    return std::all_of(hop.uses.begin(), hop.uses.end(), [&](const LinkUse& use) {
      return left_[use.link] >= speed_ * use.share * (1 - kTolerance);
    });
  }
  void load(const LocalHop& hop, double times) {
    for (const LinkUse& use : hop.uses) left_[use.link] -= times * speed_ * use.share;
  }
  double room(const LocalHop& hop) const {
    double least = 1e300;
    for (const LinkUse& use : hop.uses) least = std::min(least, left_[use.link] / use.share);
    return least;
  }

  // Loads all hops, or none if they do not all fit.
  bool take(const Hops& hops) {
    std::size_t taken = 0;
    while (taken < hops.size() && fits(*hops[taken])) load(*hops[taken++], 1);
    if (taken == hops.size()) return true;
    while (taken > 0) load(*hops[--taken], -1);
    return false;
  }

  bool find() {
    steps_ = 0;
    path_.clear();
    visited_.assign(node_.members, false);
    if (!crosses_network_) {
      visited_[0] = true;
      return node_.members > 1 && extend(0, 0, 1) && remember();
    }
    for (std::size_t enter = 0; enter < node_.members; ++enter) {
      if (!fits(node_.from_nic[enter])) continue;
      for (std::size_t back = 1; back <= node_.members; ++back) {
        const std::size_t leave = (enter + node_.members - back) % node_.members;
        if (leave == enter && node_.members > 1) continue;
        if (!may_cross_nics_ && node_.nics[enter] != node_.nics[leave]) continue;
        if (!fits(node_.to_nic[leave])) continue;
        if (cross(enter, leave)) return remember();
      }
    }
    return false;
  }

  bool cross(std::size_t enter, std::size_t leave) {
    path_ = {&node_.from_nic[enter]};
    load(*path_.front(), 1);
    visited_.assign(node_.members, false);
    visited_[enter] = true;
    if (node_.members == 1 ? add(node_.to_nic[leave]) : extend(enter, leave, 1)) return true;
    load(node_.from_nic[enter], -1);
    path_.clear();
    return false;
  }

  bool add(const LocalHop& hop) {
    if (!fits(hop)) return false;
    load(hop, 1);
    path_.push_back(&hop);
    return true;
  }
  void drop() {
    load(*path_.back(), -1);
    path_.pop_back();
  }

  // Extends the path over the members not yet visited. It ends at `last` and leaves the node from
  // there (or, for a cycle, returns to member 0).
  bool extend(std::size_t at, std::size_t last, std::size_t visited) {
    if (++steps_ > kMostSteps) return false;
    if (visited == node_.members)
      return add(crosses_network_ ? node_.to_nic[at] : node_.hop[at][0]);
    const bool to_last = crosses_network_ && visited + 1 == node_.members;
    std::vector<std::pair<double, std::size_t>> next;
    for (std::size_t step = 1; step < node_.members; ++step) {
      const std::size_t to = (at + step) % node_.members;
      if (visited_[to] || (crosses_network_ && (to == last) != to_last)) continue;
      const LocalHop& hop = node_.hop[at][to];
      constexpr double kLastResort = 1e-9;  // NCCL looks for paths without relays first
      if (fits(hop)) next.emplace_back((hop.relayed ? kLastResort : 1) * room(hop), to);
    }
    std::stable_sort(next.begin(), next.end(), [](const auto& a, const auto& b) {
      return a.first > b.first * (1 + kTolerance);
    });
    for (const auto& [unused, to] : next) {
      if (!add(node_.hop[at][to])) continue;
      visited_[to] = true;
      if (extend(to, last, visited + 1)) return true;
      visited_[to] = false;
      drop();
      if (steps_ > kMostSteps) return false;
    }
    return false;
  }

  bool remember() {
    has_last_ = true;
    last_ = path_;
    for (std::size_t i = 0; i < path_.size(); ++i) {
      const bool at_nic = crosses_network_ && (i == 0 || i + 1 == path_.size());
      if (at_nic)
        far_nic_ = far_nic_ || path_[i]->kind == LinkKind::kSocket;
      else
        widest_ = std::max(widest_, path_[i]->kind);
    }
    return true;
  }

  const LocalNode& node_;
  double speed_;
  bool crosses_network_;
  bool may_cross_nics_;
  bool repeats_;
  std::vector<double> left_;
  int steps_ = 0;
  Hops path_;
  std::vector<bool> visited_;
  bool has_last_ = false;
  Hops last_;
  LinkKind widest_ = LinkKind::kNvLink;
  bool far_nic_ = false;
};

double largest_hop(const LocalNode& node, bool crosses_network) {
  double largest = 0;
  const auto see = [&](const LocalHop& hop) {
    double least = 1e300;
    for (const LinkUse& use : hop.uses) least = std::min(least, node.capacity[use.link]);
    if (!hop.uses.empty()) largest = std::max(largest, least);
  };
  for (const auto& from : node.hop)
    for (const LocalHop& hop : from) see(hop);
  if (crosses_network && node.members == 1) see(node.to_nic.front());
  return largest;
}

std::vector<double> speeds_of(const Generation& generation, bool crosses_network) {
  std::vector<double> speeds;
  for (const BytesPerSecond speed :
       crosses_network ? generation.inter_speeds : generation.intra_speeds)
    speeds.push_back(speed / 1_GB_s);
  return speeds;
}

void set_rate(SearchGraph* graph, double speed) {
  graph->intra_rate = speed * 1_GB_s;
  graph->inter_rate = speed * 1_GB_s;
}

// Doubles the channels at half the speed, where channels are fast and not too many.
void double_channels(SearchGraph* graph, const Doubling& when, std::int64_t most) {
  const BytesPerSecond speed = graph->intra_rate;
  const bool wanted = speed >= when.from || (graph->channels <= when.few && speed >= when.few_from);
  if (!wanted || 2 * graph->channels > most) return;
  graph->channels *= 2;
  set_rate(graph, speed / 1_GB_s / 2);
}

SearchGraph ring_of(const LocalNode& node, const Tables& tables, std::int64_t capability,
                    bool crosses_network) {
  const auto speeds = speeds_of(tables.generation_of(capability), crosses_network);
  const std::int64_t most = most_channels_of_search(tables);
  SearchGraph best;
  double best_speed = 0;
  std::size_t first = 0;
  const double largest = largest_hop(node, crosses_network) * (1 + kTolerance);
  while (first + 1 < speeds.size() && speeds[first] > largest) ++first;
  const auto total_of = [](std::int64_t channels, double speed) {
    return static_cast<double>(channels) * speed;
  };
  std::vector<ChannelOptions> manners{{crosses_network, false, true}};
  if (crosses_network) manners.push_back({true, true, true});
  if (!node.has_nvswitch) manners.push_back({crosses_network, crosses_network, false});
  for (std::size_t s = first; s < speeds.size(); ++s) {
    if (best_speed > 0 && speeds[s] <= tables.least_speed * best_speed) break;
    for (const ChannelOptions& manner : manners) {
      ChannelPlacement placement(node, speeds[s], manner);
      const std::int64_t channels = placement.place(most);
      if (total_of(channels, speeds[s]) <= total_of(best.channels, best_speed) * (1 + kTolerance))
        continue;
      best.channels = channels;
      best_speed = speeds[s];
      set_rate(&best, best_speed);
      best.intra_kind = placement.widest();
      best.far_nic = placement.far_nic();
    }
    if (total_of(best.channels, best_speed) >= node.total) break;
  }
  double_channels(&best, tables.generation_of(capability).doubling, most);
  return best;
}

// The tree's graph: the ring's, except that a channel may be faster inside the node than between
// nodes.
SearchGraph tree_of(const LocalNode& node, const Tables& tables, std::int64_t capability,
                    const SearchGraph& ring, bool crosses_network) {
  SearchGraph tree = ring;
  if (!crosses_network || node.members == 1 || ring.channels == 0) return tree;
  // A channel is a chain of the members, without a hop that closes it.
  const auto speeds = speeds_of(tables.generation_of(capability), true);
  LocalNode inside = node;
  for (auto* ends : {&inside.to_nic, &inside.from_nic})
    for (LocalHop& hop : *ends) hop.uses.clear();
  for (auto speed = speeds.rbegin(); speed != speeds.rend(); ++speed) {
    if (*speed <= tree.intra_rate / 1_GB_s) continue;
    if (tree.intra_rate >= 2 * tree.inter_rate) break;
    if (ChannelPlacement(inside, *speed, {true, true, true}).place(tree.channels) < tree.channels)
      break;
    tree.intra_rate = *speed * 1_GB_s;
  }
  return tree;
}

// One channel per head, which puts speed x (channels + 1) on each head's NVLinks.
SearchGraph nvls_of(const LocalNode& node, const Tables& tables, std::int64_t capability,
                    bool crosses_network) {
  const Generation& generation = tables.generation_of(capability);
  if (!node.has_nvswitch || generation.nvls_efficiency <= 0) return {};
  const auto speeds = speeds_of(generation, crosses_network);
  const double nvlink = *std::min_element(node.nvlink_total.begin(), node.nvlink_total.end());
  const std::size_t most = std::min(node.members, internal::kMostHeads);
  SearchGraph best;
  double best_total = 0;
  const auto heads_at = [&](double speed) {
    LocalNode copy = node;
    std::int64_t heads = 0;
    for (std::size_t member = 0; member < most; ++member) {
      if (!crosses_network) {
        ++heads;
        continue;
      }
      bool fits = true;
      for (const LocalHop* hop : {&node.to_nic[member], &node.from_nic[member]})
        for (const LinkUse& use : hop->uses)
          fits = fits && copy.capacity[use.link] >= speed * use.share * (1 - kTolerance);
      if (!fits) continue;
      for (const LocalHop* hop : {&node.to_nic[member], &node.from_nic[member]})
        for (const LinkUse& use : hop->uses) copy.capacity[use.link] -= speed * use.share;
      ++heads;
    }
    return heads;
  };
  const auto inside_at = [&](double speed) {
    return static_cast<std::int64_t>(nvlink * (1 + kTolerance) / speed) - 1;
  };
  for (const double speed : speeds) {
    const std::int64_t heads = heads_at(speed);
    // On one node, either all members are heads or none is.
    if (!crosses_network && inside_at(speed) < heads) continue;
    const std::int64_t channels = std::min(heads, inside_at(speed));
    const double total = static_cast<double>(channels) * speed;
    if (best.channels > 0 && speed <= tables.least_speed * (best.inter_rate / 1_GB_s)) break;
    // Each head requests sums by itself: more channels are preferred to faster ones.
    if (channels <= best.channels && total <= best_total * (1 + kTolerance)) continue;
    best_total = total;
    best.channels = channels;
    set_rate(&best, speed);
  }
  if (best.channels == 0) return best;
  for (auto speed = speeds.rbegin(); speed != speeds.rend(); ++speed) {
    if (*speed <= best.inter_rate / 1_GB_s) continue;
    if (best.inter_rate >= 2 * best.intra_rate || heads_at(*speed) < best.channels) break;
    best.inter_rate = *speed * 1_GB_s;
  }
  return best;
}

// One channel per adapter, summed by its own head.
SearchGraph collnet_direct_of(const LocalNode& node, const SearchGraph& chain) {
  std::map<std::vector<VertexId>, int> adapters;
  for (const auto& nics : node.nics) adapters.emplace(nics, 0);
  SearchGraph direct = chain;
  if (chain.channels == 0) return direct;
  const double total = static_cast<double>(chain.channels) * (chain.inter_rate / 1_GB_s);
  direct.channels = static_cast<std::int64_t>(adapters.size());
  set_rate(&direct, total / static_cast<double>(direct.channels));
  return direct;
}

SearchGraph lesser(const SearchGraph& a, const SearchGraph& b) {
  return {.channels = std::min(a.channels, b.channels),
          .intra_rate = std::min(a.intra_rate, b.intra_rate),
          .inter_rate = std::min(a.inter_rate, b.inter_rate),
          .intra_kind = std::max(a.intra_kind, b.intra_kind),
          .far_nic = a.far_nic || b.far_nic};
}

// Distinguishes nodes: the places and types of their members, and the rate of the way out.
using Signature = std::vector<std::pair<std::string, std::int64_t>>;

Signature signature_of(const Participants& group, const std::vector<std::int32_t>& members,
                       double rate_out) {
  Signature signature{{"", static_cast<std::int64_t>(rate_out)}};
  for (const std::int32_t member : members) {
    const Device& device =
        group.cluster->devices()[group.devices[static_cast<std::size_t>(member)].index()];
    const std::string& name = group.cluster->vertices()[device.vertex.index()].name;
    signature.emplace_back(name.substr(name.find('/') + 1), device.type.value());
  }
  return signature;
}

void set_channels(Communicator* communicator, const Tables& tables) {
  const std::int64_t capability = communicator->least_capability;
  auto& channels = communicator->channels;
  channels = std::min(tables.most_channels, 2 * communicator->ring.channels);
  const Generation& generation = tables.generation_of(capability);
  if (communicator->nodes > 1 && channels < generation.doubling.network_below &&
      communicator->ring.intra_rate > generation.doubling.network_above)
    channels = std::min(tables.most_channels, 2 * channels);
  channels = std::max<std::int64_t>(1, channels);
  if (communicator->nvls.channels > 0)
    communicator->nvls_channels =
        communicator->nodes > 1 ? generation.nvls_channels_multi_node : generation.nvls_channels;
}

}  // namespace

Result<Communicator> communicator_of(const Participants& group, const Tables& tables) {
  if (group.cluster == nullptr || group.devices.empty())
    return Error{Error::Code::kInvalidInput, "a communicator needs at least 1 device"};
  Communicator communicator;
  const auto nodes = internal::members_by_node(group);
  communicator.members = static_cast<std::int64_t>(group.devices.size());
  communicator.nodes = static_cast<std::int64_t>(nodes.size());
  communicator.has_collnet = nodes.size() > 1 && group.cluster->reduces_in_network();
  communicator.has_nvswitch = true;
  communicator.least_capability = 1 << 20;
  communicator.most_capability = 0;
  for (const DeviceId device : group.devices) {
    const std::int64_t capability = *group.cluster->type_of(device).compute_capability;
    communicator.least_capability = std::min(communicator.least_capability, capability);
    communicator.most_capability = std::max(communicator.most_capability, capability);
  }
  communicator.least_per_node = communicator.members;
  communicator.most_per_node = 1;
  if (communicator.members == 1) return communicator;

  const bool crosses_network = nodes.size() > 1;
  const std::int64_t capability = communicator.least_capability;
  std::map<Signature, bool> seen;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto count = static_cast<std::int64_t>(nodes[n].size());
    communicator.least_per_node = std::min(communicator.least_per_node, count);
    communicator.most_per_node = std::max(communicator.most_per_node, count);
    std::vector<std::int32_t> peers;
    double rate_out = 0;
    if (crosses_network) {
      const auto& next = nodes[(n + 1) % nodes.size()];
      for (std::size_t i = 0; i < nodes[n].size(); ++i) peers.push_back(next[i % next.size()]);
      FORESHARD_ASSIGN(const auto route,
                       internal::route_between(group, nodes[n].front(), peers.front()));
      for (const RoutedLink& routed : route.links) {
        const Link& link = group.cluster->links()[routed.link.index()];
        if (link.kind == LinkKind::kNetwork &&
            group.cluster->vertices()[link.from.index()].kind == VertexKind::kNic)
          rate_out += link.nominal().in_base();
      }
    }
    const auto [place, is_new] = seen.try_emplace(signature_of(group, nodes[n], rate_out), true);
    if (!is_new) continue;
    FORESHARD_ASSIGN(const auto local, local_node(group, nodes[n], peers, tables));
    const SearchGraph ring = ring_of(local, tables, capability, crosses_network);
    const SearchGraph tree = tree_of(local, tables, capability, ring, crosses_network);
    const SearchGraph nvls = nvls_of(local, tables, capability, crosses_network);
    communicator.has_nvswitch = communicator.has_nvswitch && local.has_nvswitch;
    const bool is_first = seen.size() == 1;
    communicator.ring = is_first ? ring : lesser(communicator.ring, ring);
    communicator.tree = is_first ? tree : lesser(communicator.tree, tree);
    communicator.nvls = is_first ? nvls : lesser(communicator.nvls, nvls);
    if (communicator.has_collnet) {
      const SearchGraph direct = collnet_direct_of(local, tree);
      communicator.collnet_chain = communicator.tree;
      communicator.collnet_direct = is_first ? direct : lesser(communicator.collnet_direct, direct);
    }
  }
  set_channels(&communicator, tables);
  return communicator;
}

std::int64_t peer_channels(const Communicator& communicator) {
  const auto sends = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, communicator.channels))));
  std::int64_t channels = 2;
  while (channels > 1 && channels * communicator.members > 4 * sends) channels /= 2;
  return channels;
}

}  // namespace foreshard::comm::nccl
