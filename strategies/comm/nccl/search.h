/// \file
/// The channels that NCCL's graph search finds on the nodes of a group: how many, and what each
/// carries inside a node and between nodes.
///
/// The search places, for one speed after another, as many channels as fit: each takes `speed` of
/// every link that it crosses (as NCCL counts links: Tables), goal: channels x speed as large as
/// possible. Rings and trees cross the members of a node one after another; NVLS loads every
/// member's NVLinks once per channel and those of the channel's head twice.
///
/// Source: NVIDIA/nccl v2.28.9-1, src/graph/{search,topo,paths,connect}.cc.
/// Not modelled: NCCL_TOPO_FILE and NCCL_GRAPH_FILE, limits of the search's own time (here: a
/// number of steps, so that it is deterministic), links that are degraded (NCCL reads nominal
/// speeds).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/nccl/tables.h"
#include "topology/cluster_view.h"

namespace foreshard::comm {
struct Participants;
}

namespace foreshard::comm::nccl {

/// What one search found for one pattern, before NCCL doubles the channels.
struct SearchGraph {
  std::int64_t channels = 0;                ///< 0: the hardware cannot do it.
  BytesPerSecond intra_rate;                ///< Of one channel inside a node.
  BytesPerSecond inter_rate;                ///< Of one channel between nodes.
  LinkKind intra_kind = LinkKind::kNvLink;  ///< The widest that it crosses inside a node.
  /// Between a member and its NIC it crosses sockets, or a socket and no switch.
  bool far_nic = false;
};

/// What NCCL's tuner knows of a group.
struct Communicator {
  std::int64_t members = 1;
  std::int64_t nodes = 1;
  std::int64_t most_per_node = 1;
  std::int64_t least_per_node = 1;
  std::int64_t least_capability = 80;  ///< 10 x major + minor.
  std::int64_t most_capability = 80;
  bool has_nvswitch = false;  ///< Each node joins its members by one.
  bool has_collnet = false;   ///< The network adds up (ClusterView::reduces_in_network).
  SearchGraph ring;
  SearchGraph tree;
  SearchGraph nvls;
  SearchGraph collnet_chain;
  SearchGraph collnet_direct;
  /// That collectives use, once the search's were doubled.
  std::int64_t channels = 1;
  std::int64_t nvls_channels = 0;
};

/// \return kInvalidInput for an impossible group, kInfeasible where members have no route.
Result<Communicator> communicator_of(const Participants& group, const Tables& tables);

}  // namespace foreshard::comm::nccl
