/// \file
/// What of a device's memory is not there for tensors: the driver's context of the process, and
/// what the communication library keeps for its communicators. Tensors fit a device if
///
///     peak + reserve <= memory,   reserve = context + communicator x axes that are split
///
/// with one communicator for each axis that has more than one rank: tensor, heads and ring of
/// context parallelism, ZeRO shards, sets of these, pipeline. The numbers are the framework's
/// (configs/frameworks). Not modelled: that they grow with the device's multiprocessors and links;
/// communicators over several axes at once; the connections to every peer of all-to-alls; what the
/// allocator of the framework holds and has not given out.
#pragma once

#include "strategies/parallelism/strategy.h"

namespace foreshard {

Bytes reserve_of(const Strategy& strategy);

}  // namespace foreshard
