// A rule of thumb for graphs (internal/rules.h, a row of the table in rules.cc): embedding tables
// are split by rows. A graph without tables does not have the pattern.
#include <algorithm>
#include <utility>

#include "sim/search/graph/internal/rules.h"

namespace foreshard::search::internal {

std::optional<std::vector<Annotation>> table_rows(const Graph& graph,
                                                  const std::vector<MeshAxis>& mesh,
                                                  std::int64_t batch) {
  auto annotations = data_parallel(graph, mesh, batch);
  if (!annotations || annotations->empty() || annotations->front().dims.empty())
    return std::nullopt;
  const std::string all = annotations->front().dims.front();
  std::int64_t ways = 1;
  for (const MeshAxis& axis : mesh)
    if (axis.name != "pipeline") ways *= axis.size;
  bool found = false;
  for (const Operator& op : graph.operators) {
    if (op.type != "embedding") continue;
    const Tensor& table = graph[op.inputs[1]];
    if (table.shape.empty() || table.shape[0] % ways != 0) continue;
    const auto one = std::ranges::find(*annotations, table.name, &Annotation::tensor);
    if (one == annotations->end()) continue;
    one->dims[0] = all;
    found = true;
  }
  if (!found) return std::nullopt;
  return annotations;
}

}  // namespace foreshard::search::internal
