/// \file
/// A sharded graph: every operator has one assignment of mesh axes to its factors (R2.2, R4.1);
/// where a tensor does not lie as its consumer needs it, a conversion is noted (R2.3, R4.2), once
/// per distinct need. distribute() (distribute.h) makes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/graph/graph.h"

namespace foreshard {

/// `tensor` is needed as `to` although it lies as `from`.
struct Conversion {
  TensorId tensor;
  Attribute from;
  Attribute to;
};

struct ShardedOperator {
  /// Per operand (inputs, then outputs): the attribute with which the operator computes.
  std::vector<Attribute> operands;
  /// Conversions (indices) that must be done before it: those of its inputs.
  std::vector<std::int32_t> conversions;
};

struct ShardedGraph {
  const Graph* graph = nullptr;
  std::vector<MeshAxis> mesh;
  std::vector<ShardedOperator> operators;  ///< As in the graph.
  /// How each tensor lies after its producer, including the conversion to its pin.
  std::vector<Attribute> attributes;
  std::vector<Conversion> conversions;
  /// Per operator output that is pinned differently: the conversion that follows the operator.
  std::vector<std::vector<std::int32_t>> after_operator;
  std::vector<ShardedGraph> bodies{};  ///< Of Graph::bodies, in order.
  std::vector<std::string> remarks{};  ///< Conflicts that were resolved, and how.
};

}  // namespace foreshard
