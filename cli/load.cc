#include "cli/load.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "base/file.h"
#include "base/yaml/given.h"
#include "base/yaml/quoted.h"
#include "cli/kinds.h"

namespace foreshard::cli {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kLargestNode = 4_MiB;

bool is_entry(const std::string& name, const char* kind, const std::vector<fs::path>& catalogue) {
  if (name.empty() || name.starts_with('/') || name.find("..") != std::string::npos) return false;
  return std::ranges::any_of(catalogue, [&](const fs::path& folder) {
    std::error_code status;
    return fs::is_regular_file(folder / find_kind(kind)->folder / (name + ".yaml"), status);
  });
}

bool is_node(const std::string& name, const std::vector<fs::path>& catalogue) {
  if (name.starts_with('{')) return kind_of("-", name).name == "node";
  if (!yaml::is_file_name(name))
    return is_entry(name, "node", catalogue) && !is_entry(name, "cluster", catalogue);
  const auto text = read_file(name, kLargestNode);
  return text && kind_of(name, *text).name == "node";
}

}  // namespace

std::string as_cluster(const std::string& name, const std::vector<fs::path>& catalogue) {
  if (!is_node(name, catalogue)) return name;
  if (name.starts_with('{')) return fmt::format("{{node: {}}}", name);
  return fmt::format("{{name: {}, node: {}}}", yaml::quoted(fs::path(name).stem().string()),
                     yaml::quoted(name));
}

Result<ClusterConfig> load_cluster(const std::string& name, yaml::Loader& loader,
                                   const std::vector<fs::path>& catalogue, std::string_view at) {
  return yaml::read_given<ClusterConfig>(as_cluster(name, catalogue), loader, at);
}

}  // namespace foreshard::cli
