/// \file
/// The fixpoint of distribute.h: derives the attributes of all tensors from the annotated ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/graph/distribute.h"
#include "strategies/graph/rule.h"

namespace foreshard::internal {

/// The split of a factor.
struct Split {
  std::vector<Axis> axes{};           ///< Major to minor.
  std::vector<std::int64_t> sizes{};  ///< Sizes of unequal slices; empty: equal slices.
  bool operator==(const Split&) const = default;
};

/// A mismatch between the attribute of one operand and the splits of the operator.
struct AxisConflict {
  std::size_t operand = 0;
  std::int32_t factor = -1;  ///< -1: the dimension's axes do not line up with its factors.
  Axis axis = -1;
  /// Factor that holds the axis, if two factors compete for it; -1: the factor is whole, fixed, not
  /// divisible, or split differently.
  std::int32_t holder = -1;
};

/// Assigns axes to factors, in the order in which operands are merged.
class Assignment {
 public:
  Assignment(const Rule& rule, const std::vector<MeshAxis>& mesh)
      : rule_(&rule),
        mesh_(&mesh),
        splits_(rule.factors.size()),
        fixed_(rule.factors.size()),
        holder_(mesh.size(), -1) {}

  /// Assigns the axes of `attribute` to the factors of operand `operand` as far as possible.
  /// \param shape  shape of the operand.
  /// \param clashes  if not null, receives the axes that could not be assigned.
  void merge(std::size_t operand, const Attribute& attribute,
             const std::vector<std::int64_t>& shape, std::vector<AxisConflict>* clashes);
  /// Assigns `splits` to the factors.
  /// \return whether this is possible, and every operand can express it (`trim` removes nothing).
  bool take(const Splits& splits);
  /// Fixes the factors of `operand`: they get no more axes.
  void fix(std::size_t operand);
  /// Removes splits that some operand cannot express: the minor factor of a dimension is split, but
  /// its major factor not completely.
  void trim();

  const Split& of(std::int32_t factor) const { return splits_[static_cast<std::size_t>(factor)]; }
  /// The attribute of `operand`, without summands.
  Attribute attribute(std::size_t operand) const;
  /// Summands of output `operand`: over the axes of factors that it lacks.
  std::vector<Partial> partial(std::size_t operand) const;

  /// Splits `factor` further over `axis`, if possible.
  /// \return whether it was possible.
  bool give(std::int32_t factor, Axis axis);

 private:
  std::int64_t ways(const std::vector<Axis>& axes) const { return foreshard::ways(axes, *mesh_); }
  bool sole(std::int32_t factor, std::int64_t extent) const;

  const Rule* rule_;
  const std::vector<MeshAxis>* mesh_;
  std::vector<Split> splits_;
  std::vector<bool> fixed_;
  std::vector<std::int32_t> holder_;  // axis -> factor that holds it, or -1
};

/// The source of a tensor's attribute, strongest first.
enum class AttributeSource : std::uint8_t { kPinnedParameter, kPinned, kParameter, kPropagated };

/// An operator as propagation sees it.
struct Node {
  const Rule* rule = nullptr;
  std::vector<TensorId> operands{};  ///< Inputs, then outputs.
  std::size_t inputs = 0;
  std::int32_t op = -1;  ///< Index in the graph; -1: a tie of a gradient to its parameter.
  /// Operand -> the annotation of the corresponding tensor inside the bodies of a loop or
  /// condition, or null. Empty for other operators.
  std::vector<const Attribute*> hints{};
};

class Propagation {
 public:
  /// \param pins  tensor -> its annotation, or null.
  Propagation(const Graph& graph, const std::vector<MeshAxis>& mesh, Flow flow,
              std::vector<const Attribute*> pins);

  void run();

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Attribute>& attributes() const { return attributes_; }
  const Attribute* pin(TensorId tensor) const { return pins_[tensor.index()]; }
  /// The splits with which `node` works, given the current attributes.
  Assignment assign(const Node& node, std::vector<AxisConflict>* clashes) const;

 private:
  AttributeSource claim_of(TensorId tensor) const;
  bool may_grow(TensorId tensor, std::size_t dim) const;
  bool extend(TensorId tensor, const Attribute& wish);
  void settle(bool all);

  const Graph& graph_;
  const std::vector<MeshAxis>& mesh_;
  Flow flow_;
  std::vector<const Attribute*> pins_;
  std::vector<Rule> ties_;  // ties of gradients to parameters; never moved once filled
  std::vector<Node> nodes_;
  std::vector<std::vector<std::int32_t>> nodes_of_;  // tensor -> nodes that have it as operand
  std::vector<Attribute> attributes_;
};

}  // namespace foreshard::internal
