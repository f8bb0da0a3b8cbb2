/// \file
/// The channels that NCCL's graph search finds on the nodes of a group: their number, and the rate
/// of each inside a node and between nodes.
///
/// The search tries one speed after another and places as many channels as fit; each takes `speed`
/// from every link that it crosses (as NCCL counts links: Tables). The goal is the largest channels
/// x speed. Rings and trees cross the members of a node one after another; NVLS loads every
/// member's NVLinks once per channel, and the NVLinks of the channel's head twice.
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

/// The result of one search for one pattern, before NCCL doubles the channels.
struct SearchGraph {
  std::int64_t channels = 0;  ///< 0: the hardware cannot run the pattern.
  BytesPerSecond intra_rate;  ///< One channel's rate inside a node.
  BytesPerSecond inter_rate;  ///< One channel's rate between nodes.
  /// The widest-reaching kind of link that it crosses inside a node.
  LinkKind intra_kind = LinkKind::kNvLink;
  /// Whether the way between some member and its NIC crosses from one socket to another.
  bool far_nic = false;
};

/// NCCL's view of a group, as its tuner reads it.
struct Communicator {
  std::int64_t members = 1;
  std::int64_t nodes = 1;
  std::int64_t most_per_node = 1;
  std::int64_t least_per_node = 1;
  std::int64_t least_capability = 80;  ///< 10 x major + minor.
  std::int64_t most_capability = 80;
  bool has_nvswitch = false;  ///< An NVLink switch joins the members of each node.
  bool has_collnet = false;   ///< The network's switches add up (ClusterView::reduces_in_network).
  SearchGraph ring;
  SearchGraph tree;
  SearchGraph nvls;
  SearchGraph collnet_chain;
  SearchGraph collnet_direct;
  /// Channels that collectives use, after the search's channels were doubled.
  std::int64_t channels = 1;
  std::int64_t nvls_channels = 0;
};

/// \return kInvalidInput for an impossible group, kInfeasible where members have no route.
Result<Communicator> communicator_of(const Participants& group, const Tables& tables);

/// The number of channels that NCCL uses for sends to one peer on another node:
///
///     2, halved while 2 x ranks > 4 x channels of the communicator for sends
///
/// so that no channel has eight operations or more in large communicators. The number of channels
/// for sends is the number for collectives, rounded up to a power of two.
///
/// Source: NVIDIA/nccl v2.28, src/graph/paths.cc (ncclTopoGetNchannels,
/// ncclTopoComputeP2pChannels). Not modelled: more channels where a GPU has several adapters of its
/// own; NCCL_NCHANNELS_PER_NET_PEER.
std::int64_t peer_channels(const Communicator& communicator);

}  // namespace foreshard::comm::nccl
