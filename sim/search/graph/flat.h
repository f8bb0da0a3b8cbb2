/// \file
/// Converts a graph with loops and conditions to one without, for the tables of a search. Each body
/// stands once in place of its loop or condition, and every operator has the number of times that
/// it is expected to run in a pass: the iterations of the loops around it times the probabilities
/// of its branches. An operator that costs c per iteration costs count * c, the same as unrolled
/// iterations that are all split alike. They have to be split alike, because annotations name
/// operators of the body.
///
///     y = loop(x) {h = up(x); y = down(h)}  ->  h = up(x); y = down(h), each `count` times;
///                                              y lies as x, which the next iteration reads
///
/// Not modelled: the randomness of branches (an expectation has no spread).
#pragma once

#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"

namespace foreshard::search {

struct FlatGraph {
  Graph graph{};  ///< The graph without bodies; names are unchanged.
  /// operator -> operator of the original graph's top level, e.g. its loop.
  std::vector<std::size_t> from{};
  std::vector<double> runs{};    ///< operator -> expected runs per pass.
  std::vector<double> copies{};  ///< operator -> copies of its parameters on a device.
  /// Pairs of tensors that must have the same layout: what an iteration passes to the next, and
  /// what that one reads; the results of the branches of a condition.
  std::vector<std::pair<TensorId, TensorId>> alike{};
};

/// Converts a graph. One without loops and conditions is returned unchanged.
/// \return kInvalidInput where operators or tensors of two bodies have the same name, so that
///     annotations could not distinguish them.
Result<FlatGraph> flat(const Graph& graph);

}  // namespace foreshard::search
