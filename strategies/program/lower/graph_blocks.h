/// \file
/// A unit of a general graph as a block of the plan: its passes as blocks for each stretch of
/// operators between loops and conditions, and those of their bodies; what is kept between the
/// passes; its parameters.
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
  Bytes bytes{};   ///< As they are stored.
  Bytes copied{};  ///< Of these: of what data-parallel ranks hold copies of, if they train it.
  /// Of tables that are updated by rows: a number for each row (row-wise Adagrad). Source:
  /// pytorch/FBGEMM, fbgemm_gpu/docs, EmbOptimType.EXACT_ROWWISE_ADAGRAD.
  Bytes row_states{};
  std::set<Axis> split_over{};
  std::vector<std::string> untrained{};  ///< Those that nothing flows back to.
};

/// A unit of a general graph, sharded, with its backward pass.
struct GraphPasses {
  const ShardedGraph& forward;
  const ShardedGraph* backward = nullptr;  ///< Null: nothing is trained.
  std::set<TensorId> seeds{};              ///< As in UnitGradients.
  Recompute recompute = Recompute::kNone;  ///< kNone or kFull.
  /// Its backward pass can reduce gradients in buckets of the framework's size, as they come; else
  /// they are all left to the plan (plan::ParameterGroup::reduced_inside).
  bool fills_buckets = true;
  reshard::MeshPlanner planner = reshard::steps_within;  ///< Of its conversions.
};

/// What a rank holds of the parameters of a unit and its bodies, but for `elsewhere`.
GraphParameters parameters_of(const GraphPasses& unit, const std::set<TensorId>& elsewhere);

/// The axes over which the gradient of one of the unit's own parameters is partial; nothing where
/// the parameter is not trained.
std::optional<std::vector<Axis>> gradient_axes(const GraphPasses& unit, TensorId parameter);

/// The passes through a unit, named after its graph.
/// Not modelled: what a graph keeps outside of its loops and conditions if it has no operator
/// there.
LoweredBlock lower_graph_block(const GraphPasses& unit, const Strategy& strategy);

}  // namespace foreshard::lower
