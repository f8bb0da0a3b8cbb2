/// \file
/// Clusters as the command line names them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "topology/cluster_config.h"

namespace foreshard::cli {

/// A cluster; a file that holds a node is a cluster of that node alone.
Result<ClusterConfig> load_cluster_or_node(const std::string& name, yaml::Loader& loader,
                                           std::string_view at = {});

}  // namespace foreshard::cli
