/// \file
/// A graph with loops and conditions as one without, for the tables of a search: each body stands
/// once where its loop or condition stood, and every operator has a number, how often it is
/// expected to run in a pass: the iterations of the loops around it times the probabilities of its
/// branches. What costs c in an iteration costs count * c, which is what the iterations written out
/// cost where all are split alike; so they have to be, since annotations name operators of the
/// body.
///
///     y = loop(x) {h = up(x); y = down(h)}  ->  h = up(x); y = down(h), each `count` times;
///                                              y lies as x, which the next iteration reads
///
/// Not modelled: that branches are drawn (an expectation has no spread).
#pragma once

#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"

namespace foreshard::search {

struct FlatGraph {
  Graph graph{};                    ///< Without bodies; names as in these.
  std::vector<std::size_t> from{};  ///< By operator: that of the whole graph, its loop for example.
  std::vector<double> runs{};       ///< By operator.
  std::vector<double> copies{};     ///< By operator: of its parameters, on a device.
  /// Tensors that lie alike: what an iteration hands to the next and what that reads; what the
  /// branches of a condition make in turn.
  std::vector<std::pair<TensorId, TensorId>> alike{};
};

/// A graph without loops and conditions is itself.
/// \return kInvalidInput where operators or tensors of two bodies have one name, which annotations
///     could not tell apart.
Result<FlatGraph> flat(const Graph& graph);

}  // namespace foreshard::search
