/// \file
/// A general graph cut into units: runs of consecutive operators, each a graph of its own. A unit
/// is to a general graph what a layer is to a transformer: stages of a pipeline hold several, ZeRO
/// 3 gathers the parameters of one at a time, and full recomputation begins at the inputs of one.
///
/// A unit's inputs are what it reads of earlier units, and of the inputs and the constants of the
/// whole graph. Its outputs are what later units read, whether it makes or only reads it: the
/// gradient of a tensor comes back through all of its readers, the last one first, each of which
/// adds its summand.
///
/// Inputs, outputs and parameters lie as propagation through the whole graph leaves them, but that
/// no unit hands summands to another: they are added up first.
/// Not modelled: a conversion of one tensor for readers in several units, made once (each unit
/// makes its own).
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "strategies/graph/backward.h"
#include "strategies/graph/sharding.h"

namespace foreshard {

struct GraphUnit {
  Graph graph{};                  ///< Named after its first operator; the only unit, as the graph.
  std::vector<TensorId> whole{};  ///< By tensor of `graph`: the same in the whole graph.
};

/// The units of a graph, of which all but the first begin with the operators `begins`, ascending.
std::vector<GraphUnit> cut(const ShardedGraph& whole, const std::vector<std::size_t>& begins);

/// The tensors that units before `unit` make and that it or later ones read, ascending.
std::vector<TensorId> handed_over(const std::vector<GraphUnit>& units, std::size_t unit);

struct UnitGradients {
  Graph backward{};            ///< Its outputs: gradients of the unit's inputs, for earlier units.
  std::set<TensorId> seeds{};  ///< Of its inputs: gradients that nothing behind the unit gives.
  /// Tensors of the whole graph whose gradients wait for the units before, when the backward pass
  /// of this one has ended.
  std::set<TensorId> handed{};
};

/// The backward graph of each unit, without what only the gradients of the whole graph's inputs
/// need: nobody asks for these.
/// \param forward  the sharded units.
std::vector<UnitGradients> gradients_of(const Graph& whole, const std::vector<GraphUnit>& units,
                                        const std::vector<ShardedGraph>& forward,
                                        const BackwardOptions& options);

/// Whether two graphs differ in names alone.
bool alike(const Graph& a, const Graph& b);

}  // namespace foreshard
