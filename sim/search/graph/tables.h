/// \file
/// A graph on one mesh as a problem of choices (problem.h, R3.5). Its variables are: operators,
/// whose options are all legal ways to split them; activations, whose options are the layouts that
/// they may have between the operators that make and read them; and parameters that several
/// operators read, which must all need the same layout.
///
///     cost = passes * (kernels forward and backward + conversions forward and backward)
///          + reductions of the gradients of parameters + the optimizer's update        (of a step)
///     load = parameters, gradients, optimizer states + activations kept for the backward pass
///
/// passes = micro-batches. In a pipeline every operator is on the devices of its stage, and a pass
/// has as many micro-batches as the stage takes at a time. If stage s costs t_s per pass and o_s
/// per step, then
///
///     step = sum_s n_s t_s + (rounds - 1) max_s n_s t_s + max_s o_s,
///
/// where a round is the number of micro-batches in the largest pass of any stage, which stage s
/// takes in n_s passes: the slowest stage sets the pace, and the other stages are passed once
/// before and after it. The step is thus not one sum but the largest of several, one per stage
/// (pipeline.h). A conversion costs as much as the reshard planner's fastest series of primitives
/// on idle links of the cluster. The gradient of an activation is the sum of what its readers
/// leave, as partial sums over some axes or not, and is then converted once to the layout that its
/// producer's backward pass reads.
///
/// Not modelled: overlap of communication and computation; the host's time; forward partial sums
/// that pass through several operators; one conversion for several readers that need the same
/// layout, unless the tensor has that layout itself; transient memory; links that transfers between
/// stages share. The simulations of the best plans have all that.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

#include "sim/search/graph/problem.h"
#include "strategies/cost/cost_model.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/reshard/plan.h"

namespace foreshard::search {

/// The mesh on which a graph is split.
struct MeshOfGraph {
  std::vector<MeshAxis> axes{};  ///< The mesh's axes; "pipeline" splits no operator.
  const CostModel* cost = nullptr;
  reshard::Placement placement{};  ///< Devices of the first stage's ranks, in the mesh's order.
  /// For a pipeline: stage -> devices of its ranks, in the same order; operator -> stage; and the
  /// samples in the graph's shapes. Empty: every stage has an equal part of each operator, on
  /// devices like the first stage's.
  std::vector<std::vector<std::int32_t>> devices_of_stage{};
  std::vector<std::size_t> stage_of{};
  std::int64_t batch = 1;
  /// For a graph with loops and conditions: the members of FlatGraph (flat.h). Empty: 1 for every
  /// operator (`runs`, `copies`), or no pairs (`alike`).
  std::vector<double> runs{};
  std::vector<double> copies{};
  std::vector<std::pair<TensorId, TensorId>> alike{};
};

/// A layout that an activation may have, and the layout (maybe with partial sums) in which its
/// gradient is added up.
struct TensorState {
  Attribute layout{};
  Attribute gradient{};
  bool operator==(const TensorState&) const = default;
};

struct Tables {
  /// Costs in seconds, loads in bytes; no limit. For a pipeline: weighted() with equal parts.
  Problem problem{};
  std::vector<std::size_t> variable_of{};     ///< operator -> variable.
  std::vector<std::vector<Splits>> splits{};  ///< operator -> option -> splits.
  std::vector<std::optional<std::size_t>> variable_of_tensor{};
  std::vector<std::vector<TensorState>> states{};  ///< tensor -> option -> state.

  // The stages of a pipeline. Without one there is one stage, and `pass` is empty.
  Problem pass{};                              ///< The problem with the costs of a pass.
  std::vector<std::vector<double>> once{};     ///< variable -> option -> cost per step.
  std::vector<std::vector<double>> forward{};  ///< variable -> option -> forward kernels in `pass`.
  std::vector<std::size_t> stage_of{};  ///< variable -> stage; a pair is on the stage of its `a`.
  /// stage -> passes per round. Where transfers run beside passes, the crossings between stages
  /// follow, each as a stage whose passes are messages.
  std::vector<double> passes{};
  double rounds = 1;

  std::size_t stages() const { return passes.empty() ? 1 : passes.size(); }
  /// The sums of the stages, each weighted by its part (the parts sum to 1): a lower bound of the
  /// step of every choice.
  Problem weighted(const std::vector<double>& parts) const;
};

/// \pre the graph has no bodies; distribute() accepts it without annotations, also for the
///     micro-batches of each stage's passes (rebatch.h).
Tables tables_of(const Graph& graph, const Strategy& strategy, const MeshOfGraph& mesh);

}  // namespace foreshard::search
