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
/// passes = micro-batches, in a pipeline of p stages (micro-batches + p - 1) / p. Conversions cost
/// what the reshard planner's fastest series takes on idle links of the cluster. The gradient of an
/// activation is what its readers leave, summands over some axes or not, added up and then
/// converted once to what its producer's backward pass reads.
///
/// Not modelled: what runs at the same time (communication beside computation), the host's time,
/// forward summands that stay so over several operators, one conversion for several readers that
/// want a tensor alike unless it lies so, transient memory; that stages of a pipeline are on other
/// devices than the first one's, whose kinds and links price all. Simulations of the best count all
/// that.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
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
};

/// How an activation may lie, and the summands that its gradient is added up as.
struct TensorState {
  Attribute lies{};
  Attribute gradient{};
  bool operator==(const TensorState&) const = default;
};

struct Tables {
  Problem problem{};                          ///< Costs in seconds, loads in bytes; no limit.
  std::vector<std::size_t> variable_of{};     ///< By operator.
  std::vector<std::vector<Splits>> splits{};  ///< By operator and option.
  std::vector<std::optional<std::size_t>> variable_of_tensor{};
  std::vector<std::vector<TensorState>> states{};  ///< By tensor and option.
};

/// \pre the graph has no bodies; distribute() takes it unannotated.
Tables tables_of(const Graph& graph, const Strategy& strategy, const MeshOfGraph& mesh);

}  // namespace foreshard::search
