/// \file
/// A general graph as a block of the plan: its passes as blocks for each stretch of operators
/// between loops and conditions, and those of their bodies; what is kept between the passes; its
/// parameters.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "strategies/graph/sharding.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

struct GraphParameters {
  std::vector<plan::ParameterGroup> groups{};
  Bytes bytes{};  ///< Of these and of parameters that nothing flows back to, as they are stored.
  std::set<Axis> split_over{};
  std::vector<std::string> untrained{};  ///< Of a pass backward: those that it leaves out.
};

/// The passes through `forward`, named after its graph.
/// Not modelled: what a graph keeps outside of its loops and conditions if it has no operator
/// there.
/// \param backward    null: nothing is trained.
/// \param parameters  takes the parameters of the graph and its bodies.
LoweredBlock lower_graph_block(const ShardedGraph& forward, const ShardedGraph* backward,
                               const Strategy& strategy, GraphParameters& parameters);

}  // namespace foreshard::lower
