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

/// How many units a graph has if it is cut at `cuts`. A cut names the operator with which a unit
/// begins, or a module, which stands for its first operator ("/encoder/layer.1/MatMul" for
/// "/encoder/layer.1"; "gemm.product" for a node "gemm" that became several operators). If the
/// operator is a loop whose iterations have their own parameters and hand all results to the next
/// iteration, every iteration is a unit.
/// \return kInvalidInput if a name is not in the graph, if two names mean one operator, if no
///     operator precedes the cut, or if there are more than 10,000 units.
Result<std::int64_t> units_of(const Graph& graph, const std::vector<std::string>& cuts);

struct CutGraph {
  Graph graph{};  ///< The graph, with iterations of such loops written out one after another.
  /// Indices of the operators that begin a unit; the first unit's is left out.
  std::vector<std::size_t> begins{};
};
/// Cuts the graph at `cuts`.
/// \return errors as units_of().
Result<CutGraph> with_cuts(const Graph& graph, const std::vector<std::string>& cuts);

}  // namespace foreshard
