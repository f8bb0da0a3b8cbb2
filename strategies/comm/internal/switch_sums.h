/// \file
/// Sums in NVLink switches, and in those of the network: what algorithms that leave additions to
/// the hardware put on the links.
///
/// On a node, *heads* share the bytes among them: each asks the switch for the sum of its part,
/// which the switch draws from all members, and hands the result back, which it copies to all.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

using NodeMembers = std::vector<std::vector<std::int32_t>>;

/// The members of each node.
/// \return kUnsupported if those of some node do not share an NVLink switch that adds, or are
///     alone.
Result<NodeMembers> nodes_on_switches(std::string_view algorithm, const Participants& group);
/// kUnsupported unless the network's switches add (ClusterView::reduces_in_network).
Status no_sums_in_network(std::string_view algorithm, const Participants& group);

/// Most heads of a node, however many members its NVLink switch joins (NVIDIA/nccl v2.28.9,
/// src/include/device.h: NCCL_MAX_NVLS_ARITY).
inline constexpr std::size_t kMostHeads = 32;

/// Members of equal place on every node: as many as the smallest node has, on several nodes one for
/// each adapter of the first node (NVIDIA/nccl v2.28.9, src/graph/search.cc, ncclTopoSearchRecNet),
/// and at most kMostHeads.
/// \return kInfeasible where there is no route.
Result<NodeMembers> heads_of(const Participants& group, const NodeMembers& nodes);

/// How much more than those of eight heads a node's heads take before its pipeline is full. The
/// channels serve the heads one after another, so a *round* (of each channel a chunk for each head)
/// lasts as long as it has heads. What the rounds of up to eight heads take is part of the form's
/// `base`, which was fitted on nodes of eight.
double heads_beyond_fit(const NodeMembers& heads);

/// Bytes per byte of the operation on one member's NVLinks.
struct SwitchVolume {
  double up = 0;
  double down = 0;
};
/// Adds what the members of every node put on their links to their switch: `each`, and `head`
/// besides if they are among the `heads`.
/// \return the longest way over a switch.
Result<Hop> add_switch_sums(const Participants& group, const NodeMembers& nodes,
                            const NodeMembers& heads, const SwitchVolume& each,
                            const SwitchVolume& head, LoadSum* loads);

/// Sums of `part` of the bytes among `members`, in the network's switches: every member sends its
/// part up and takes the sum down; between switches one copy passes. It is routed as a ring: where
/// neighbours hang on one switch, nothing passes further up.
void add_network_sums(const std::vector<std::int32_t>& members, double part, Traffic* traffic);
/// One message up and one down: the longest of them.
Path network_sum_path(const NodeMembers& rails, const Traffic& traffic);

}  // namespace foreshard::comm::internal
