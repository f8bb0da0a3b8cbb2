/// \file
/// The fixpoint of distribute.h: derives the attributes of all tensors from the annotated ones.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/graph/distribute.h"
#include "strategies/graph/internal/factors.h"

namespace foreshard::internal {

/// The source of a tensor's attribute, strongest first.
enum class Claim : std::uint8_t { kPinnedParameter, kPinned, kParameter, kPropagated };

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
  Assignment assign(const Node& node, std::vector<Clash>* clashes) const;

 private:
  Claim claim_of(TensorId tensor) const;
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
