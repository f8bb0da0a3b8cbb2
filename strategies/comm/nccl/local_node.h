/// \file
/// One node of a group as NCCL's graph search sees it: the share of the node's links that each hop
/// uses, between members and between a member and its network adapter.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/nccl/tables.h"

namespace foreshard::comm::nccl {

/// A channel's hop uses `share` x the channel's speed of one link.
struct LinkUse {
  std::size_t link = 0;  ///< Index into LocalNode::capacity.
  double share = 1;
};
struct LocalHop {
  std::vector<LinkUse> uses;
  LinkKind kind = LinkKind::kNvLink;  ///< The widest-reaching kind of link used.
  bool relayed = false;               ///< The hop goes through a third device over NVLink (NVB).
};

struct LocalNode {
  std::size_t members = 0;
  std::vector<double> capacity;             ///< One per link, GB/s, as NCCL counts it.
  std::vector<std::vector<LocalHop>> hop;   ///< [from][to]; empty on the diagonal.
  std::vector<LocalHop> to_nic;             ///< One per member; empty on a single node.
  std::vector<LocalHop> from_nic;           ///< One per member; empty on a single node.
  std::vector<std::vector<VertexId>> nics;  ///< member -> the NICs that it uses, ascending.
  std::vector<double> nvlink_total;         ///< One per member, GB/s out.
  double total = 0;           ///< The best member's GB/s: the sum of its NVLinks, or its PCIe link.
  bool has_nvswitch = false;  ///< An NVLink switch joins all members.
};

/// \param members  the node's members: indices into group.devices.
/// \param peers    per member one peer on another node, used to find the member's adapter; empty on
///     a single node.
/// \return kInfeasible where there is no route.
Result<LocalNode> local_node(const Participants& group, const std::vector<std::int32_t>& members,
                             const std::vector<std::int32_t>& peers, const Tables& tables);

}  // namespace foreshard::comm::nccl
