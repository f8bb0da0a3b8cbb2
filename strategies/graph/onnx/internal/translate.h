/// \file
/// Translates one ONNX node into operators of foreshard's table.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/onnx/import.h"
#include "strategies/graph/operators/build.h"

namespace foreshard::onnx_file {

/// The context of a translation: the graph under construction and the node's operands.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual Graph& graph() = 0;
  virtual const ImportOptions& options() const = 0;
  virtual const Value& value(ValueIndex index) const = 0;
  /// The tensor of a value. Parameters and constants are created when first requested.
  virtual TensorId tensor(ValueIndex index) = 0;
  /// Records that `tensor` is the tensor of a value.
  virtual void set(ValueIndex index, TensorId tensor) = 0;
  /// Adds a tensor that is the same in every step.
  virtual TensorId constant(const std::string& name, TensorType type) = 0;
};

/// Translates one node.
/// \return an error if shapes do not fit; kUnsupported if the node has attributes that no operator
///     has.
using Translate = Status (*)(Scope& scope, const Node& node);
/// \return nullptr if the operator has no counterpart. If and Loop have no translation here.
Translate find_translation(const std::string& op);
std::vector<std::string> translated_operators();

// --- helpers of translations ------------------------------------------------------------------
Error unsupported(const Node& node, const std::string& why);
const Shape& shape_of(Scope& scope, ValueIndex index);
/// Input `index` of a node; kNone beyond the last.
ValueIndex input(const Node& node, std::size_t index);
/// Adds an operator whose first output is the node's.
Status emit(Scope& scope, const Node& node, std::string type, std::vector<TensorId> inputs,
            Settings settings = {});
/// Adds an intermediate operator, named after the node and `part`; returns its result.
Result<TensorId> step(Scope& scope, const Node& node, const std::string& part, std::string type,
                      std::vector<TensorId> inputs, Settings settings = {});
Result<TensorId> reshaped(Scope& scope, const Node& node, const std::string& part, TensorId tensor,
                          const Shape& shape);

namespace windows {  // windows.cc
Status convolution(Scope& scope, const Node& node);
Status transposed_convolution(Scope& scope, const Node& node);
Status pool(Scope& scope, const Node& node);
Status local_response_norm(Scope& scope, const Node& node);
Status resize(Scope& scope, const Node& node);
}  // namespace windows

}  // namespace foreshard::onnx_file
