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
#include "strategies/program/lower/unit_block.h"

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

/// What a rank holds of the parameters of a unit and its bodies, without the parameters
/// `elsewhere`.
GraphParameters parameters_of(const UnitPasses& unit, const std::set<TensorId>& elsewhere);

/// The axes over which the gradient of one of the unit's own parameters is partial; nothing where
/// the parameter is not trained.
std::optional<std::vector<Axis>> gradient_axes(const UnitPasses& unit, TensorId parameter);

/// The passes through a unit, and its parameters.
LoweredBlock lower_graph_block(const UnitPasses& unit, const Strategy& strategy);

/// All units, sharded; each list has one entry per unit, in the order of the graph. Holds
/// references to the graph, and from member to member.
struct ShardedUnits {
  ShardedGraph whole{};
  std::vector<GraphUnit> units{};
  std::vector<ShardedGraph> forward{};
  std::vector<UnitGradients> gradients{};  ///< Empty where nothing is trained.
  std::vector<ShardedGraph> backward{};    ///< `gradients`, sharded.
  Recompute recompute = Recompute::kNone;
  Overlap backward_overlap{};
  LaunchCost launching{};

  const Graph& graph() const { return *whole.graph; }
  bool trains() const { return !gradients.empty(); }
  UnitPasses passes(std::size_t unit) const;
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
