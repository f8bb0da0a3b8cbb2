/// \file
/// The collective algorithms: each has its own .cc and one line in registry.cc. Only collective.cc
/// calls them; it answers itself for groups of one member and for copies between device and host.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/internal/traffic.h"

namespace foreshard::comm {

/// The load that an algorithm puts on the links, whatever the protocol.
struct Pattern {
  std::vector<LinkLoad> loads;  ///< Ascending LinkId.
  double detour = 0;            ///< Fraction of all flows that takes detours (internal::LoadSum).
  /// Rings (trees) that enter a node at different members and share the channels.
  double ways = 1;
  internal::Path path;  ///< The critical path: hops one after another, from start to end.
  /// Fraction of the operation's bytes that all channels together send in one hop.
  double message = 1;
  double fill_chunks = 0;        ///< See StartUp.
  bool overlaps_rounds = false;  ///< See FlatCollective.
  double chunks = 1;             ///< StartUp::chunk, in units of FormParameters::chunk.
  /// NVLS: the pipeline fills in FormParameters::turnaround chunk times `rounds` times over, and
  /// the NVLinks are never idle meanwhile.
  bool in_rounds = false;
  double rounds = 0;
  /// Fraction of FormParameters::network_channel_rate that is reached (chunks may be short).
  double channel_part = 1;
  bool copies_by_chunk = false;  ///< A chunk is copied out of a buffer while the next one arrives.
  /// Bytes that a member sends per byte of the operation (the exact volume, R2.5): the average over
  /// the members; for an exchange, the most that any member sends.
  double sent_per_member = 0;
  /// Limit on the channels across the network; 0: none beyond the form's own count.
  std::int64_t most_channels = 0;
  /// Bytes that a member's channels copy within it, per byte of the operation.
  double kept_per_member = 0;
  /// Fraction of the operation's bytes that passes through one member's channels: all of them,
  /// except for an exchange, whose bytes are summed over all members; there, what the busiest
  /// member sends or receives.
  double share_of_member = 1;
};

struct Algorithm {
  std::string_view name;  ///< Unique together with `kind`.
  CollectiveKind kind;
  /// \pre `group` is valid and has at least 2 members.
  /// \return kInfeasible where there is no route. kUnsupported if this group's hardware cannot run
  ///     it: the algorithm is then left out.
  Result<Pattern> (*pattern)(const Participants& group);
  /// Null if the algorithm is not made of messages between members (has_messages).
  /// \pre as for `pattern`
  Result<StepwiseCollective> (*steps)(const Participants& group);
  bool several_nodes = false;  ///< The algorithm cannot run in groups of one node.
  bool no_pcie_hop = false;    ///< No hop of Pattern::path crosses PCIe alone, on any hardware.
};

/// All algorithms; ties between them go to the earlier one.
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
