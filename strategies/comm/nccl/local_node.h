/// \file
/// One node of a group as NCCL's graph search counts it: what each hop between its members, and
/// between a member and its network adapter, takes of the node's links.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/nccl/tables.h"

namespace foreshard::comm::nccl {

/// What a channel's hop takes: `share` of the channel's speed from one link.
struct LinkUse {
  std::size_t link = 0;  ///< Index into LocalNode::capacity.
  double share = 1;
};
struct LocalHop {
  std::vector<LinkUse> uses;
  LinkKind kind = LinkKind::kNvLink;  ///< The widest.
  bool relayed = false;               ///< Over NVLink by way of a third device (NVB).
};

struct LocalNode {
  std::size_t members = 0;
  std::vector<double> capacity;             ///< Of each link, GB/s, as NCCL counts it.
  std::vector<std::vector<LocalHop>> hop;   ///< [from][to]; empty on the diagonal.
  std::vector<LocalHop> to_nic;             ///< By member; of several nodes only.
  std::vector<LocalHop> from_nic;           ///< By member.
  std::vector<std::vector<VertexId>> nics;  ///< By member: those that it uses, ascending.
  std::vector<double> nvlink_total;         ///< By member, GB/s out.
  double total = 0;                         ///< Of the best member: all NVLinks, or its PCIe.
  bool has_nvswitch = false;                ///< That joins all members.
};

/// \param members  of the node: indices into group.devices.
/// \param peers    of each of them one on another node, through which its adapter is found; empty
///     on a single node.
/// \return kInfeasible where there is no route.
Result<LocalNode> local_node(const Participants& group, const std::vector<std::int32_t>& members,
                             const std::vector<std::int32_t>& peers, const Tables& tables);

}  // namespace foreshard::comm::nccl
