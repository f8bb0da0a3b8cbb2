// All-to-all among p >= 2 members that each send B bytes, B/p to every member (one of them itself):
// in round r every member sends to the one r places after it and receives from the one r before it.
//
//     time   = latency + (p-1)/p B / bandwidth     all rounds in flight together
//     volume = (p-1)/p B per member, (p-1) B in total
//
// The latency includes the wire of one message only, but a member starts its messages one after
// another: the path counts the rounds by the kind of link that they cross. Source: Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
// 19(1), 2005, section 4.5 (pairwise exchange); NCCL's rounds: nccl-tests and NVIDIA/nccl
// src/enqueue.cc (a group of p sends and p receives).
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> pairwise_all_to_all(const Participants& group) {
  const auto count = static_cast<std::int32_t>(group.devices.size());
  internal::LoadSum loads;
  Pattern pattern;
  Seconds longest_wire;
  for (std::int32_t from = 0; from < count; ++from) {
    internal::Path starts;
    for (std::int32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      FORESHARD_ASSIGN(const auto route, internal::peer_route_between(group, from, to));
      loads.add(route, 1.0 / count);
      starts.add(internal::Hop{route.widest_kind, 0_s});
      longest_wire = std::max(longest_wire, route.latency);
    }
    if (from == 0 || internal::longer(starts, pattern.path)) pattern.path = starts;
  }
  pattern.path.wire = longest_wire;
  pattern.message = 1.0 / count;
  pattern.sent_per_member = (count - 1.0) / count;
  pattern.kept_per_member = 1.0 / count;
  pattern.copies_by_chunk = true;
  pattern.loads = loads.take(group, pattern.detour);
  return pattern;
}

Result<StepwiseCollective> pairwise_all_to_all_steps(const Participants& group) {
  const auto count = static_cast<std::int32_t>(group.devices.size());
  FORESHARD_TRY(internal::too_many_messages("pairwise", static_cast<double>(count) * (count - 1)));
  StepwiseCollective result{
      .algorithm = "pairwise", .chunks = count, .between_peers = true, .messages = {}};
  for (std::int32_t round = 1; round < count; ++round) {
    for (std::int32_t from = 0; from < count; ++from) {
      const std::int32_t to = (from + round) % count;
      FORESHARD_ASSIGN(const auto route, internal::peer_route_between(group, from, to));
      result.messages.push_back({.from = from,
                                 .to = to,
                                 .part = 1.0 / count,
                                 .latency = route.latency,
                                 .after = {},
                                 .first_chunk = to});
    }
  }
  return result;
}

}  // namespace foreshard::comm
