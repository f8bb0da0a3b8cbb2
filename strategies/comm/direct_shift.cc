// A shift by one place round a group of p >= 2 members (collective.cc answers for one): each sends
// B bytes to the next one and the last to the first, all at once. A distance other than one would
// belong in Participants, as all algorithms have the signature of `Algorithm`.
//
//     time   = latency + max over links of (bytes that cross it) / bandwidth
//     volume = B per member, p B in total
//
// The latency is the longest hop's. As in a send (direct_transfer.cc), a member has one peer in
// each direction, so the parameters of algorithm "direct" hold, not those of "pairwise".
// Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/attention/dot_product_attention/
// context_parallel.py (a send and a receive to and from the neighbours in the ring).
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> direct_shift(const Participants& group) {
  const auto count = static_cast<std::int32_t>(group.devices.size());
  Pattern pattern;
  pattern.sent_per_member = 1;
  internal::LoadSum loads;
  for (std::int32_t from = 0; from < count; ++from) {
    FORESHARD_ASSIGN(const auto route,
                     internal::peer_route_between(group, from, (from + 1) % count));
    loads.add(route, 1);
    internal::Path hop;
    hop.add(internal::Hop{route.widest_kind, route.latency});
    if (from == 0 || internal::longer(hop, pattern.path)) pattern.path = hop;
  }
  pattern.loads = loads.take(group, pattern.detour);
  return pattern;
}

Result<StepwiseCollective> direct_shift_steps(const Participants& group) {
  const auto count = static_cast<std::int32_t>(group.devices.size());
  FORESHARD_TRY(internal::too_many_messages("direct", count));
  StepwiseCollective result{
      .algorithm = "direct", .chunks = 1, .between_peers = true, .messages = {}};
  for (std::int32_t from = 0; from < count; ++from) {
    const std::int32_t to = (from + 1) % count;
    FORESHARD_ASSIGN(const auto route, internal::peer_route_between(group, from, to));
    result.messages.push_back(
        {.from = from, .to = to, .part = 1, .latency = route.latency, .after = {}});
  }
  return result;
}

}  // namespace foreshard::comm
