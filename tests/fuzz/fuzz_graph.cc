// Any bytes as a graph: an error with a place, or a graph whose tensors a rule fits and that can be
// distributed and trained, or is refused in words.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/graph_config.h"
#include "strategies/graph/operators/build.h"

FORESHARD_FUZZER(fuzz_graph) {
  using namespace foreshard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  yaml::Loader loader;
  const auto config = loader.read_text<GraphConfig>(text, "g.yaml");
  if (!config) return 0;
  const auto mesh = mesh_of(*config);
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh) ranks = ranks > 4096 ? ranks : ranks * axis.size;
  if (ranks > 4096) return 0;
  const auto graph = build_graph(*config, mesh, loader);
  if (!graph) {
    FORESHARD_CHECK(graph.error().message.find("g.yaml:") != std::string::npos);
    return 0;
  }
  for (const Operator& op : graph->operators) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back((*graph)[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back((*graph)[id].shape);
    FORESHARD_CHECK(misfit(op.rule, shapes).empty());
  }
  if (!mesh.empty()) (void)distribute(training_graph(*graph, {}), mesh);
  return 0;
}
