// A rule of thumb for graphs (internal/rules.h, a row of the table in rules.cc): what a study
// without annotations does.
#include "sim/search/graph/internal/rules.h"

namespace foreshard::search::internal {

std::optional<std::vector<Annotation>> megatron(const Graph& /*graph*/,
                                                const std::vector<MeshAxis>& /*mesh*/,
                                                std::int64_t /*batch*/) {
  return std::vector<Annotation>{};
}

}  // namespace foreshard::search::internal
