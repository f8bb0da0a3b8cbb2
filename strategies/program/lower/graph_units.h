/// \file
/// The units of a general graph (strategies/graph/units.h) under a strategy: each sharded, with its
/// backward pass, and what they share.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/units.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/calls.h"
#include "strategies/reshard/within_mesh.h"

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

/// All units, sharded; each list has one entry per unit, in the order of the graph. Holds
/// references to the graph, and from member to member.
struct ShardedUnits {
  ShardedGraph whole{};
  std::vector<GraphUnit> units{};
  std::vector<ShardedGraph> forward{};
  std::vector<UnitGradients> gradients{};  ///< Empty where nothing is trained.
  std::vector<ShardedGraph> backward{};    ///< `gradients`, sharded.
  Recompute recompute = Recompute::kNone;

  const Graph& graph() const { return *whole.graph; }
  bool trains() const { return !gradients.empty(); }
  GraphPasses passes(std::size_t unit) const;
};

/// \return as lower_graph.
Result<ShardedUnits> sharded_units(const CutGraph& graph, const std::vector<MeshAxis>& mesh,
                                   const Strategy& strategy);

/// The pieces of a pipeline, by Strategy::layers_per_stage.
std::vector<plan::UnitRange> pieces_of(const Strategy& strategy, std::size_t units);

/// What each unit keeps from its forward to its backward pass. A tensor that several units of a
/// piece keep is counted for the first of them.
std::vector<Bytes> activations_of(const ShardedUnits& units,
                                  const std::vector<plan::UnitRange>& pieces);

/// What each unit holds of its parameters. A parameter that several units of a piece read is
/// counted for the first of them.
std::vector<GraphParameters> parameters_of(const ShardedUnits& units,
                                           const std::vector<plan::UnitRange>& pieces);

/// The parameters that the first and the last unit both train, if there are any.
/// \return kUnsupported where other units share a trained parameter, and where the gradients of a
///     shared parameter are reduced over different axes.
Result<std::optional<plan::TiedWeights>> tie_of(const ShardedUnits& units);

/// A tensor by name, and the form in which it passes from one piece to the next.
struct NamedBoundary {
  std::string name{};
  Boundary boundary{};
};
/// What each piece hands to the next one.
/// \return kUnsupported where a piece hands on nothing or, in training, nothing with a gradient.
Result<std::vector<std::vector<NamedBoundary>>> boundaries_of(
    const ShardedUnits& units, const std::vector<plan::UnitRange>& pieces);

/// Whether the passes through two units differ in names only.
bool equivalent(const ShardedUnits& units, std::size_t a, std::size_t b);

}  // namespace foreshard::lower
