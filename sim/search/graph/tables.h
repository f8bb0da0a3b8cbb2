/// \file
/// A graph on one mesh as a problem of choices (problem.h, R3.5). Variables are its operators,
/// whose options are all legal ways to split them; its activations, whose options are the ways in
/// which they may lie between the operators that make and read them; and parameters that several
/// operators read, which must want them alike.
///
///     cost = passes * (kernels forward and backward + conversions forward and backward)
///          + reductions of the gradients of parameters + the optimizer's update        (of a step)
///     load = parameters, gradients, optimizer states + activations kept for the backward pass
///
/// passes = micro-batches. In a pipeline every operator is on the devices of its stage, for as many
/// micro-batches as a pass of the stage takes. What costs t_s a pass and o_s a step on stage s
/// makes
///
///     step = sum_s n_s t_s + (rounds - 1) max_s n_s t_s + max_s o_s,
///
/// where in a round every stage takes the micro-batches of the pass that takes most, in n_s passes:
/// the slowest stage sets the pace, and the others are gone through once before and behind it. That
/// is no sum, but the largest of one for each stage (pipeline.h). Conversions cost
/// what the reshard planner's fastest series takes on idle links of the cluster. The gradient of an
/// activation is what its readers leave, summands over some axes or not, added up and then
/// converted once to what its producer's backward pass reads.
///
/// Not modelled: what runs at the same time (communication beside computation), the host's time,
/// forward summands that stay so over several operators, one conversion for several readers that
/// want a tensor alike unless it lies so, transient memory, links that transfers between stages
/// share. Simulations of the best count all that.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

#include "sim/search/graph/problem.h"
#include "strategies/cost/cost_model.h"
#include "strategies/graph/graph.h"
#include "strategies/graph/splits.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/reshard/placement.h"

namespace foreshard::search {

/// On what a graph is to be split.
struct MeshOfGraph {
  std::vector<MeshAxis> axes{};  ///< Of the study; "pipeline" splits no operator.
  const CostModel* cost = nullptr;
  reshard::Placement placement{};  ///< Of the ranks of the first stage, in the mesh's order.
  /// Of a pipeline: the devices of each stage's ranks, in that order; the stage of each operator;
  /// samples in the graph's shapes. Empty: every stage has an equal part of each operator, and is
  /// on devices like the first one's.
  std::vector<std::vector<std::int32_t>> devices_of_stage{};
  std::vector<std::size_t> stage_of{};
  std::int64_t batch = 1;
  /// Of a graph with loops and conditions, as FlatGraph (flat.h) has them; empty: 1 each, none.
  std::vector<double> runs{};
  std::vector<double> copies{};
  std::vector<std::pair<TensorId, TensorId>> alike{};
};

/// How an activation may lie, and the summands that its gradient is added up as.
struct TensorState {
  Attribute lies{};
  Attribute gradient{};
  bool operator==(const TensorState&) const = default;
};

struct Tables {
  /// Costs in seconds, loads in bytes; no limit. Of a pipeline: weighted() with equal parts.
  Problem problem{};
  std::vector<std::size_t> variable_of{};     ///< By operator.
  std::vector<std::vector<Splits>> splits{};  ///< By operator and option.
  std::vector<std::optional<std::size_t>> variable_of_tensor{};
  std::vector<std::vector<TensorState>> states{};  ///< By tensor and option.

  // Of a pipeline:
  Problem pass{};                              ///< With the costs of a pass.
  std::vector<std::vector<double>> once{};     ///< Costs of a step, by variable and option.
  std::vector<std::vector<double>> forward{};  ///< Of `pass`, kernels of the forward pass.
  std::vector<std::size_t> stage_of{};  ///< By variable; pairs are of the stage of their `a`.
  /// By stage: of a round. Where transfers run beside passes, those between stages follow, each as
  /// a stage whose passes are messages.
  std::vector<double> passes{};
  double rounds = 1;

  std::size_t stages() const { return passes.empty() ? 1 : passes.size(); }
  /// The sum for each stage, each taken so much (together 1): no step of a choice costs less.
  Problem weighted(const std::vector<double>& parts) const;
};

/// \pre the graph has no bodies; distribute() takes it unannotated, and for the micro-batches of
/// each stage's passes (rebatch.h).
Tables tables_of(const Graph& graph, const Strategy& strategy, const MeshOfGraph& mesh);

}  // namespace foreshard::search
