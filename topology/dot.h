/// \file
/// A cluster as a Graphviz file: `dot -Tsvg`. Hosts are boxes around their vertices; both
/// directions of a cable are one line; what is down is dashed red.
#pragma once

#include <cstdint>
#include <string>

#include "topology/cluster_view.h"

namespace foreshard {

/// \param most_nodes  hosts beyond it are left out, and a remark gives their number.
std::string to_dot(const ClusterView& cluster, std::int32_t most_nodes = 64);

}  // namespace foreshard
