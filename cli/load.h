/// \file
/// Clusters as the command line names them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "topology/cluster_config.h"

namespace foreshard::cli {

/// The cluster that `name` stands for: a file, a catalogue name or YAML in braces. Where it names a
/// node, YAML in braces of the cluster of that node alone; else `name` itself.
std::string as_cluster(const std::string& name,
                       const std::vector<std::filesystem::path>& catalogue);

/// A cluster, or a node as as_cluster() takes it.
Result<ClusterConfig> load_cluster(const std::string& name, yaml::Loader& loader,
                                   const std::vector<std::filesystem::path>& catalogue,
                                   std::string_view at = {});

}  // namespace foreshard::cli
