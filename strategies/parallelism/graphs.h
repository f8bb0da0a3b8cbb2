/// \file
/// Builds from a strategy and a model the mesh of ranks and the operator graphs whose tensors are
/// laid out on it. Lowering runs the graphs; parameters.h reads the layout of parameters from them.
#pragma once

#include <vector>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/transformer.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// Axes "tensor", "data" and "pipeline" in the strategy's order, the fastest first, then `others`.
/// Where shards have replicas, "data" has the ranks of one set of shards, and "replica" follows it.
/// The axes of context parallelism precede "data". An axis within which a group of experts ends is
/// cut into several (mesh_axes.h).
std::vector<MeshAxis> mesh_of(const Strategy& strategy, const std::vector<MeshAxis>& others = {});

/// The options with which a strategy builds the graphs of a model.
TransformerOptions transformer_options(const Strategy& strategy);

/// The options with which a strategy builds the backward graphs.
BackwardOptions backward_options(const Strategy& strategy);

/// Whether the steps of this strategy have a backward pass.
BackwardPass backward_pass(const Strategy& strategy);

/// Embedding, layer and head of one step.
/// \pre faults_in(strategy, model, ...) is empty.
TransformerGraphs graphs_of(const Model& model, const Strategy& strategy);

}  // namespace foreshard
