/// \file
/// Device memory that is not available for tensors: the driver's context of the process, and the
/// buffers of the communication library's communicators. Tensors fit a device if
///
///     peak + reserve <= memory,   reserve = context + communicator x axes that are split
///
/// with one communicator for each axis that has more than one rank: tensor, heads and ring of
/// context parallelism, ZeRO shards, sets of shards, pipeline. The numbers are the framework's
/// (configs/frameworks). Not modelled: their growth with the device's SMs and links; communicators
/// over several axes at once; the connections of all-to-alls to every peer; memory that the
/// framework's allocator holds but has not handed out.
#pragma once

#include "strategies/parallelism/strategy.h"

namespace foreshard {

Bytes reserve_of(const Strategy& strategy);

}  // namespace foreshard
