/// \file
/// The order in which a ring visits the members of a group, as NCCL builds its channels
/// (NVIDIA/nccl, src/graph/connect.cc, v2.28): node after node, and inside each node along the
/// fastest links.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/collective.h"

namespace foreshard::comm::internal {

/// The members on each node: nodes in the order of their first member, members in rank order.
/// Indices into Participants::devices.
std::vector<std::vector<std::int32_t>> members_by_node(const Participants& group);

/// Number of rails, each with one member per node: as many as the smallest node has members, at
/// most 32, half of NCCL's MAXCHANNELS (the other half is for copies).
/// \pre !nodes.empty()
std::size_t rails_of(const std::vector<std::vector<std::int32_t>>& nodes);

/// Number of rings, or trees, that enter each node: the fewest that any node offers, since NCCL's
/// ranks exchange what each found (NVIDIA/nccl, src/init.cc, v2.28). A node offers one ring per
/// member; several per member if its adapters are faster than a channel can be; twice as many where
/// ncclTopoDupChannels (src/graph/search.cc) copies its channels because each is fast. So a small
/// node of fast adapters can meet a large node of slow adapters with one ring for each adapter of
/// the large one. Copies that would add load to some adapter are left out.
/// Not modelled: channel speeds that NCCL rounds down to the next entry of its list.
/// \return kInfeasible where there is no route.
Result<std::size_t> rings_over(const Participants& group,
                               const std::vector<std::vector<std::int32_t>>& nodes);

/// Whether every node has the same even number of members, 4 or more, and every two of them have a
/// link of their own, all equally fast (MI300X). Then chains through all members of a node, one
/// starting at each, can use every link once in each direction. For an odd count there are no such
/// chains that also end at a different member each.
bool has_chains_on_all_links(const Participants& group,
                             const std::vector<std::vector<std::int32_t>>& nodes);
/// Such a chain through a node's n members, from i = `first`: i, i+1, i-1, i+2, ... i+n/2 (modulo
/// n). It ends n/2 places after `first`.
/// \pre first < node.size()
std::vector<std::int32_t> chain_on_all_links(const std::vector<std::int32_t>& node,
                                             std::size_t first);

/// The rings that carry an operation in equal parts; each visits every member once.
///
/// On several nodes there are k = rings_over(nodes) rings. Ring c enters the first node at its
/// member c. It leaves every node at the member with the same index (the same rail) as the member
/// at which it enters the next node, modulo the members. All k rings together use the NICs of every
/// node's first k members equally; a node of fewer members has its NICs used several times. With k
/// = 1, or an odd number of nodes and k = 2, the rails cannot match all the way round, and a ring
/// changes rail where it leaves a node of more members. Between its entrance and its exit, a ring
/// follows the order of a node's members; where these have unequal links of their own (a hybrid
/// cube mesh of 4 to 8), it takes the order whose slowest hop is fastest. Where every two of a
/// node's members, an even number, have a link of their own (MI300X), the k rings take different
/// orders, so that together they use each link once; over an odd number of nodes they then change
/// rails once.
///
/// On one node where a switch joins the members there is one ring, since all orders are then
/// equivalent. Between members with links of their own there are the rings that use each link once,
/// if all links are equal and such rings exist; else the set of up to 12 rings that the links carry
/// fastest, found greedily among all orders (up to 8 members) that need no relay, or else no PCIe.
/// \return kInfeasible where there is no route.
Result<std::vector<std::vector<std::int32_t>>> rings(const Participants& group);

// The pattern and the steps that the three ring collectives share.

/// The bytes go round the ring `rounds` times, less one hop each time: in each round every member
/// sends (p-1)/p of the bytes to its successor. The critical path is one chunk's: rounds x (p-1)
/// hops in a row, without the `rounds` adjacent hops that are shortest.
Result<Pattern> ring_pattern(const Participants& group, int rounds);

/// The messages round by round and step by step; in each step every member passes on one of p
/// chunks in each ring.
/// \param reduce_rounds  rounds that reduce (reduce-scatter); they come first.
Result<StepwiseCollective> ring_steps(const Participants& group, int reduce_rounds,
                                      int gather_rounds);

/// kUnsupported if a stepwise form of `messages` messages would be too large to write out.
Status too_many_messages(std::string_view algorithm, double messages);

}  // namespace foreshard::comm::internal
