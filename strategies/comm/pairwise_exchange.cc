// A group call of sends and receives among at least 2 members: any member to any other, each with
// its own number of bytes (Participants::transfers), all in flight together. B = bytes of all
// messages.
//
//     time   = latency + max over links of (bytes that cross it) / bandwidth
//     volume = B in total
//
// The latency includes the longest wire, and a member starts its messages one after another: the
// path counts the messages of the member that has most to start (or to receive), by the kind of
// link that they cross. The path of an all-to-all does the same, since NCCL runs it as such a
// group. Source: NVIDIA/nccl, src/enqueue.cc, and its "Point-to-point communication" (user guide,
// 2.28): calls between ncclGroupStart and ncclGroupEnd progress together. Not modelled: the limit
// of 2 channels for one peer across the network, which algorithm "direct" has (direct_transfer.cc);
// how members divide their channels among peers, so that short messages end before long ones;
// copies of members to themselves beside the exchange (an all-to-all's own parts); messages inside
// a node that do not wait for messages across the network: if one message crosses it, all use the
// network's channels.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> pairwise_exchange(const Participants& group) {
  internal::LoadSum loads;
  Pattern pattern;
  Seconds longest_wire;
  double largest = 0;
  std::vector<internal::Path> sends(group.devices.size());
  std::vector<internal::Path> receives(group.devices.size());
  std::vector<double> sent(group.devices.size(), 0);
  std::vector<double> received(group.devices.size(), 0);
  for (const Transfer& transfer : group.transfers) {
    FORESHARD_ASSIGN(const auto route,
                     internal::peer_route_between(group, transfer.from, transfer.to));
    loads.add(route, transfer.part);
    const internal::Hop hop{route.widest_kind, 0_s};
    sends[static_cast<std::size_t>(transfer.from)].add(hop, transfer.messages);
    receives[static_cast<std::size_t>(transfer.to)].add(hop, transfer.messages);
    sent[static_cast<std::size_t>(transfer.from)] += transfer.part;
    received[static_cast<std::size_t>(transfer.to)] += transfer.part;
    largest = std::max(largest, transfer.part / transfer.messages);
    longest_wire = std::max(longest_wire, route.latency);
  }
  for (const auto& of_member : {sends, receives})
    for (const internal::Path& path : of_member)
      if (internal::longer(path, pattern.path)) pattern.path = path;
  pattern.path.wire = longest_wire;
  pattern.message = largest;
  pattern.copies_by_chunk = true;
  pattern.sent_per_member = *std::max_element(sent.begin(), sent.end());
  pattern.share_of_member =
      std::max(pattern.sent_per_member, *std::max_element(received.begin(), received.end()));
  pattern.loads = loads.take(group, pattern.detour);
  return pattern;
}

Result<StepwiseCollective> pairwise_exchange_steps(const Participants& group) {
  FORESHARD_TRY(
      internal::too_many_messages("pairwise", static_cast<double>(group.transfers.size())));
  StepwiseCollective result{
      .algorithm = "pairwise", .chunks = 1, .between_peers = true, .messages = {}};
  for (const Transfer& transfer : group.transfers) {
    FORESHARD_ASSIGN(const auto route,
                     internal::peer_route_between(group, transfer.from, transfer.to));
    result.messages.push_back({.from = transfer.from,
                               .to = transfer.to,
                               .part = transfer.part,
                               .latency = route.latency,
                               .after = {}});
  }
  return result;
}

}  // namespace foreshard::comm
