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
  Bytes bytes{};  ///< As they are stored.
  std::set<Axis> split_over{};
  std::vector<std::string> untrained{};  ///< Those that nothing flows back to.
};

/// What a rank holds of the parameters of a graph and its bodies.
/// \param backward  null: nothing is trained.
GraphParameters parameters_of(const ShardedGraph& forward, const ShardedGraph* backward);

/// The passes through `forward`, named after its graph.
/// Not modelled: what a graph keeps outside of its loops and conditions if it has no operator
/// there.
/// \param backward  null: nothing is trained.
LoweredBlock lower_graph_block(const ShardedGraph& forward, const ShardedGraph* backward,
                               const Strategy& strategy);

}  // namespace foreshard::lower
