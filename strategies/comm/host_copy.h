/// \file
/// Operations of one device with the memory of its host: B bytes by a copy engine of the device, to
/// the host or from it; or B bytes that the CPU reads and writes there.
///
///     time   = latency of the route + max over links of (bytes that cross it) / bandwidth
///     volume = B
///
/// A copy takes the way to the nearest socket (ClusterView::host_route), which devices behind one
/// PCIe switch share, and the memory of that socket, which all of its devices share with what its
/// CPU computes for them. The two directions of a link do not compete, those of memory do.
///
/// They are none of a communication library's, so its parameters do not count: a copy engine needs
/// no multiprocessor, and a link's own efficiency is that of pinned copies
/// (topology/node_config.h).
/// Not modelled: the start of a copy engine, copies of many small tensors (each of them one), host
/// memory that is not pinned.
#pragma once

#include "strategies/comm/collective.h"

namespace foreshard::comm {

/// \pre program::is_with_host(kind), one device.
Result<FlatCollective> host_copy(CollectiveKind kind, const Participants& group);

}  // namespace foreshard::comm
