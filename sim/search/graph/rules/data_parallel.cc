// A rule of thumb for graphs (internal/rules.h, a row of the table in rules.cc): the batch is split
// over every axis, parameters are whole on every rank.
#include <string>

#include "sim/search/graph/internal/rules.h"

namespace foreshard::search::internal {

std::optional<std::vector<Annotation>> data_parallel(const Graph& graph,
                                                     const std::vector<MeshAxis>& mesh,
                                                     std::int64_t batch) {
  std::string all;
  std::int64_t ways = 1;
  for (const MeshAxis& axis : mesh) {
    if (axis.size == 1 || axis.name == "pipeline") continue;
    all += (all.empty() ? "" : "+") + axis.name;
    ways *= axis.size;
  }
  if (all.empty() || batch % ways != 0) return std::nullopt;
  std::vector<Annotation> annotations;
  for (const TensorId id : graph.inputs) {
    const Tensor& tensor = graph[id];
    if (tensor.shape.empty() || tensor.shape[0] != batch) continue;
    Annotation one{.tensor = tensor.name,
                   .dims = std::vector<std::string>(tensor.shape.size(), "-")};
    one.dims[0] = all;
    annotations.push_back(std::move(one));
  }
  for (const Tensor& tensor : graph.tensors)
    if (tensor.role == TensorRole::kParameter)
      annotations.push_back(
          {.tensor = tensor.name, .dims = std::vector<std::string>(tensor.shape.size(), "-")});
  return annotations;
}

}  // namespace foreshard::search::internal
