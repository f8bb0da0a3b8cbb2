/// \file
/// Any operator graph + strategy -> Program. The graph is distributed as its annotations say; its
/// backward pass is made from it and distributed in the same way; both are cut into the units of a
/// step plan (strategies/graph/units.h). Gradients are reduced over the axes on which they are
/// partial.
///
///  - Loops are blocks that are called as often as they run. A condition takes one branch per
///    micro-batch and iteration of the loops around it, drawn with its probability from `seed`;
///    `model_flops` counts the expected work.
///  - Training needs a gradient to start from: each output of more than one element gets a gradient
///    that is written once, as a loss outside the graph would do. Gradients of the graph's own
///    inputs are not computed.
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
#include "strategies/reshard/plan.h"

namespace foreshard::lower {

struct GraphOptions {
  std::vector<MeshAxis> axes{};     ///< Axes besides tensor, data and pipeline; they vary slowest.
  std::vector<std::string> cuts{};  ///< Places where units begin (strategies/graph/units.h).
  double tokens_per_sample = 0;     ///< Tokens per sample, for throughput figures.
  /// Samples in the graph's shapes; stages with a granularity take a multiple of these in a pass.
  std::int64_t batch = 1;
  std::uint64_t seed = 1;  ///< Seed of the branches that conditions take.
  Seconds launch_time{};   ///< LowerOptions::launch_time.
  /// Chooses the primitives of conversions by their time on the ranks of the first stage; null:
  /// they are chosen by their bytes. `placement` has a device for each rank of the first stage.
  const CostModel* cost = nullptr;
  reshard::Placement placement{};
};

struct LoweredGraph {
  plan::StepPlan plan{};
  program::Program program{};
  std::vector<std::string> remarks{};  ///< Decisions made on the way, for people.
};

/// The Program of one step of the annotated `graph` (annotate.h), whose shapes hold one
/// micro-batch of all ranks.
///
/// Not modelled: memory for placeholders of gradients that products add up themselves, and for the
/// gradient that a stage sent last (lower.h counts both for models); running statistics of batch
/// norm; copying inputs to the device; in a pipeline, one message for each tensor that is handed on
/// (they go in one message), and the memory of tensors that a stage hands on without reading them.
/// \pre faults_in_graph is empty.
/// \return kInvalidInput where annotations contradict the operators or split a tensor over the
///     stages of a pipeline, where a unit begins where none can, or where a stage takes several
///     micro-batches in a pass and the graph cannot be rebatched for them (rebatch.h); kUnsupported
///     where slices of unequal size would have to be converted, where ZeRO 2 or 3 would make
///     parameters or gradients whole for a pass that is only a loop, where units share a parameter
///     that is trained (other than the first and the last one), or where nothing passes from one
///     stage of a pipeline to the next.
Result<LoweredGraph> lower_graph(const Graph& graph, const Strategy& strategy,
                                 const GraphOptions& options);

}  // namespace foreshard::lower
