/// \file
/// A lower bound on the time of any conversion from one layout to another on a cluster, whatever
/// the primitives. It follows from the bytes that must enter or leave a device, or a node, and the
/// bandwidth of all links that lead there.
///
///     max over devices and nodes, in and out, of (bytes that must cross) / (link bandwidth)
///
/// Data that a device needs and does not hold must enter it; data that only it holds and another
/// device needs must leave it, at least once. The same holds for all devices of a node together,
/// over the links that join the node to the fabric, since a device can pass on inside the node what
/// it has received. No rank holds the values of a partial tensor, so at least one summand of all
/// that a device needs must enter it. A partial target has no bound, since its summands are
/// arbitrary.
/// Not modelled: latency; switches and cables behind the node's own links.
#pragma once

#include <string>

#include "base/units.h"

#include "strategies/reshard/placement.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

struct LowerBound {
  Seconds time{};
  std::string meaning{};  ///< "1.88 GB must enter node 1 at 400 GB/s". Empty: nothing must move.
};

/// Cost: O(ranks x pieces), pieces = the cells between all cuts of both layouts. Beyond 2^22 of
/// these, nodes are left out and the bound covers devices only, from their slices.
/// \pre both layouts fit the tensor, and their ranks have devices
LowerBound lower_bound(const TensorSpec& tensor, const Layout& from, const Layout& to,
                       const Placement& placement);

}  // namespace foreshard::reshard
