// Pipelined broadcast of B bytes from the root along a chain of p >= 2 members (NCCL's "ring"
// broadcast).
//
//     time   = (p-1) latency + B / bandwidth + (p-2) chunk / bandwidth
//     volume = B per member but the last, (p-1) B in total
//
// The last term is the time to fill the pipeline: chunks of a bounded size follow one another.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005; Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35(12), 2009, section 2.
#include <algorithm>

#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {
namespace {

// The ring, cut open in front of the root.
std::vector<std::int32_t> chain_of(std::vector<std::int32_t> ring, std::int32_t root) {
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), root), ring.end());
  return ring;
}

}  // namespace

Result<Pattern> chain_broadcast(const Participants& group) {
  FORESHARD_ASSIGN(const auto all, internal::rings(group));
  internal::Traffic traffic(group);
  for (const auto& ring : all) {
    const auto chain = chain_of(ring, group.root);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      traffic.add(chain[i], chain[i + 1], 1.0 / static_cast<double>(all.size()));
  }
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  for (const auto& ring : all) {
    const auto chain = chain_of(ring, group.root);
    internal::Path path;
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      path.add(traffic.hop(chain[i], chain[i + 1]));
    if (&ring == &all.front() || internal::longer(path, pattern.path)) pattern.path = path;
  }
  pattern.fill_chunks = static_cast<double>(group.devices.size()) - 2;
  pattern.ways = static_cast<double>(all.size());
  pattern.sent_per_member = 1;
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

Result<StepwiseCollective> chain_broadcast_steps(const Participants& group) {
  FORESHARD_ASSIGN(const auto all, internal::rings(group));
  const auto ways = static_cast<std::int32_t>(all.size());
  const auto hops = static_cast<std::int32_t>(group.devices.size()) - 1;
  FORESHARD_TRY(internal::too_many_messages("chain", static_cast<double>(hops) * ways));
  StepwiseCollective result{
      .algorithm = "chain", .chunks = ways, .pipelined = true, .messages = {}};
  for (std::int32_t way = 0; way < ways; ++way) {
    const auto chain = chain_of(all[static_cast<std::size_t>(way)], group.root);
    for (std::int32_t i = 0; i < hops; ++i) {
      const std::int32_t from = chain[static_cast<std::size_t>(i)];
      const std::int32_t to = chain[static_cast<std::size_t>(i) + 1];
      FORESHARD_ASSIGN(const auto route, internal::route_between(group, from, to));
      Message message{.from = from,
                      .to = to,
                      .part = 1.0 / ways,
                      .latency = route.latency,
                      .after = {},
                      .first_chunk = way};
      if (i > 0) message.after.push_back(way * hops + i - 1);
      result.messages.push_back(std::move(message));
    }
  }
  return result;
}

}  // namespace foreshard::comm
