#include "strategies/comm/collective.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/choose.h"
#include "strategies/comm/flat_form.h"
#include "strategies/comm/internal/rings.h"
#include "strategies/comm/internal/traffic.h"

namespace foreshard::comm::internal {
namespace {

// The pattern of a large group, derived from a few of its members, for ranking.

constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kMostForAllPairs = 16;

// Messages between one member and the others, in one direction. Messages within the member's node
// are complete; between nodes, one stands for several.
class Messages {
 public:
  Messages(const Participants& group, Pattern& pattern) : group_(group), pattern_(pattern) {}

  Status add(std::int32_t member, bool sends) {
    const auto count = static_cast<std::int32_t>(group_.devices.size());
    const auto node_of = [&](std::int32_t m) {
      return group_.cluster->devices()[group_.devices[static_cast<std::size_t>(m)].index()].node;
    };
    std::vector<std::int32_t> near;
    std::vector<std::int32_t> far;
    for (std::int32_t other = 0; other < count; ++other) {
      if (other == member) continue;
      (node_of(other) == node_of(member) ? near : far).push_back(other);
    }
    Path starts;
    const auto listed = std::min(far.size(), kMostMembers);
    const double stands_for =
        listed == 0 ? 0 : static_cast<double>(far.size()) / static_cast<double>(listed);
    for (std::size_t i = 0; i < near.size() + listed; ++i) {
      const bool is_near = i < near.size();
      const std::int32_t other = is_near ? near[i] : far[(i - near.size()) * far.size() / listed];
      const double messages = is_near ? 1 : stands_for;
      const auto route = sends ? peer_route_between(group_, member, other)
                               : peer_route_between(group_, other, member);
      if (!route) return route.error();
      loads_.add(*route, messages / count);
      starts.add(Hop{route->widest_kind, 0_s}, messages);
      longest_wire_ = std::max(longest_wire_, route->latency);
    }
    if (longer(starts, pattern_.path)) pattern_.path = starts;
    return {};
  }

  void finish() {
    pattern_.path.wire = longest_wire_;
    pattern_.loads = loads_.take(group_, pattern_.detour);
  }

 private:
  const Participants& group_;
  Pattern& pattern_;
  LoadSum loads_;
  Seconds longest_wire_;
};

Result<Pattern> all_to_all(const Participants& group) {
  Pattern pattern;
  Messages messages(group, pattern);
  const auto last = static_cast<std::int32_t>(group.devices.size()) - 1;
  FORESHARD_TRY(messages.add(0, true));
  FORESHARD_TRY(messages.add(last, false));
  messages.finish();
  pattern.message = 1 / (last + 1.0);
  pattern.sent_per_member = static_cast<double>(last) / (last + 1.0);
  pattern.kept_per_member = 1 / (last + 1.0);
  pattern.copies_by_chunk = true;
  return pattern;
}

Participants first_nodes(const Participants& group,
                         const std::vector<std::vector<std::int32_t>>& nodes, std::size_t count) {
  Participants part{.cluster = group.cluster, .devices = {}, .flow = group.flow};
  for (std::size_t n = 0; n < count; ++n)
    for (const std::int32_t member : nodes[n])
      part.devices.push_back(group.devices[static_cast<std::size_t>(member)]);
  return part;
}

// How the critical path grows with the nodes.
enum class PathGrowth : std::uint8_t { kLinear, kLogarithmic, kNone, kUnknown };

PathGrowth growth_of(std::string_view algorithm) {
  if (algorithm == "ring" || algorithm == "chain") return PathGrowth::kLinear;
  if (algorithm.ends_with("tree") || algorithm == "pat") return PathGrowth::kLogarithmic;
  if (algorithm == "nvls" || algorithm.starts_with("collnet")) return PathGrowth::kNone;
  return PathGrowth::kUnknown;
}

// As algorithm.pattern(group), in time that hardly grows with the group. It has the loads of some
// links only: enough for the form's latency and idle rate.
//  - Rings, chains and trees: the pattern of the first nodes, with hops and volumes scaled to all
//    nodes.
//  - All-to-all: the messages that the first member sends and the last receives; between nodes,
//    one message stands for several.
// Groups of up to 64 members (all-to-alls of up to 16), exchanges, and groups whose nodes have
// unequal numbers of members (except for all-to-alls) are not simplified.
// Not modelled: fabric links that many nodes share, where they are slower than the nodes' own.
// \pre nodes with equal numbers of members are identical
Result<Pattern> representative_pattern(const Algorithm& algorithm, const Participants& group) {
  const bool all_pairs = algorithm.kind == CollectiveKind::kAllToAll;
  if (group.devices.size() <= (all_pairs ? kMostForAllPairs : kMostMembers) ||
      algorithm.kind == CollectiveKind::kExchange)
    return algorithm.pattern(group);
  if (all_pairs && algorithm.name == "pairwise") return all_to_all(group);
  const PathGrowth growth = growth_of(algorithm.name);
  if (growth == PathGrowth::kUnknown) return algorithm.pattern(group);
  const auto nodes = members_by_node(group);
  const auto unequal = [&](const auto& node) { return node.size() != nodes.front().size(); };
  if (std::ranges::any_of(nodes, unequal)) return algorithm.pattern(group);
  const bool is_tree = growth == PathGrowth::kLogarithmic;
  // An even number of nodes: rings over an odd number need a third entrance to close.
  const std::size_t kept =
      std::max<std::size_t>(is_tree ? 4 : 2, kMostMembers / nodes.front().size() / 2 * 2);
  if (nodes.size() <= kept) return algorithm.pattern(group);
  const Participants part = first_nodes(group, nodes, kept);
  FORESHARD_ASSIGN(Pattern pattern, algorithm.pattern(part));

  if (growth == PathGrowth::kNone) return pattern;
  if (is_tree) {  // every further doubling of the nodes costs as much as the last one
    FORESHARD_ASSIGN(const auto half, algorithm.pattern(first_nodes(group, nodes, kept / 2)));
    const double doublings =
        std::log2(static_cast<double>(nodes.size()) / static_cast<double>(kept));
    const bool copies = algorithm.name == "pat";  // one copy per member, whatever the level
    Path level = pattern.path;
    level.add(half.path, -1);
    if (copies) {
      level.nvlink = 0;
      pattern.path.nvlink = static_cast<double>(group.devices.size());
    }
    if (!longer(level, Path{})) return pattern;
    pattern.path.add(level, doublings);
    pattern.fill_chunks += doublings * (pattern.fill_chunks - half.fill_chunks);
    pattern.rounds += doublings * (pattern.rounds - half.rounds);
    return pattern;
  }
  const auto all = static_cast<double>(group.devices.size());
  const auto some = static_cast<double>(part.devices.size());
  const double hops = (all - 1) / (some - 1);
  Path path;
  path.add(pattern.path, hops);
  pattern.path = path;
  pattern.fill_chunks *= hops;
  // In a broadcast every member passes on all bytes, whatever the number of members.
  if (algorithm.kind == CollectiveKind::kBroadcast) return pattern;
  const double volume = (all - 1) / all / ((some - 1) / some);
  for (LinkLoad& load : pattern.loads) load.bytes_per_byte *= volume;
  pattern.message *= some / all;
  pattern.sent_per_member *= volume;
  return pattern;
}

}  // namespace
}  // namespace foreshard::comm::internal

namespace foreshard::comm {
namespace {

// Operations of one device with its host's memory: a copy engine of the device moves B bytes to
// the host or from it, or the CPU reads and writes B bytes there.
//
//     time   = latency of the route + max over links of (bytes that cross it) / bandwidth
//     volume = B
//
// A copy takes the route to the nearest socket (ClusterView::host_route), which devices behind one
// PCIe switch share. It ends in the memory of that socket, which all of its devices share with
// what the CPU computes for them. The two directions of a link do not compete; reads and writes of
// memory do.
//
// No communication library takes part, so its parameters do not apply: a copy engine needs no SM,
// and a link's own efficiency already is the efficiency of pinned copies (topology/node_config.h).
// Not modelled: the start of a copy engine, many small tensors (a copy each), host memory that is
// not pinned.

HostWay way_of(CollectiveKind kind) {
  if (kind == CollectiveKind::kToHost) return HostWay::kToHost;
  return kind == CollectiveKind::kFromHost ? HostWay::kFromHost : HostWay::kInHost;
}

// \pre program::is_with_host(kind), one device.
Result<FlatCollective> host_copy(CollectiveKind kind, const Participants& group) {
  FORESHARD_CHECK(program::is_with_host(kind) && group.devices.size() == 1);
  FORESHARD_ASSIGN(const auto route,
                   group.cluster->host_route(group.devices.front(), way_of(kind)));
  FlatCollective copy;
  copy.algorithm = "copy";
  copy.latency = route.latency;
  for (const RoutedLink& routed : route.links) copy.loads.push_back({routed.link, routed.share});
  return copy;
}

Status fault_in(CollectiveKind kind, const Participants& group) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, std::string(name_of(kind)) + ": " + why};
  };
  if (group.cluster == nullptr) return fault("no cluster given");
  if (group.devices.empty()) return fault("needs at least 1 device, got none");
  const auto count = static_cast<std::int64_t>(group.cluster->devices().size());
  std::set<DeviceId> seen;
  for (const DeviceId device : group.devices) {
    if (!device.valid() || device.value() >= count)
      return fault("no device " + std::to_string(device.value()) + "; the cluster has " +
                   std::to_string(count));
    if (!seen.insert(device).second)
      return fault("device " + std::to_string(device.value()) + " takes part twice");
  }
  const bool has_two = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  if (program::is_with_host(kind) && group.devices.size() != 1)
    return fault("is of one device, got " + std::to_string(group.devices.size()));
  if (has_two && group.devices.size() != 2)
    return fault("needs a sender and a receiver, got " + std::to_string(group.devices.size()) +
                 " devices");
  const auto members = static_cast<std::int32_t>(group.devices.size());
  if (group.root < 0 || group.root >= members)
    return fault("root " + std::to_string(group.root) + " of " + std::to_string(members));
  if ((kind == CollectiveKind::kExchange) == group.transfers.empty())
    return fault(group.transfers.empty() ? "needs at least 1 transfer, got none"
                                         : "only an exchange lists transfers");
  if ((kind == CollectiveKind::kTokenExchange) != group.routing.has_value())
    return fault(group.routing ? "only a token_exchange has a routing" : "needs a routing");
  for (const Transfer& transfer : group.transfers)
    if (transfer.from < 0 || transfer.from >= members || transfer.to < 0 ||
        transfer.to >= members || transfer.from == transfer.to || !(transfer.part > 0))
      return fault("no transfer of part " + std::to_string(transfer.part) + " from member " +
                   std::to_string(transfer.from) + " to " + std::to_string(transfer.to));
  return {};
}

bool suits(const FormParameters& form, const Participants& group) {
  if (form.architectures.empty()) return true;
  const DeviceType* known = nullptr;  // The type checked last: neighbours mostly have the same one.
  return std::all_of(group.devices.begin(), group.devices.end(), [&](DeviceId device) {
    const DeviceType& type = group.cluster->type_of(device);
    if (std::exchange(known, &type) == &type) return true;
    return std::find(form.architectures.begin(), form.architectures.end(), generation_of(type)) !=
           form.architectures.end();
  });
}

bool is_for(const FormParameters& form, CollectiveKind kind) {
  return form.operations.empty() || std::find(form.operations.begin(), form.operations.end(),
                                              name_of(kind)) != form.operations.end();
}

bool is_requested(const std::string& algorithm, CollectiveKind kind, const Parameters& parameters) {
  return std::any_of(parameters.choices.begin(), parameters.choices.end(),
                     [&](const AlgorithmOverride& choice) {
                       return choice.algorithm == algorithm && choice.operation == name_of(kind);
                     });
}

// For each algorithm and protocol, the first form that suits the group.
std::vector<const FormParameters*> suitable_forms(CollectiveKind kind, const Participants& group,
                                                  const Parameters& parameters) {
  std::vector<const FormParameters*> suitable;
  std::set<std::pair<std::string_view, Protocol>> seen;
  for (const FormParameters& form : parameters.forms)
    if (!seen.contains({form.algorithm, form.protocol}) && is_for(form, kind) &&
        (!form.on_request || is_requested(form.algorithm, kind, parameters)) &&
        suits(form, group)) {
      seen.insert({form.algorithm, form.protocol});
      suitable.push_back(&form);
    }
  return suitable;
}

// A device type without a number of SMs (a test's own) has none of them taken.
double part_of_multiprocessors(double channels, const Participants& group) {
  double part = 0;
  for (const DeviceId device : group.devices) {
    const std::int64_t all = *group.cluster->type_of(device).multiprocessors;
    if (all > 0) part = std::max(part, channels / static_cast<double>(all));
  }
  return std::min(1.0, part);
}

// The flat form of a pattern with one protocol's numbers.
FlatCollective flat_form(const Algorithm& algorithm, const Pattern& pattern,
                         const LinkDemand& demand, const FormParameters& form,
                         const Participants& group, const TransportNumbers& transport) {
  const FormNumbers numbers = numbers_of(algorithm, pattern, demand, form, transport);
  FlatCollective flat;
  flat.algorithm = algorithm.name;
  flat.protocol = name_of(form.protocol);
  flat.latency = numbers.latency;
  flat.loads = pattern.loads;
  flat.bandwidth_fraction = numbers.bandwidth_fraction;
  flat.efficiency = numbers.efficiency;
  flat.rate_cap = numbers.rate_cap;
  flat.start = numbers.start;
  flat.overlaps_rounds = pattern.overlaps_rounds;
  flat.detour = pattern.detour;
  flat.sm_share = part_of_multiprocessors(numbers.channels, group);
  const bool networked = pattern.path.network > 0;
  flat.channels = numbers.channels;
  flat.connections = networked ? std::max(1.0, numbers.channels / pattern.ways) : numbers.channels;
  return flat;
}

}  // namespace

BytesPerSecond FlatCollective::idle_rate(const ClusterView& cluster) const {
  BytesPerSecond rate = rate_cap;
  for (const LinkLoad& load : loads)
    rate = std::min(rate, cluster.links()[load.link.index()].bandwidth * bandwidth_fraction /
                              load.bytes_per_byte);
  return rate;
}

namespace {

constexpr double kTolerance = 1e-9;  // Rounding must not decide between equals.

}  // namespace

LinkId FlatCollective::bottleneck(const ClusterView& cluster) const {
  BytesPerSecond least = std::min(rate_cap, efficiency.through_host);
  LinkId slowest;
  for (const LinkLoad& load : loads) {
    const Link& link = cluster.links()[load.link.index()];
    const BytesPerSecond rate = link.bandwidth * efficiency.of(link.kind) / load.bytes_per_byte;
    const bool is_slower = slowest.valid() ? rate < least * (1 - kTolerance) : rate <= least;
    if (!is_slower) continue;
    least = rate;
    slowest = load.link;
  }
  return slowest;
}

double LinkEfficiency::of(LinkKind kind) const {
  switch (kind) {
    case LinkKind::kNvLink:
      return nvlink;
    case LinkKind::kPcie:
    case LinkKind::kSocket:
      return pcie;
    case LinkKind::kNetwork:
      return network;
    case LinkKind::kMemory:
      break;
  }
  return 1;
}

Seconds FlatCollective::delay(Bytes bytes, const ClusterView& cluster) const {
  return latency + start.delay(bytes, idle_rate(cluster));
}

Seconds FlatCollective::idle_time(Bytes bytes, const ClusterView& cluster) const {
  return curve(cluster)(bytes);
}

TimeCurve FlatCollective::curve(const ClusterView& cluster) const {
  return {.latency = latency, .rate = idle_rate(cluster), .start = start};
}

Seconds StartUp::delay(Bytes bytes, BytesPerSecond rate) const {
  Seconds time;
  if (fill_chunks > 0) time += fill_chunks * (std::min(chunk, bytes) / rate);
  const Bytes open = channels * std::min(bytes, channel_bytes);
  if (open > bytes) time += (open - bytes) / rate;
  if (rendezvous > 0_s) time += rendezvous * (bytes / (bytes + eager_bytes));
  if (bytes > 0_B && bytes <= inject_bytes) time += inject;
  if (!(bytes > 0_B)) time -= empty;
  return time;
}

std::size_t least_of(const std::vector<TimeCurve>& curves, Bytes bytes) {
  FORESHARD_CHECK(!curves.empty());
  std::optional<std::size_t> best;
  Seconds least;
  for (const bool limited : {true, false}) {
    for (std::size_t i = 0; i < curves.size(); ++i) {
      if (limited && bytes > curves[i].start.most_bytes) continue;
      const Seconds time = curves[i](bytes);
      if (best && !(time < least * (1 - kTolerance))) continue;
      least = time;
      best = i;
    }
    if (best) break;
  }
  return *best;
}

namespace {

template <class PatternOf>
Result<std::vector<FlatCollective>> forms_of(CollectiveKind kind, const Participants& group,
                                             const Parameters& parameters, PatternOf pattern_of) {
  FORESHARD_TRY(fault_in(kind, group));
  if (program::is_with_host(kind)) {
    FORESHARD_ASSIGN(auto copy, host_copy(kind, group));
    return std::vector<FlatCollective>{std::move(copy)};
  }
  if (group.devices.size() == 1) {
    FlatCollective nothing;
    nothing.algorithm = "none";
    return std::vector<FlatCollective>{nothing};
  }

  const auto suitable = suitable_forms(kind, group, parameters);
  FORESHARD_ASSIGN(const auto transport, transport_of(group, parameters));
  std::vector<FlatCollective> forms;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != kind) continue;
    std::optional<Pattern> pattern;
    LinkDemand demand;
    for (const FormParameters* form : suitable) {
      if (form->algorithm != algorithm.name) continue;
      if (!pattern) {
        auto result = pattern_of(algorithm);
        if (!result && result.error().code == Error::Code::kUnsupported) break;
        if (!result) return result.error();
        pattern = *std::move(result);
        demand = demand_of(*pattern, *group.cluster);
      }
      if (!can_use(*form, kind, *pattern, transport)) continue;
      forms.push_back(flat_form(algorithm, *pattern, demand, *form, group, transport.numbers));
    }
  }
  if (forms.empty())
    return Error{Error::Code::kUnsupported, std::string(name_of(kind)) + ": communication '" +
                                                parameters.name +
                                                "' has no form that these devices can do"};
  return forms;
}

}  // namespace

Result<std::vector<FlatCollective>> flat_forms(CollectiveKind kind, const Participants& group,
                                               const Parameters& parameters) {
  return forms_of(kind, group, parameters,
                  [&](const Algorithm& algorithm) { return algorithm.pattern(group); });
}

Result<std::vector<FlatCollective>> representative_forms(CollectiveKind kind,
                                                         const Participants& group,
                                                         const Parameters& parameters) {
  return forms_of(kind, group, parameters, [&](const Algorithm& algorithm) {
    return internal::representative_pattern(algorithm, group);
  });
}

std::size_t best_form(const std::vector<FlatCollective>& forms, Bytes bytes,
                      const ClusterView& cluster) {
  std::vector<TimeCurve> curves;
  curves.reserve(forms.size());
  for (const FlatCollective& form : forms) curves.push_back(form.curve(cluster));
  return least_of(curves, bytes);
}

bool has_messages(std::string_view algorithm, CollectiveKind kind) {
  return std::ranges::any_of(algorithms(), [&](const Algorithm& one) {
    return one.kind == kind && one.name == algorithm && one.steps != nullptr;
  });
}

Result<StepwiseCollective> stepwise_form(std::string_view algorithm, CollectiveKind kind,
                                         const Participants& group) {
  FORESHARD_TRY(fault_in(kind, group));
  std::string known;
  for (const Algorithm& candidate : algorithms()) {
    if (candidate.kind != kind) continue;
    if (candidate.name == algorithm) {
      if (group.devices.size() == 1)
        return StepwiseCollective{.algorithm = candidate.name, .messages = {}};
      if (candidate.steps != nullptr) return candidate.steps(group);
      return Error{Error::Code::kUnsupported,
                   std::string(algorithm) + ": is not made of messages between members"};
    }
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  return Error{Error::Code::kInvalidInput, std::string(name_of(kind)) + ": unknown algorithm '" +
                                               std::string(algorithm) + "'; there are " + known};
}

Result<Route> StepwiseCollective::route_of(const Message& message,
                                           const Participants& group) const {
  return between_peers ? internal::peer_route_between(group, message.from, message.to)
                       : internal::route_between(group, message.from, message.to);
}

Result<OperationPrediction> predict(CollectiveKind kind, Bytes bytes, const Participants& group,
                                    const Parameters& parameters) {
  if (!(bytes >= 0_B))
    return Error{Error::Code::kInvalidInput, std::string(name_of(kind)) + ": negative size"};
  FORESHARD_ASSIGN(const auto selector, AlgorithmSelector::of(kind, group, parameters));
  FORESHARD_ASSIGN(auto form, selector.choose(bytes));
  const Seconds time = form.idle_time(bytes, *group.cluster);
  return OperationPrediction{std::move(form), time};
}

}  // namespace foreshard::comm
