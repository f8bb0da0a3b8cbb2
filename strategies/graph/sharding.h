/// \file
/// A sharded graph: every operator has one assignment of mesh axes to its factors; where a tensor
/// does not lie as its consumer needs it, a conversion is noted, once per distinct need.
/// distribute() (distribute.h) makes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/graph/graph.h"

namespace foreshard {

/// A conversion: `tensor` lies as `from`, but is needed as `to`.
struct Conversion {
  TensorId tensor;
  Attribute from;
  Attribute to;
};

struct ShardedOperator {
  /// Operand (inputs, then outputs) -> the attribute with which the operator computes.
  std::vector<Attribute> operands;
  /// Conversions of its inputs, done before it; indices into ShardedGraph::conversions.
  std::vector<std::int32_t> conversions;
};

struct ShardedGraph {
  const Graph* graph = nullptr;
  std::vector<MeshAxis> mesh;
  std::vector<ShardedOperator> operators;  ///< Same order as Graph::operators.
  /// Tensor -> its attribute after its producer and after the conversion to its pin.
  std::vector<Attribute> attributes;
  std::vector<Conversion> conversions;
  /// Operator -> conversions (indices) that follow it, for outputs that are to lie otherwise than
  /// it makes them.
  std::vector<std::vector<std::int32_t>> after_operator;
  std::vector<ShardedGraph> bodies{};  ///< Sharded Graph::bodies, in order.
  std::vector<std::string> remarks{};  ///< Conflicts, and how they were resolved.
};

}  // namespace foreshard
