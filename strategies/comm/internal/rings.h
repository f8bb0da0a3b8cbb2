/// \file
/// In which order a ring visits the members of a group, as NCCL builds its channels
/// (NVIDIA/nccl, src/graph/connect.cc, v2.28): node after node, and inside each along the fastest
/// links.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm::internal {

/// The members on each node: nodes in the order of their first member, members in rank order.
/// Indices into Participants::devices.
std::vector<std::vector<std::int32_t>> members_by_node(const Participants& group);

/// How many rings, or trees, can each have a member of its own on every node by which to enter and
/// to leave it: as many as the smallest node has members. NCCL takes the fewest channels that its
/// search finds on any node, for all of them (NVIDIA/nccl, src/init.cc, v2.28: the ranks exchange
/// what they found), so that no adapter of a small node carries two rings.
/// \pre !nodes.empty()
std::size_t rails_of(const std::vector<std::vector<std::int32_t>>& nodes);

/// The rings that carry an operation in equal parts; each visits every member once.
///
/// On several nodes there are k = rails_of(nodes) rings. Ring c enters the first node at its member
/// c and leaves every node at a member whose index equals that at which it enters the next one (the
/// same rail); all k together use the first k members' NICs of every node equally. With k = 1, or
/// an odd number of nodes and k = 2, the rails cannot match all the way round, and a ring changes
/// rail where it leaves a node of more members. Between where it enters and leaves a node it
/// follows the order of the members; where these have unequal links of their own (a hybrid cube
/// mesh of 4 to 8), the order whose slowest hop is fastest.
///
/// On one node it is one ring where a switch joins the members, all rings are then alike; between
/// members with links of their own, the set of up to 12 rings that the links carry fastest, found
/// greedily among all orders (up to 8 members) that need no relay, or else no PCIe.
/// \return kInfeasible where there is no route.
Result<std::vector<std::vector<std::int32_t>>> rings(const Participants& group);

}  // namespace foreshard::comm::internal
