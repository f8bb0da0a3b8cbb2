/// \file
/// A sharded graph carried out on arrays in memory, rank by rank (R4.7): every operator on the
/// slices that its rank holds, every conversion by the steps that lowering emits for it. The serial
/// run is the same on a mesh of one rank.
///
///     Tensors tensors;                                  // parameters and inputs, as they lie
///     run(sharded, {.mesh = mesh}, tensors);            // now all that the graph produces, too
#pragma once

#include <functional>
#include <map>

#include "base/result.h"
#include "tests/oracle/operators.h"
#include "tests/oracle/shards.h"

#include "strategies/graph/distribute.h"

namespace foreshard::execute {

/// A tensor as the ranks of a mesh hold it.
struct Distributed {
  Attribute attribute{};
  Shards<double> shards{};
};

using Tensors = std::map<TensorId, Distributed>;

struct GraphRun {
  /// The ranks; its axes are those of the sharded graph's mesh.
  ProcessMesh mesh{};
  KernelContext context{};  ///< `first_summand` is set for each rank by itself.
  /// Runs these operators (by index) only; all if empty.
  std::function<bool(std::size_t)> wanted{};
};

/// Runs the operators in order, each on every rank before the next. `tensors` holds what they read
/// and no operator before them makes; their results are added, as their producers and pins leave
/// them. Conversions are done once for all readers, by `convert`.
/// \return the first reason why the graph cannot be run: a tensor that no operator made, or one
///     whose layout is not that of the graph.
Status run(const ShardedGraph& sharded, const GraphRun& how, Tensors& tensors);

/// The same tensor as `to`, by reshard::steps_within: the steps that lowering emits.
Shards<double> convert(const Shards<double>& shards, const Shape& shape, const Attribute& from,
                       const Attribute& to, const ProcessMesh& mesh);

}  // namespace foreshard::execute
