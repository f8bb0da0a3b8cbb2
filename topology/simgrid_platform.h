/// \file
/// A cluster as a SimGrid platform file (DTD 4.1, read by SimGrid 3.16 and later): devices are
/// hosts, every directed link is a link, and every ordered pair of devices has its route, so that
/// SimGrid's routes are ours. The file asks for SimGrid's plain sharing (model CM02 without its TCP
/// corrections): an idle route then takes latency + bytes / bandwidth.
///
/// Source: SimGrid 3.32, docs/source/XML_reference.rst and simgrid.dtd.
/// Not modelled: flows over several paths (SimGrid's routes have one); what is down is left out.
#pragma once

#include <string>

#include "base/result.h"

#include "topology/cluster_view.h"

namespace foreshard {

/// \return kUnsupported if a route has several paths, with the setting that avoids it, or for more
///     than 512 devices (the file lists every pair).
Result<std::string> to_simgrid(const ClusterView& cluster);

}  // namespace foreshard
