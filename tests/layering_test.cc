// The dependency rule, enforced: a file may include its own layer and those below it, never a layer
// above, and never another module's internal/. Adding a layer means editing this list in review.
#include <array>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <regex>
#include <string>

namespace foreshard {
namespace {

namespace fs = std::filesystem;

// Lowest first. A longer prefix wins over a shorter one.
constexpr std::array kLayers{
    "base/",
    "base/digest/",
    "base/yaml/",
    "topology/",
    "strategies/program/ir/",
    "strategies/graph/",
    "strategies/parallelism/",
    "strategies/cost/",
    "strategies/comm/",
    "strategies/reshard/",
    "strategies/schedule/",
    "strategies/program/lower/",
    "strategies/export/",
    "strategies/search/",
    "sim/compute/",
    "sim/engine/",
    "sim/memory/",
    "sim/simulate/",
    "sim/study/",
    "sim/report/",
    "validate/",
    "cli/",
};

std::optional<std::size_t> layer_of(const std::string& path) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    const std::string prefix = kLayers[i];
    if (path.starts_with(prefix) && (!best || prefix.size() > std::string(kLayers[*best]).size()))
      best = i;
  }
  return best;
}

TEST(Layering, NoIncludePointsUpwards) {
  const std::regex include(R"re(^\s*#\s*include\s+"([^"]+)")re");
  for (const fs::path root = FORESHARD_SOURCE_DIR;
       const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string file = fs::relative(entry.path(), root).generic_string();
    const auto from = layer_of(file);
    if (!from || !entry.is_regular_file()) continue;
    std::ifstream text(entry.path());
    std::smatch match;
    for (std::string line; std::getline(text, line);) {
      if (!std::regex_search(line, match, include)) continue;
      const std::string target = match[1];
      const auto to = layer_of(target);
      if (!to) continue;
      EXPECT_LE(*to, *from) << file << " includes " << target << ", a layer above it";
      const auto internal = target.find("/internal/");
      EXPECT_TRUE(internal == std::string::npos || file.starts_with(target.substr(0, internal)))
          << file << " includes " << target << ", private to another module";
    }
  }
}

}  // namespace
}  // namespace foreshard
