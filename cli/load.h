/// \file
/// What the command line names: a file, an entry of the catalogue, or YAML in braces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "topology/cluster_config.h"

namespace foreshard::cli {

/// A path, not the name of a catalogue entry.
inline bool is_file_name(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

/// The object in the file or catalogue entry `name`, or in YAML in braces; overrides see it at
/// `at`.
template <class T>
Result<T> load(const std::string& name, yaml::Loader& loader, std::string_view at = {}) {
  if (name.starts_with('{')) return loader.read_text<T>(name, "command line", at);
  return is_file_name(name) ? loader.read_file<T>(name, at) : loader.read_ref<T>(name, at);
}

/// A cluster; a file that holds a node is a cluster of that node alone.
Result<ClusterConfig> load_cluster_or_node(const std::string& name, yaml::Loader& loader,
                                           std::string_view at = {});

}  // namespace foreshard::cli
