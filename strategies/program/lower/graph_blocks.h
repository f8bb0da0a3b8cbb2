/// \file
/// A unit of a general graph as a block of the plan: its passes, what is kept between the passes,
/// and its parameters. A pass has a block for each stretch of operators between loops and
/// conditions, and blocks for the bodies of these.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategies/graph/sharding.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/block.h"
#include "strategies/reshard/mesh_planner.h"

namespace foreshard::lower {

struct GraphParameters {
  Bytes bytes{};   ///< Bytes of the parameters as stored.
  Bytes copied{};  ///< The part of `bytes` that is trained and copied on data-parallel ranks.
  /// Optimizer state of tables that are updated by rows: a number for each row (row-wise Adagrad).
  /// Source: pytorch/FBGEMM, fbgemm_gpu/docs, EmbOptimType.EXACT_ROWWISE_ADAGRAD.
  Bytes row_states{};
  std::set<Axis> split_over{};
  std::vector<std::string> untrained{};  ///< Parameters, not frozen, that no gradient reaches.
};

/// A unit of a general graph, sharded, with its backward pass.
struct GraphPasses {
  const ShardedGraph& forward;
  const ShardedGraph* backward = nullptr;  ///< Null: nothing is trained.
  std::set<TensorId> seeds{};              ///< UnitGradients::seeds.
  Recompute recompute = Recompute::kNone;  ///< kNone or kFull.
  /// Its backward pass can reduce gradients in buckets of the framework's size as they become ready
  /// (plan::ParameterGroup::reduced_inside); else all reductions are left to the plan.
  bool fills_buckets = true;
  reshard::MeshPlanner planner = reshard::steps_within;  ///< Planner of its conversions.
};

/// What a rank holds of the parameters of a unit and its bodies, without the parameters
/// `elsewhere`.
GraphParameters parameters_of(const GraphPasses& unit, const std::set<TensorId>& elsewhere);

/// The axes over which the gradient of one of the unit's own parameters is partial; nothing where
/// the parameter is not trained.
std::optional<std::vector<Axis>> gradient_axes(const GraphPasses& unit, TensorId parameter);

/// The passes through a unit, named after its graph.
/// Not modelled: what a graph keeps outside its loops and conditions if it has no operator there.
LoweredBlock lower_graph_block(const GraphPasses& unit, const Strategy& strategy);

}  // namespace foreshard::lower
