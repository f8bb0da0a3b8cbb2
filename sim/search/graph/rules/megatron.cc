#include "sim/search/graph/internal/rules.h"

namespace foreshard::search::internal {

std::optional<std::vector<Annotation>> megatron(const Graph& /*graph*/,
                                                const std::vector<MeshAxis>& /*mesh*/,
                                                std::int64_t /*batch*/) {
  return std::vector<Annotation>{};
}

}  // namespace foreshard::search::internal
