// Exchange of tokens with the members that hold their experts: a token crosses to each node only
// once, to the member at the sender's place there, which forwards it to the members that need it.
// The results take the same way back, added up.
//
// A token goes to d of the p members on average, and to some member of a node of k members with
// probability q (visit_probability). With B bytes for one copy of each token per destination
// member,
//
//     volume = (k-1)/k B inside nodes, q (N-1)/d B between N nodes
//
// Source: DeepEP (github.com/deepseek-ai/DeepEP, README: "normal kernels";
// csrc/kernels/internode.cu). Not modelled: kernels that agree on counts of tokens beforehand
// (notify), except as part of the base time; DeepEP's kernels for short messages.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> once_per_node_exchange(const Participants& group) {
  const auto nodes = internal::members_by_node(group);
  const auto count = static_cast<double>(group.devices.size());
  const double copies =
      program::expected_places(*group.routing, static_cast<std::int64_t>(group.devices.size()));
  internal::Traffic traffic(group);
  std::vector<std::vector<std::int32_t>> peers(group.devices.size());
  double sent = 0;
  const auto add = [&](std::int32_t from, std::int32_t to, double part) {
    traffic.add(from, to, part);
    sent += part;
  };
  for (std::size_t own = 0; own < nodes.size(); ++own) {
    for (std::size_t place = 0; place < nodes[own].size(); ++place) {
      const std::int32_t from = nodes[own][place];
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto& node = nodes[n];
        const std::int32_t first = n == own ? from : node[place % node.size()];
        if (n != own) {
          const double share = static_cast<double>(node.size()) / count;
          add(from, first, program::visit_probability(*group.routing, share) / copies);
          peers[static_cast<std::size_t>(from)].push_back(first);
        }
        for (const std::int32_t to : node)
          if (to != first) add(first, to, 1 / count);
      }
      for (const std::int32_t to : nodes[own])
        if (to != from) peers[static_cast<std::size_t>(from)].push_back(to);
    }
  }
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  for (std::size_t from = 0; from < peers.size(); ++from) {
    internal::Path starts;
    for (const std::int32_t to : peers[from]) {
      const internal::Hop& hop = traffic.hop(static_cast<std::int32_t>(from), to);
      starts.add(internal::Hop{hop.kind, 0_s});
      starts.wire = std::max(starts.wire, hop.wire);
    }
    if (from == 0 || internal::longer(starts, pattern.path)) pattern.path = starts;
  }
  pattern.message = 1 / count;
  pattern.sent_per_member = sent / count;
  pattern.kept_per_member = 1 / count;
  pattern.copies_by_chunk = true;
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

}  // namespace foreshard::comm
