/// \file
/// The distributed computation view (R4.1): operators and tensors of one block of a model, each
/// tensor with its logical (whole) shape and, where the strategy sets one, a distributed attribute.
///
/// What an operator does to distribution is *data*: its rule (rule.h), from which one engine
/// (distribute.h) reads which attributes are legal, what must be converted, and what comes out
/// partial. Operators are built by operators/build.h, each of a type of the table
/// (operators/definition.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

#include "strategies/graph/attribute.h"
#include "strategies/graph/capture.h"
#include "strategies/graph/part.h"
#include "strategies/graph/rule.h"
#include "strategies/graph/settings.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard {

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
  /// Set by the strategy: the tensor lies so, whatever its producer yields or its consumers want.
  std::optional<Attribute> pinned{};
  std::vector<std::int32_t> open{};  ///< Of pinned: dimensions that propagation may split further.
  TensorId gradient_of{};            ///< Of a parameter's gradient: the parameter.
  bool frozen = false;               ///< Of a parameter: it is not trained, and has no gradient.
  /// Of a frozen table: operators that look its rows up update these in the backward pass, and
  /// nothing else does.
  bool updated_by_rows = false;
  bool carried = false;  ///< Of an input that goes through: another block has its bytes booked.
};

inline bool is_trained(const Tensor& tensor) {
  return tensor.role == TensorRole::kParameter && !tensor.frozen && !is_whole_number(tensor.dtype);
}

struct Operator {
  std::string name;
  std::string type{};  ///< Its name in the table.
  std::vector<TensorId> inputs{};
  std::vector<TensorId> outputs{};
  Settings settings{};                 ///< Complete.
  Rule rule{};                         ///< How it can be sharded.
  std::vector<std::int32_t> bodies{};  ///< Of loops and conditions: in Graph::bodies.
  /// Set by an annotation: per factor of the rule, the axes that split it (splits.h). The operator
  /// computes so however its operands lie; they are converted.
  std::optional<Splits> splits{};
  bool accumulates = false;  ///< A product that adds to an fp32 gradient.
  Part part = Part::kNone;
  Capture capture = Capture::kNone;  ///< With what else a CUDA graph can launch it.
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors{};
  std::vector<Operator> operators{};  ///< In a valid order of execution.
  std::vector<TensorId> inputs{};     ///< From the block before.
  std::vector<TensorId> outputs{};    ///< For the block after.
  /// Sub-graphs of loops and conditions. A body has its own tensors; its inputs and outputs stand
  /// for the operator's.
  std::vector<Graph> bodies{};
  /// Gradients of activations as frameworks of transformers have them: named after the tensor, and
  /// where several operators contribute to one, each contribution is reduced by itself. Else they
  /// are named after operators, and the sum is reduced.
  bool gradients_apart = false;

  TensorId add(Tensor tensor);
  Tensor& operator[](TensorId id) { return tensors[id.index()]; }
  const Tensor& operator[](TensorId id) const { return tensors[id.index()]; }
};

/// Whether gradients of what is computed from the tensor are of use.
inline bool learns(const Tensor& tensor) {
  return is_trained(tensor) || tensor.updated_by_rows;
}

/// Elements of the whole tensor.
std::int64_t elements(const Tensor& tensor);

}  // namespace foreshard
