/// \file
/// From a graph whose parameters and block boundaries carry attributes to a sharded graph: every
/// operator gets one assignment of mesh axes to its factors (R2.2, R4.1); where a tensor does not
/// lie as its consumer needs it, a conversion is noted (R2.3, R4.2), once per distinct need.
///
/// How an operator's assignment is found, in this order:
///  1. parameters and their gradients fix all their letters, split or not;
///  2. pinned activations, then the other inputs, in order, give their splits to letters that are
///     still free;
///  3. an axis is given to one letter only: the first to ask for it has it;
///  4. a letter in `whole` is never split.
/// An output is split as its letters are, and partial over the axes of letters that it lacks. Only
/// a `linear` operator takes a partial input, and hands the partiality on.
#pragma once

#include <vector>

#include "base/result.h"

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
  std::vector<ShardedGraph> bodies{};  ///< Of Graph::bodies, in order; filled by distribute().
  std::vector<std::string> remarks{};  ///< Conflicts that were resolved, and how; of distribute().
};

/// A graph that has operators of the table (OperatorKind::kDefined) is sharded by distribute().
/// \return kInvalidInput if a dimension is not divisible by the axes that split it; the message
///     names tensor, dimension and axes.
Result<ShardedGraph> shard(const Graph& graph, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard
