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
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
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
bool equivalent(const Graph& a, const Graph& b);

}  // namespace foreshard
