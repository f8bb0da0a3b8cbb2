/// \file
/// The distributed computation view (R4.1): operators and tensors of one block of a model. Each
/// tensor has its logical (whole) shape and, where the strategy sets one, a distributed attribute.
///
/// How an operator can be sharded is *data*: its rule (rule.h). From it one engine (distribute.h)
/// derives which attributes are legal, what must be converted, and which results are partial.
/// Operators are built by operators/build.h; each has a type from the table
/// (operators/definition.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"

#include "strategies/graph/attribute.h"
#include "strategies/graph/part.h"
#include "strategies/graph/rule.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard {

// Settings of an operator from the table: named values of five types. (ONNX and others call them
// attributes; here an attribute is how a tensor is distributed.)
//
//     Settings{{"axis", std::int64_t{1}}, {"keep_dims", true}}

using Integers = std::vector<std::int64_t>;
using SettingValue = std::variant<bool, std::int64_t, double, std::string, Integers>;

/// "boolean", "integer", "number", "text", "integers": in the order of SettingValue.
std::string_view type_name_of(const SettingValue& value);
/// "true", "3", "0.5", "sum", "[1, 2]".
std::string describe(const SettingValue& value);

class Settings {
 public:
  Settings() = default;
  Settings(std::initializer_list<std::pair<const std::string, SettingValue>> values)
      : values_(values) {}

  void set(std::string name, SettingValue value) { values_[std::move(name)] = std::move(value); }
  bool has(const std::string& name) const { return values_.contains(name); }
  const std::map<std::string, SettingValue>& all() const { return values_; }

  /// The value of a setting, by type. \pre the setting exists and has that type. This holds for
  /// every setting that the operator's definition names, once add_operator() (operators/build.h)
  /// has checked and completed them.
  bool flag(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const Integers& integers(const std::string& name) const;

  bool operator==(const Settings&) const = default;

 private:
  template <class T>
  const T& get(const std::string& name) const;
  std::map<std::string, SettingValue> values_;
};

using TensorId = Id<struct TensorTag>;

constexpr bool is_whole_number(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

enum class TensorRole : std::uint8_t {
  kActivation,
  kParameter,
  kParameterGradient,
};

struct Tensor {
  std::string name;
  DType dtype = DType::kBf16;
  std::vector<std::int64_t> shape;
  TensorRole role = TensorRole::kActivation;
  /// Set by the strategy: the tensor has this attribute, whatever its producer yields or its
  /// consumers need.
  std::optional<Attribute> pinned{};
  /// Dimensions of a pinned tensor that propagation may split further.
  std::vector<std::int32_t> open{};
  TensorId gradient_of{};  ///< Only for a parameter's gradient: the parameter.
  bool frozen = false;     ///< A parameter that is not trained and has no gradient.
  /// A frozen table whose rows are updated in the backward pass by the operators that look them up,
  /// and by nothing else.
  bool updated_by_rows = false;
  bool carried = false;  ///< An input that only passes through: another block counts its bytes.
};

inline bool is_trained(const Tensor& tensor) {
  return tensor.role == TensorRole::kParameter && !tensor.frozen && !is_whole_number(tensor.dtype);
}

struct Operator {
  std::string name;
  std::string type{};  ///< Name in the table of operators.
  std::vector<TensorId> inputs{};
  std::vector<TensorId> outputs{};
  Settings settings{};                 ///< Complete: defaults are filled in.
  Rule rule{};                         ///< How it can be sharded.
  std::vector<std::int32_t> bodies{};  ///< Loops and conditions: indices into Graph::bodies.
  /// Set by an annotation: factor of the rule -> axes that split it (legal_splits()). The operator
  /// computes with this split however its operands lie; they are converted.
  std::optional<Splits> splits{};
  bool accumulates = false;  ///< The product adds its result to an fp32 gradient.
  LayerPart part = LayerPart::kNone;
  /// The part of the layer with which a CUDA graph can capture it.
  Capture capture = Capture::kNone;
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors{};
  std::vector<Operator> operators{};  ///< Sorted in a valid order of execution.
  std::vector<TensorId> inputs{};     ///< Tensors from the block before.
  std::vector<TensorId> outputs{};    ///< Tensors for the block after.
  /// Sub-graphs of loops and conditions. A body has its own tensors; its inputs and outputs
  /// correspond to the operator's.
  std::vector<Graph> bodies{};
  /// Gradients of activations as in frameworks for transformers: named after the tensor; if several
  /// operators contribute to a gradient, each contribution is reduced by itself. Else gradients are
  /// named after operators, and only their sum is reduced.
  bool gradients_apart = false;

  TensorId add(Tensor tensor);
  Tensor& operator[](TensorId id) { return tensors[id.index()]; }
  const Tensor& operator[](TensorId id) const { return tensors[id.index()]; }
};

/// Whether the tensor learns, so that gradients of results computed from it are needed.
inline bool learns(const Tensor& tensor) {
  return is_trained(tensor) || tensor.updated_by_rows;
}

/// Elements of the whole tensor.
std::int64_t elements(const Tensor& tensor);

}  // namespace foreshard
