/// \file
/// The least time that any way from one layout to another can take on a cluster, whatever the
/// primitives: what must enter or leave a device, or a node, over all links that lead there.
///
///     max over devices and nodes, both ways, of (bytes that must cross) / (bandwidth of the links)
///
/// Into a device must come what it needs and does not hold; out of it, at least once, what only it
/// holds and another needs. Likewise for the devices of one node together, over the links that join
/// the node to the fabric: what one of them has received it can pass on inside. No rank holds a
/// value of a partial tensor: what comes into a device is at least one summand of all that it
/// needs. Of a target that is partial nothing is known: what its summands are is free.
/// Not modelled: latency; switches and cables behind the node's own links.
#pragma once

#include <string>

#include "base/units.h"

#include "strategies/reshard/placement.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

struct LowerBound {
  Seconds time{};
  std::string meaning{};  ///< "1.88 GB must enter node 1 at 400 GB/s". Empty if nothing must move.
};

/// Cost: O(ranks x pieces), pieces = the cells that all cuts of both layouts make; beyond 2^22 of
/// that, nodes are left out and the bound is of devices alone, from their slices.
/// \pre both layouts fit the tensor, and their ranks have devices.
LowerBound lower_bound(const TensorSpec& tensor, const Layout& from, const Layout& to,
                       const Placement& placement);

}  // namespace foreshard::reshard
