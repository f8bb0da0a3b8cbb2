/// \file
/// One ONNX node -> operators of foreshard's table.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/onnx/import.h"
#include "strategies/graph/operators/build.h"

namespace foreshard::onnx_file {

/// What a translation sees: the graph under construction and the node's operands.
class Scope {
 public:
  virtual ~Scope() = default;
  virtual Graph& graph() = 0;
  virtual const ImportOptions& options() const = 0;
  virtual const Value& value(ValueIndex index) const = 0;
  /// The tensor of a value: parameters and constants come into being when they are first asked for.
  virtual TensorId tensor(ValueIndex index) = 0;
  /// Says which tensor a value is.
  virtual void set(ValueIndex index, TensorId tensor) = 0;
  /// A tensor that is the same in every step.
  virtual TensorId constant(const std::string& name, TensorType type) = 0;
};

/// \return an error where shapes do not fit; kUnsupported if the node has attributes that no
///     operator has.
using Translate = Status (*)(Scope& scope, const Node& node);
/// \return nullptr if there is no counterpart. If and Loop are not among them.
Translate find_translation(const std::string& op);
std::vector<std::string> translated_operators();

// --- what translations are made of ------------------------------------------------------------
Error unsupported(const Node& node, const std::string& why);
const Shape& shape_of(Scope& scope, ValueIndex index);
/// kNone beyond the last.
ValueIndex input(const Node& node, std::size_t index);
/// Adds an operator whose first output is the node's.
Status emit(Scope& scope, const Node& node, std::string type, std::vector<TensorId> inputs,
            Settings settings = {});
/// An operator between, named after the node and `part`.
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
