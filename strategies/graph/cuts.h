/// \file
/// Where the units of a general graph (units.h) begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"

namespace foreshard {

/// How many units a graph has if it is cut where `cuts` say. A cut names the operator with which a
/// unit begins; or a module, for the first operator that is a part of it ("/encoder/layer.1/MatMul"
/// of "/encoder/layer.1", "gemm.product" of a node "gemm" that became several). Of a loop whose
/// iterations have their own parameters and hand all that they make to the next, every iteration is
/// a unit.
/// \return kInvalidInput where a name is none of the graph, where two name one operator, where
///     nothing is before it, or if there are more than 10,000.
Result<std::int64_t> units_of(const Graph& graph, const std::vector<std::string>& cuts);

struct CutGraph {
  Graph graph{};                      ///< With the iterations of such loops one after another.
  std::vector<std::size_t> begins{};  ///< The operators with which units begin, but for the first.
};
/// \return as units_of.
Result<CutGraph> with_cuts(const Graph& graph, const std::vector<std::string>& cuts);

}  // namespace foreshard
