// One message of B bytes from the first of two members to the second: both a send and its receive.
//
//     time   = latency + B / bandwidth
//     volume = B
#include "strategies/comm/algorithms.h"

namespace foreshard::comm {

Result<Pattern> direct_transfer(const Participants& group) {
  FORESHARD_ASSIGN(const auto route, internal::peer_route_between(group, 0, 1));
  Pattern pattern;
  pattern.sent_per_member = 1;
  pattern.most_channels = group.peer_channels;
  internal::LoadSum loads;
  loads.add(route, 1);
  pattern.loads = loads.take(group, pattern.detour);
  pattern.path.add(internal::Hop{route.widest_kind, route.latency});
  return pattern;
}

Result<StepwiseCollective> direct_transfer_steps(const Participants& group) {
  FORESHARD_ASSIGN(const auto route, internal::peer_route_between(group, 0, 1));
  StepwiseCollective result{
      .algorithm = "direct", .chunks = 1, .between_peers = true, .messages = {}};
  result.messages.push_back({.from = 0, .to = 1, .part = 1, .latency = route.latency, .after = {}});
  return result;
}

}  // namespace foreshard::comm
