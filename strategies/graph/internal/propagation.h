/// \file
/// The fixpoint of distribute.h: how every tensor is to lie, from those that are annotated.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/graph/distribute.h"
#include "strategies/graph/internal/factors.h"

namespace foreshard::internal {

/// What a tensor's attribute rests on, strongest first.
enum class Claim : std::uint8_t { kPinnedParameter, kPinned, kParameter, kPropagated };

/// An operator as propagation sees it.
struct Node {
  const Rule* rule = nullptr;
  std::vector<TensorId> operands{};  ///< Inputs, then outputs.
  std::size_t inputs = 0;
  std::int32_t op = -1;  ///< In the graph; -1 for the tie of a gradient to its parameter.
  /// Per operand: what annotations inside the bodies of a loop or condition ask for.
  std::vector<const Attribute*> hints{};
};

class Propagation {
 public:
  /// `pins[t]` is null or the annotation of tensor t.
  Propagation(const Graph& graph, const std::vector<MeshAxis>& mesh, Flow flow,
              std::vector<const Attribute*> pins);

  void run();

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Attribute>& attributes() const { return attributes_; }
  const Attribute* pin(TensorId tensor) const { return pins_[tensor.index()]; }
  /// The splits with which `node` works, given how tensors lie now.
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
  std::vector<Rule> ties_;  // of gradients to parameters; never moved once filled
  std::vector<Node> nodes_;
  std::vector<std::vector<std::int32_t>> nodes_of_;  // per tensor
  std::vector<Attribute> attributes_;
};

}  // namespace foreshard::internal
