/// \file
/// Operations of one device with its host's memory: a copy engine of the device moves B bytes to
/// the host or from it, or the CPU reads and writes B bytes there.
///
///     time   = latency of the route + max over links of (bytes that cross it) / bandwidth
///     volume = B
///
/// A copy takes the route to the nearest socket (ClusterView::host_route), which devices behind one
/// PCIe switch share. It ends in the memory of that socket, which all of its devices share with
/// what the CPU computes for them. The two directions of a link do not compete; reads and writes of
/// memory do.
///
/// No communication library takes part, so its parameters do not apply: a copy engine needs no SM,
/// and a link's own efficiency already is the efficiency of pinned copies (topology/node_config.h).
/// Not modelled: the start of a copy engine, many small tensors (a copy each), host memory that is
/// not pinned.
#pragma once

#include "strategies/comm/collective.h"

namespace foreshard::comm {

/// \pre program::is_with_host(kind), one device.
Result<FlatCollective> host_copy(CollectiveKind kind, const Participants& group);

}  // namespace foreshard::comm
