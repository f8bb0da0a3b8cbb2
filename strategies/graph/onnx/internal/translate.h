/// \file
/// One ONNX node -> operators of foreshard's table.
#pragma once

#include <optional>
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
using Translate = std::optional<Error> (*)(Scope& scope, const Node& node);
/// \return nullptr if there is no counterpart. If and Loop are not among them.
Translate find_translation(const std::string& op);
std::vector<std::string> translated_operators();

}  // namespace foreshard::onnx_file
