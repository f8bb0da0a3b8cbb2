/// \file
/// Sums in NVLink switches and in network switches: the loads that algorithms put on the links when
/// the hardware does the additions.
///
/// The *heads* of a node share the bytes: each head asks the switch for the sum of its part, which
/// the switch reads from all members, and hands the result back to the switch, which copies it to
/// all members.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

using NodeMembers = std::vector<std::vector<std::int32_t>>;

/// The members of each node.
/// \return kUnsupported if the members of some node do not share an NVLink switch, or a member is
///     alone on its node.
Result<NodeMembers> nodes_on_switches(std::string_view algorithm, const Participants& group);
/// kUnsupported unless the network's switches add (ClusterView::reduces_in_network).
Status no_sums_in_network(std::string_view algorithm, const Participants& group);

/// Most heads of a node, whatever the number of members on its NVLink switch (NVIDIA/nccl v2.28.9,
/// src/include/device.h: NCCL_MAX_NVLS_ARITY).
inline constexpr std::size_t kMostHeads = 32;

/// The heads: head -> node -> member, at the same place on every node. There are as many as the
/// smallest node has members, on several nodes one per adapter of the first node (NVIDIA/nccl
/// v2.28.9, src/graph/search.cc, ncclTopoSearchRecNet), and at most kMostHeads.
/// \return kInfeasible where there is no route.
Result<NodeMembers> heads_of(const Participants& group, const NodeMembers& nodes);

/// Number of heads beyond eight; 0 for up to eight. It measures how much longer the pipeline takes
/// to fill: the channels serve the heads one after another, so a *round* (one chunk per channel and
/// head) grows with the number of heads. The rounds of up to eight heads are part of the form's
/// `base`, which was fitted on nodes of eight GPUs.
double heads_beyond_fit(const NodeMembers& heads);

/// Bytes per byte of the operation on one member's NVLinks.
struct SwitchVolume {
  double up = 0;
  double down = 0;
};
/// Adds the load that the members of every node put on the links to their switch: `each` for every
/// member, plus `head` for the members in `heads`.
/// \return the hop over a switch with the longest wire.
Result<Hop> add_switch_sums(const Participants& group, const NodeMembers& nodes,
                            const NodeMembers& heads, const SwitchVolume& each,
                            const SwitchVolume& head, LoadSum* loads);

/// Adds the traffic of sums in the network's switches, over `part` of the bytes, among `members`:
/// every member sends its part up and receives the sum; one copy passes between switches. It is
/// routed as a ring, so that nothing passes further up between neighbours on one switch.
void add_network_sums(const std::vector<std::int32_t>& members, double part, Traffic* traffic);
/// The longest path of one message up and one down again, over all rails.
Path network_sum_path(const NodeMembers& rails, const Traffic& traffic);

}  // namespace foreshard::comm::internal
