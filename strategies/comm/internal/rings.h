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

/// The rings that carry an operation in equal parts; each visits every member once.
///
/// On several nodes with at most k members each there are k rings. Ring c enters the first node at
/// its member c and leaves every node at a member whose index equals that at which it enters the
/// next one (the same rail); all k together use every member's NIC equally. With an odd number of
/// nodes and k = 2 the rails cannot match all the way round, and the last hop changes rail. Between
/// where it enters and leaves a node it follows the order of the members; where these have unequal
/// links of their own (a hybrid cube mesh of 4 to 8), the order whose slowest hop is fastest.
///
/// On one node it is one ring where a switch joins the members, all rings are then alike; between
/// members with links of their own, the set of up to 12 rings that the links carry fastest, found
/// greedily among all orders (up to 8 members).
/// \return kInfeasible where there is no route.
Result<std::vector<std::vector<std::int32_t>>> rings(const Participants& group);

/// The first of these rings: what the stepwise form uses.
std::vector<std::int32_t> first_ring(const Participants& group);

}  // namespace foreshard::comm::internal
