/// \file
/// Loads clusters that are named on the command line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "topology/cluster_config.h"

namespace foreshard::cli {

/// The cluster that `name` means, in a form that the loader takes. `name` is a file, a catalogue
/// name or YAML in braces. If it names a node, the result is YAML in braces of a cluster with only
/// that node; otherwise it is `name` itself.
std::string as_cluster(const std::string& name,
                       const std::vector<std::filesystem::path>& catalogue);

/// Loads a cluster; `name` is resolved by as_cluster(), so it may also name a node.
Result<ClusterConfig> load_cluster(const std::string& name, yaml::Loader& loader,
                                   const std::vector<std::filesystem::path>& catalogue,
                                   std::string_view at = {});

}  // namespace foreshard::cli
