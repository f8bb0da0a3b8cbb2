/// \file
/// Sharding of a graph from partial annotations (requirements in README.md: R2.2 and R2.3, legal
/// outputs, communication only on a mismatch; R4.1 and R4.2, distributed view and conversions).
/// `Tensor::pinned` says how some tensors lie. The rules of the operators (rule.h) carry these
/// splits forward and backward to all other tensors until nothing changes. Where a tensor lies
/// otherwise than an operator needs it, a conversion is noted: one per distinct need, however many
/// operators share it.
///
///  1. A pinned tensor lies as its annotation says; only its `open` dimensions may be split
///     further. Parameters come first, then other annotations, then splits that followed from them.
///  2. Axes move along factors, major factors first, forward and backward through every operator:
///     in a first round through elementwise operators, then through all.
///  3. An operator gives an axis to one factor only: to the factor of its pinned parameter, else of
///     another pinned operand, else of the operand that comes first. The operand that loses is
///     converted, and a remark says so.
///  4. A split that does not divide an unpinned dimension is not carried on.
///  5. Slices of unequal size pass through operators whose rule says `uneven`, and are converted
///     for all others.
///  6. A result that is left as summands is reduced once, right after its producer. It stays
///     summands for longer if all its readers are linear and their results together have no more
///     elements than it: the sum of three partial products is reduced once, and a wide partial
///     tensor after the product that makes it narrow (R2.6). If a product reads two partial
///     tensors, the larger one stays summands. Gradients of parameters stay summands: they are
///     reduced with their bucket.
///
/// Source: the fixpoint over factors and its order follow Shardy (openxla.org/shardy,
/// "Propagation") and GSPMD (Xu et al. 2021, section 3.5).
/// Not modelled: axes split into parts; a choice of factor by cost (search does that from outside,
/// by annotations).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"
#include "strategies/graph/rule.h"

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

/// A sharded graph: every operator has one assignment of mesh axes to its factors; where a tensor
/// does not lie as its consumer needs it, a conversion is noted, once per distinct need.
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

/// Which way splits move through operators. With kForward a producer does not know how its result
/// is to lie: the result stays summands, and a reader that needs values reads a reduced copy.
enum class Flow : std::uint8_t { kBothWays, kForward };

/// Whether a backward graph follows. The gradient of a product reads the inputs of the product, and
/// needs values: with kFollows, products do not work on summands.
enum class BackwardPass : std::uint8_t { kNone, kFollows };

/// \return kInvalidInput if an annotation breaks a constraint of layout.h (the message names
///     tensor, dimension and axis), or splits a tensor in a way that the operator which makes or
///     reads it cannot take at all; with kForward also for a split that does not divide the factor
///     of an operator.
Result<ShardedGraph> distribute(const Graph& graph, const std::vector<MeshAxis>& mesh,
                                Flow flow = Flow::kBothWays,
                                BackwardPass backward = BackwardPass::kNone);

/// One way in which an operator can work: the attributes of its operands.
struct Signature {
  std::vector<Attribute> inputs;  ///< The given ones, or with replicated dimensions sliced locally.
  std::vector<Attribute> outputs;
};

/// All legal ways to use an operator on inputs that lie as given, without communication: first the
/// inputs as they lie, then each further split for which replicated inputs are sliced locally
/// (R2.2). Several axes of one factor come in the mesh's order.
/// \return kInvalidInput if there is none (two inputs split one factor differently, one axis splits
///     two factors, a factor must stay whole, summands where values are needed); the message names
///     input, factor and axis.
Result<std::vector<Signature>> legal_signatures(
    const Rule& rule, const std::vector<std::vector<std::int64_t>>& shapes,
    const std::vector<Attribute>& inputs, const std::vector<MeshAxis>& mesh);

/// The shape on the rank with the largest slices (`local_shape` needs even slices).
std::vector<std::int64_t> largest_local_shape(const std::vector<std::int64_t>& shape,
                                              const Attribute& attribute,
                                              const std::vector<MeshAxis>& mesh);

/// All ways to split, the unsplit one first. Axes of one rank split nothing; several axes of one
/// factor come in the mesh's order. Ways that some operand cannot express are left out (the minor
/// factor of a dimension is split, but its major factor not completely).
/// Cost: O((factors + 1) ^ axes).
std::vector<Splits> legal_splits(const Rule& rule, const std::vector<MeshAxis>& mesh);

/// \pre `splits` is one of legal_splits(rule, mesh).
Signature signature_of(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh);

/// Whether an operator of that rule can be split as `splits` says.
bool is_legal(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard
