#include "strategies/comm/internal/representative.h"

#include <algorithm>
#include <cmath>

#include "strategies/comm/internal/rings.h"

namespace foreshard::comm::internal {
namespace {

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
enum class Growth : std::uint8_t { kLinear, kLogarithmic, kNone, kUnknown };

Growth growth_of(std::string_view algorithm) {
  if (algorithm == "ring" || algorithm == "chain") return Growth::kLinear;
  if (algorithm.ends_with("tree") || algorithm == "pat") return Growth::kLogarithmic;
  if (algorithm == "nvls" || algorithm.starts_with("collnet")) return Growth::kNone;
  return Growth::kUnknown;
}

}  // namespace

Result<Pattern> representative_pattern(const Algorithm& algorithm, const Participants& group) {
  const bool all_pairs = algorithm.kind == CollectiveKind::kAllToAll;
  if (group.devices.size() <= (all_pairs ? kMostForAllPairs : kMostMembers) ||
      algorithm.kind == CollectiveKind::kExchange)
    return algorithm.pattern(group);
  if (all_pairs && algorithm.name == "pairwise") return all_to_all(group);
  const Growth growth = growth_of(algorithm.name);
  if (growth == Growth::kUnknown) return algorithm.pattern(group);
  const auto nodes = members_by_node(group);
  const auto unequal = [&](const auto& node) { return node.size() != nodes.front().size(); };
  if (std::ranges::any_of(nodes, unequal)) return algorithm.pattern(group);
  const bool is_tree = growth == Growth::kLogarithmic;
  // An even number of nodes: rings over an odd number need a third entrance to close.
  const std::size_t kept =
      std::max<std::size_t>(is_tree ? 4 : 2, kMostMembers / nodes.front().size() / 2 * 2);
  if (nodes.size() <= kept) return algorithm.pattern(group);
  const Participants part = first_nodes(group, nodes, kept);
  FORESHARD_ASSIGN(Pattern pattern, algorithm.pattern(part));

  if (growth == Growth::kNone) return pattern;
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

}  // namespace foreshard::comm::internal
