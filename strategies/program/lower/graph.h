/// \file
/// Any operator graph + strategy -> Program: the graph is distributed from its annotations, its
/// backward pass made and distributed likewise; both are cut into the units of a step plan
/// (strategies/graph/units.h). Gradients are reduced over the axes that they are partial on.
///
///  - Loops are blocks that are called as often as they run. A condition takes one branch per
///    micro-batch and iteration of the loops around it, drawn with its probability from `seed`;
///    `model_flops` counts the expected work.
///  - Training needs a gradient to begin with: outputs of more than one element get one that is
///    written once, as a loss outside the graph would. Gradients of the graph's own inputs are not
///    computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/plan/step_plan.h"
#include "strategies/program/ir/program.h"
#include "strategies/reshard/placement.h"

namespace foreshard::lower {

struct GraphOptions {
  std::vector<MeshAxis> axes{};     ///< Beside tensor, data and pipeline; these vary slowest.
  std::vector<std::string> cuts{};  ///< Where units begin, as in strategies/graph/cuts.h.
  double tokens_per_sample = 0;     ///< For throughput figures.
  /// Samples in the graph's shapes: what stages with a granularity take a multiple of.
  std::int64_t batch = 1;
  std::uint64_t seed = 1;  ///< Of the branches that are drawn.
  Seconds launch_time{};   ///< As in LowerOptions.
  /// Chooses the primitives of conversions by their time on the ranks of the first stage; null: by
  /// their bytes. `placement` has a device for each of those ranks.
  const CostModel* cost = nullptr;
  reshard::Placement placement{};
};

struct LoweredGraph {
  plan::StepPlan plan{};
  program::Program program{};
  std::vector<std::string> remarks{};  ///< What was decided on the way, for people.
};

/// The Program of one step of the annotated `graph` (annotate.h), whose shapes are those of one
/// micro-batch over all ranks.
///
/// Not modelled: places for gradients that products add up themselves, and that of the gradient
/// that a stage receives next (resident.h counts both for models); running statistics of batch
/// norm, copying inputs to the device; in a pipeline, one message for each tensor that is handed on
/// (they go in one), and the memory of those that a stage hands on without reading them.
/// \pre faults_in_graph is empty.
/// \return kInvalidInput where annotations contradict the operators, or split a tensor over the
///     stages of a pipeline, where a unit begins where none can, or where a stage takes several
///     micro-batches in a pass and the graph cannot be taken for so many (rebatch.h); kUnsupported
///     where slices of unequal size would have to be converted, where ZeRO 2 or 3 would make
///     parameters or gradients whole for a pass that is a loop alone, where units share a parameter
///     that is trained (other than the first and the last one), or where nothing passes from one
///     stage of a pipeline to the next.
Result<LoweredGraph> lower_graph(const Graph& graph, const Strategy& strategy,
                                 const GraphOptions& options);

/// Arithmetic of the matrix products, convolutions and attention of a forward pass, whole shapes,
/// branches by their probability.
Flops product_flops(const Graph& graph);

}  // namespace foreshard::lower
