/// \file
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
#pragma once

#include <cstdint>

#include "strategies/comm/nccl/search.h"

namespace foreshard::comm::nccl {

std::int64_t peer_channels(const Communicator& communicator);

}  // namespace foreshard::comm::nccl
