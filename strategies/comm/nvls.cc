// NVLS: collectives of B bytes among p members whose NVLink switch does the sums and copies. Each
// of H heads (on one node: all members, at most 32) is responsible for B/H bytes.
//
//     all-reduce      out of each member 1 + 1/H of the bytes (its part of every sum, and one
//                     result), and as much into it; on several nodes also 1/H through each head's
//                     adapter, out and in, as the network's switches add up the nodes' sums
//     all-gather      out 1/p (one's own part), in 1
//     reduce-scatter  out 1 (one's part of every sum), in 1/p
//     time            latency + the largest of these x B / bandwidth; with more than 8 heads
//                     (a rack of 72 GPUs has 32) also a latency for each further one, and the
//                     time to fill a longer pipeline (heads_beyond_fit)
//
// Source: NVIDIA, "NVLink-Network Switch: NVIDIA's switch chip for high communication-bandwidth
// SuperPODs", Hot Chips 34, 2022 (SHARP); NVIDIA/nccl v2.28, src/graph/search.cc (each channel
// loads every link once and its head's link twice), src/graph/tuning.cc (several nodes need
// CollNet).
// Not modelled: data types that the switch cannot add (8-bit integers); all-gather and
// reduce-scatter on several nodes.
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/switch_sums.h"

namespace foreshard::comm {
namespace {

// Rounds below which NCCL halves the chunk of 64 KiB (src/enqueue.cc, v2.28).
constexpr double kRoundsForFullChunk = 8;

// The pattern on one node, where `each` holds for all members. kUnsupported on several nodes or for
// more than kMostHeads members.
Result<Pattern> on_one_node(const Participants& group, const internal::SwitchVolume& each) {
  FORESHARD_ASSIGN(const auto nodes, internal::nodes_on_switches("nvls", group));
  if (nodes.size() > 1)
    return Error{Error::Code::kUnsupported, "nvls: gathers and scatters of one node only"};
  if (group.devices.size() > internal::kMostHeads)  // src/enqueue.cc, v2.28
    return Error{Error::Code::kUnsupported, "nvls: gathers and scatters of at most 32 members"};
  internal::LoadSum loads;
  FORESHARD_ASSIGN(const auto hop, internal::add_switch_sums(group, nodes, {}, each, {}, &loads));
  Pattern pattern;
  pattern.path.add(hop);
  pattern.in_rounds = true;
  pattern.sent_per_member = each.up;
  pattern.message = 1 / static_cast<double>(group.devices.size());
  pattern.loads = loads.take(group, pattern.detour);
  return pattern;
}

}  // namespace

Result<Pattern> nvls_all_reduce(const Participants& group) {
  FORESHARD_ASSIGN(const auto nodes, internal::nodes_on_switches("nvls", group));
  if (nodes.size() > 1) FORESHARD_TRY(internal::no_sums_in_network("nvls", group));
  FORESHARD_ASSIGN(const auto heads, internal::heads_of(group, nodes));
  const double part = 1 / static_cast<double>(heads.size());
  internal::Traffic traffic(group);
  if (nodes.size() > 1)
    for (const auto& rail : heads) internal::add_network_sums(rail, part, &traffic);
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  internal::LoadSum loads;
  loads.add(traffic.take_loads(pattern.detour));
  FORESHARD_ASSIGN(const auto hop,
                   internal::add_switch_sums(group, nodes, heads, {1, 1}, {part, part}, &loads));
  pattern.path.add(hop);
  const double more = internal::heads_beyond_fit(heads);
  pattern.path.nvlink += more;
  pattern.in_rounds = true;
  pattern.rounds = more > 0 ? 1 / kRoundsForFullChunk : 0;
  pattern.chunks = more * kRoundsForFullChunk;
  if (nodes.size() > 1) pattern.path.add(internal::network_sum_path(heads, traffic));
  pattern.sent_per_member = 1 + part;
  pattern.message = part;
  pattern.ways = nodes.size() > 1 ? static_cast<double>(heads.size()) : 1;
  pattern.loads = loads.take(group, pattern.detour);
  return pattern;
}

Result<Pattern> nvls_all_gather(const Participants& group) {
  return on_one_node(group, {1 / static_cast<double>(group.devices.size()), 1});
}

Result<Pattern> nvls_reduce_scatter(const Participants& group) {
  return on_one_node(group, {1, 1 / static_cast<double>(group.devices.size())});
}

}  // namespace foreshard::comm
