/// \file
/// The interface of an operator's gradient function to the backward graph under construction, in
/// which the tensors of the forward graph keep their ids.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/graph.h"
#include "strategies/graph/operators/definition.h"

namespace foreshard {

class Gradients {
 public:
  virtual ~Gradients() = default;

  virtual const Operator& op() const = 0;  ///< The forward operator.
  virtual const Tensor& tensor(TensorId id) const = 0;
  /// Gradient of output `index`; invalid if nothing flows back into it.
  virtual TensorId of_output(std::size_t index) const = 0;
  /// Adds an operator of the table, named after the forward one and `part`.
  /// \pre its types and shapes can be inferred.
  virtual std::vector<TensorId> add(std::string_view type, std::string_view part,
                                    std::vector<TensorId> inputs, Settings settings = {}) = 0;
  /// The same for an operator with bodies.
  virtual std::vector<TensorId> add_with(std::string_view type, std::string_view part,
                                         std::vector<TensorId> inputs, Settings settings,
                                         std::vector<Graph> bodies) = 0;
  /// Body `index` of the forward operator.
  virtual const Graph& body(std::size_t index) const = 0;
  /// The backward graph of a body. Its inputs are the gradients of all floating-point outputs, its
  /// outputs the gradients of all floating-point inputs.
  virtual Graph backward_of(const Graph& body) const = 0;
  /// Adds `gradient`, a summand of the gradient of input `index` with the shape of that input.
  virtual void give(std::size_t index, TensorId gradient) = 0;

  /// Gradients of all outputs; zeros for outputs into which nothing flows back.
  std::vector<TensorId> of_outputs_or_zero();

  TensorId input(std::size_t index) const { return op().inputs[index]; }
  TensorId output(std::size_t index) const { return op().outputs[index]; }
  /// Whether input `index` exists, can have a gradient (a floating-point tensor), and its gradient
  /// is needed.
  virtual bool wants(std::size_t index) const;
  const std::vector<std::int64_t>& shape(TensorId id) const { return tensor(id).shape; }
};

}  // namespace foreshard
