// Studies of graphs for tests of their search.
#pragma once

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/study.h"

namespace foreshard::search {

inline constexpr const char* kBox = "{name: box, node: dgx-h100}";

/// `strategy` is YAML in braces. \param graph  a name of configs/graphs, or the text of a graph.
inline study::LoadedStudy graph_study(const std::string& graph, const std::string& strategy,
                                      const std::string& cluster = kBox,
                                      const std::string& more = "") {
  const TemporaryFolder folder;
  std::string file = FORESHARD_SOURCE_DIR "/configs/graphs/" + graph + ".yaml";
  if (graph.find('\n') != std::string::npos) file = folder.write("graph.yaml", graph).string();
  const auto path = folder.write("study.yaml", "cluster: " + cluster + "\ngraph: {file: " + file +
                                                   more + "}\nstrategy: " + strategy + "\n");
  return value_of(study::load_study({.study = path, .sizes_matter = false}, shipped_options()));
}

}  // namespace foreshard::search
