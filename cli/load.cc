#include "cli/load.h"

#include "base/file.h"
#include "base/yaml/given.h"
#include "cli/kinds.h"

namespace foreshard::cli {
namespace {

constexpr Bytes kLargestNode = 4_MiB;

bool is_node_file(const std::string& name) {
  if (!yaml::is_file_name(name)) return false;
  const auto text = read_file(name, kLargestNode);
  return text && kind_of(name, *text).name == "node";
}

}  // namespace

Result<ClusterConfig> load_cluster_or_node(const std::string& name, yaml::Loader& loader,
                                           std::string_view at) {
  if (!is_node_file(name)) return yaml::read_given<ClusterConfig>(name, loader, at);
  FORESHARD_ASSIGN(auto node, loader.read_file<NodeConfig>(name, at));
  ClusterConfig alone;
  alone.name = std::filesystem::path(name).stem().string();
  alone.node = yaml::Ref<NodeConfig>{std::move(node), ""};
  return alone;
}

}  // namespace foreshard::cli
