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

/// How many members of equal place every node has: as many as the smallest node has members, at
/// most 32, half of NCCL's MAXCHANNELS (the other half is for copies).
/// \pre !nodes.empty()
std::size_t rails_of(const std::vector<std::vector<std::int32_t>>& nodes);

/// How many rings, or trees, enter each node: the fewest that any node offers, since NCCL's ranks
/// exchange what each found (NVIDIA/nccl, src/init.cc, v2.28). A node offers one for each member;
/// as many more as its adapters are faster than a channel can be; twice as many where
/// ncclTopoDupChannels (src/graph/search.cc) copies its channels, because each is fast. So a small
/// node of fast adapters meets a large one of slow adapters with one ring for each of these. Copies
/// that would make some adapter carry more than without are left out.
/// Not modelled: speeds of channels below a list's next step.
/// \return kInfeasible where there is no route.
Result<std::size_t> rings_over(const Participants& group,
                               const std::vector<std::vector<std::int32_t>>& nodes);

/// Whether every node joins the same even number of members, 4 or more, by a link of its own
/// between any two, all alike (MI300X). Then chains of all its members from each of them can use
/// every link once in each direction; of an odd count there are none that also end at another
/// member each.
bool has_chains_on_all_links(const Participants& group,
                             const std::vector<std::vector<std::int32_t>>& nodes);
/// Such a chain of a node of n members, from the one at `first`: i, i+1, i-1, i+2, ... i+n/2
/// (modulo n). It ends n/2 places on.
/// \pre first < node.size()
std::vector<std::int32_t> chain_on_all_links(const std::vector<std::int32_t>& node,
                                             std::size_t first);

/// The rings that carry an operation in equal parts; each visits every member once.
///
/// On several nodes there are k = rings_over(nodes) rings. Ring c enters the first node at its
/// member c and leaves every node at a member whose index equals that at which it enters the next
/// one (the same rail), modulo the members; all k together use the first k members' NICs of every
/// node equally, those of fewer members several times. With k = 1, or
/// an odd number of nodes and k = 2, the rails cannot match all the way round, and a ring changes
/// rail where it leaves a node of more members. Between where it enters and leaves a node it
/// follows the order of the members; where these have unequal links of their own (a hybrid cube
/// mesh of 4 to 8), the order whose slowest hop is fastest. Where each node joins an even number of
/// members by a link of its own between any two (MI300X), the k rings take different orders, so
/// that together they use each link once; of an odd number of nodes they then change rails once.
///
/// On one node it is one ring where a switch joins the members, all rings are then alike; between
/// members with links of their own, the rings that use each of them once if all are alike and there
/// are such rings; else the set of up to 12 rings that the links carry fastest, found greedily
/// among all orders (up to 8 members) that need no relay, or else no PCIe.
/// \return kInfeasible where there is no route.
Result<std::vector<std::vector<std::int32_t>>> rings(const Participants& group);

}  // namespace foreshard::comm::internal
