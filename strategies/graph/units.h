/// \file
/// A general graph cut into units: runs of consecutive operators, each a graph of its own. Units
/// correspond to the layers of a transformer: a pipeline stage holds several, ZeRO 3 gathers the
/// parameters of one at a time, and full recomputation begins at the inputs of one.
///
/// A unit's inputs are the tensors that it reads from earlier units, and the inputs and constants
/// of the whole graph that it reads. Its outputs are the results of operators that it makes or
/// reads, and that later units read or that are outputs of the whole graph. A tensor that it only
/// reads is included because its gradient comes back through all of its readers, the last one
/// first, and each adds its summand.
///
/// Inputs, outputs and parameters lie as propagation through the whole graph leaves them, except
/// that no unit hands summands to another: they are reduced first.
/// Not modelled: one conversion of a tensor for readers in several units (each unit makes its own).
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "strategies/graph/backward.h"
#include "strategies/graph/sharding.h"

namespace foreshard {

struct GraphUnit {
  Graph graph{};  ///< Named after its first operator; a single unit keeps the graph's name.
  std::vector<TensorId> whole{};  ///< Tensor of `graph` -> the same tensor in the whole graph.
};

/// The units of a graph. All but the first begin with the operators `begins`, which ascend.
std::vector<GraphUnit> cut(const ShardedGraph& whole, const std::vector<std::size_t>& begins);

/// The tensors that units before `unit` make and that it or later units read, ascending.
std::vector<TensorId> handed_over(const std::vector<GraphUnit>& units, std::size_t unit);

struct UnitGradients {
  Graph backward{};            ///< Backward graph; outputs are gradients of the unit's inputs.
  std::set<TensorId> seeds{};  ///< Inputs of `backward`: gradients that no later unit provides.
  /// Tensors of the whole graph whose gradients are held for earlier units when the backward pass
  /// of this unit has ended.
  std::set<TensorId> handed{};
};

/// The backward graph of each unit, without operators that only gradients of the whole graph's
/// inputs need (nothing reads these gradients).
/// \param forward  the sharded units.
std::vector<UnitGradients> gradients_of(const Graph& whole, const std::vector<GraphUnit>& units,
                                        const std::vector<ShardedGraph>& forward,
                                        const BackwardOptions& options);

/// Whether two graphs are equal except for names.
bool alike(const Graph& a, const Graph& b);

}  // namespace foreshard
