/// \file
/// The collective algorithms: one .cc each, one line each in registry.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/internal/traffic.h"

namespace foreshard::comm {

/// What an algorithm puts on the links, whatever the protocol.
struct Pattern {
  std::vector<LinkLoad> loads;  ///< Ascending LinkId.
  double detour = 0;            ///< The part of all flows that takes detours (internal::LoadSum).
  double ways = 1;  ///< Rings (trees) that enter a node at different members, sharing the channels.
  internal::Path path;           ///< Hops one after another, from start to end.
  double message = 1;            ///< Of the operation's bytes, what all channels send in one hop.
  double fill_chunks = 0;        ///< See StartUp.
  bool overlaps_rounds = false;  ///< See FlatCollective.
  double chunks = 1;             ///< StartUp::chunk, in chunks of the form.
  /// NVLS: FormParameters::turnaround counts what fills the pipeline, `rounds` times, and the
  /// NVLinks never rest.
  bool in_rounds = false;
  double rounds = 0;
  double channel_part = 1;       ///< Of FormParameters::network_channel_rate, for its short chunks.
  bool copies_by_chunk = false;  ///< A chunk is copied out of a buffer while the next one arrives.
  double sent_per_member =
      0;  ///< Bytes that a member sends per byte of the operation (R2.5), on average.
  std::int64_t most_channels = 0;  ///< Across the network. 0: those of the form.
  double kept_per_member = 0;      ///< Likewise, that its channels copy from itself to itself.
  /// What a member's channels see of the operation's bytes: all, but for an exchange, whose bytes
  /// are those of all members; there what the busiest one sends or receives.
  double share_of_member = 1;
};

struct Algorithm {
  std::string_view name;  ///< Together with `kind` unique.
  CollectiveKind kind;
  /// \pre `group` is valid and has at least 2 members.
  /// \return kInfeasible where there is no route. kUnsupported if this group's hardware cannot do
  ///     it: the algorithm is then left out.
  Result<Pattern> (*pattern)(const Participants& group);
  /// Null if it is not made of messages between members (has_messages).
  /// \pre As above.
  Result<StepwiseCollective> (*steps)(const Participants& group);
  bool several_nodes = false;  ///< It cannot do groups of one node.
  bool no_pcie_hop = false;    ///< No hop of Pattern::path is over PCIe alone, on any hardware.
};

/// All of them, in the order in which ties are decided.
std::span<const Algorithm> algorithms();

Result<Pattern> ring_all_reduce(const Participants& group);
Result<StepwiseCollective> ring_all_reduce_steps(const Participants& group);
Result<Pattern> ring_all_gather(const Participants& group);
Result<StepwiseCollective> ring_all_gather_steps(const Participants& group);
Result<Pattern> ring_reduce_scatter(const Participants& group);
Result<StepwiseCollective> ring_reduce_scatter_steps(const Participants& group);
Result<Pattern> tree_all_reduce(const Participants& group);
Result<StepwiseCollective> tree_all_reduce_steps(const Participants& group);
Result<Pattern> nvls_all_reduce(const Participants& group);
Result<Pattern> nvls_all_gather(const Participants& group);
Result<Pattern> nvls_reduce_scatter(const Participants& group);
Result<Pattern> nvls_tree_all_reduce(const Participants& group);
Result<Pattern> pat_all_gather(const Participants& group);
Result<StepwiseCollective> pat_all_gather_steps(const Participants& group);
Result<Pattern> pat_reduce_scatter(const Participants& group);
Result<StepwiseCollective> pat_reduce_scatter_steps(const Participants& group);
Result<Pattern> recursive_doubling_all_gather(const Participants& group);
Result<StepwiseCollective> recursive_doubling_all_gather_steps(const Participants& group);
Result<Pattern> recursive_halving_reduce_scatter(const Participants& group);
Result<StepwiseCollective> recursive_halving_reduce_scatter_steps(const Participants& group);
Result<Pattern> halving_doubling_all_reduce(const Participants& group);
Result<StepwiseCollective> halving_doubling_all_reduce_steps(const Participants& group);
Result<Pattern> hierarchical_all_reduce(const Participants& group);
Result<StepwiseCollective> hierarchical_all_reduce_steps(const Participants& group);
Result<Pattern> hierarchical_all_to_all(const Participants& group);
Result<Pattern> once_per_node_exchange(const Participants& group);
Result<Pattern> chain_broadcast(const Participants& group);
Result<StepwiseCollective> chain_broadcast_steps(const Participants& group);
Result<Pattern> pairwise_all_to_all(const Participants& group);
Result<StepwiseCollective> pairwise_all_to_all_steps(const Participants& group);
Result<Pattern> pairwise_exchange(const Participants& group);
Result<StepwiseCollective> pairwise_exchange_steps(const Participants& group);
Result<Pattern> direct_shift(const Participants& group);
Result<StepwiseCollective> direct_shift_steps(const Participants& group);
Result<Pattern> direct_transfer(const Participants& group);
Result<StepwiseCollective> direct_transfer_steps(const Participants& group);
Result<Pattern> collnet_chain_all_reduce(const Participants& group);
Result<Pattern> collnet_direct_all_reduce(const Participants& group);

}  // namespace foreshard::comm
