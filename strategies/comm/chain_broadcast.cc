// Pipelined broadcast of B bytes from the root along a chain of p >= 2 members (NCCL's "ring"
// broadcast).
//
//     time   = (p-1) latency + B / bandwidth + (p-2) chunk / bandwidth
//     volume = B for each member that sends (all but the last of the chain), (p-1) B in total
//
// The bytes travel as chunks of bounded size, one behind the other. The last term is the time to
// fill this pipeline: the first chunk crosses p-2 hops before the last hop begins. With several
// rings, each carries an equal part of the bytes. comm::algorithms() lists it (registry.cc).
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005; Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35(12), 2009, section 2.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {
namespace {

// The members of the ring in its order, from the root on.
std::vector<std::int32_t> chain_of(std::vector<std::int32_t> ring, std::int32_t root) {
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), root), ring.end());
  return ring;
}

}  // namespace

Result<Pattern> chain_broadcast(const Participants& group) {
  FORESHARD_ASSIGN(const auto rings, internal::rings(group));
  internal::Traffic traffic(group);
  for (const auto& ring : rings) {
    const auto chain = chain_of(ring, group.root);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      traffic.add(chain[i], chain[i + 1], 1.0 / static_cast<double>(rings.size()));
  }
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  for (const auto& ring : rings) {
    const auto chain = chain_of(ring, group.root);
    internal::Path path;
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      path.add(traffic.hop(chain[i], chain[i + 1]));
    if (&ring == &rings.front() || internal::longer(path, pattern.path)) pattern.path = path;
  }
  pattern.fill_chunks = static_cast<double>(group.devices.size()) - 2;
  pattern.ways = static_cast<double>(rings.size());
  pattern.sent_per_member = 1;
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

Result<StepwiseCollective> chain_broadcast_steps(const Participants& group) {
  FORESHARD_ASSIGN(const auto rings, internal::rings(group));
  const auto parts = static_cast<std::int32_t>(rings.size());
  const auto hops = static_cast<std::int32_t>(group.devices.size()) - 1;
  FORESHARD_TRY(internal::too_many_messages("chain", static_cast<double>(hops) * parts));
  StepwiseCollective result{
      .algorithm = "chain", .chunks = parts, .pipelined = true, .messages = {}};
  for (std::int32_t part = 0; part < parts; ++part) {
    const auto chain = chain_of(rings[static_cast<std::size_t>(part)], group.root);
    for (std::int32_t i = 0; i < hops; ++i) {
      const std::int32_t from = chain[static_cast<std::size_t>(i)];
      const std::int32_t to = chain[static_cast<std::size_t>(i) + 1];
      FORESHARD_ASSIGN(const auto route, internal::route_between(group, from, to));
      Message message{.from = from,
                      .to = to,
                      .part = 1.0 / parts,
                      .latency = route.latency,
                      .after = {},
                      .first_chunk = part};
      if (i > 0) message.after.push_back(part * hops + i - 1);
      result.messages.push_back(std::move(message));
    }
  }
  return result;
}

}  // namespace foreshard::comm
