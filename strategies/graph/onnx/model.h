/// \file
/// The contents of an ONNX file, without protobuf: values with whole shapes, nodes in order,
/// constants that only compute shapes already folded away. `read_onnx` makes it, `import_onnx`
/// (import.h) turns it into a Graph.
///
/// Source: "Open Neural Network Exchange Intermediate Representation Specification" and "Operator
/// Schemas" (github.com/onnx/onnx, docs/IR.md and docs/Operators.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

#include "strategies/graph/layout.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard::onnx_file {

/// The elements of a small constant, in row-major order: integers and booleans, or reals.
using Numbers = std::variant<std::vector<std::int64_t>, std::vector<double>>;

struct Value {
  enum class Kind : std::uint8_t {
    kInput,      ///< Given to the graph from outside.
    kParameter,  ///< A floating-point initializer of more than one element.
    /// The same in every step: other initializers, and results computed from constants.
    kConstant,
    kComputed,
  };
  std::string name{};
  /// Doubles count as fp32, booleans and bytes as int8.
  DType dtype = DType::kFp32;
  Shape shape{};
  Kind kind = Kind::kComputed;
  std::optional<Numbers> numbers{};  ///< Elements of a small constant.

  bool is_real() const;  ///< Floating point.
};

using Attribute =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// A value in Model::values, or kNone for an optional one that is left out.
using ValueIndex = std::int32_t;
inline constexpr ValueIndex kNone = -1;

struct Node {
  std::string name{};    ///< Name in the file, or "MatMul_12" after its position.
  std::string op{};      ///< Operator: "MatMul".
  std::string domain{};  ///< Empty: ONNX's own.
  std::int64_t opset = 0;
  std::vector<ValueIndex> inputs{};
  std::vector<ValueIndex> outputs{};
  std::map<std::string, Attribute> attributes{};
  /// "then_branch", "else_branch" or "body": index into Model::bodies.
  std::map<std::string, std::size_t> bodies{};
};

/// The main graph, a branch of an If or the body of a Loop. Bodies see the values around them.
struct Body {
  std::vector<ValueIndex> inputs{};
  std::vector<ValueIndex> outputs{};
  std::vector<Node> nodes{};  ///< Sorted in a valid order of execution.
};

struct Model {
  std::string name{};
  std::string producer{};                        ///< Exporter: "pytorch 2.1.0".
  std::map<std::string, std::int64_t> opsets{};  ///< Version of each domain; "" is ONNX's own.
  std::vector<Value> values{};
  Body main{};
  std::vector<Body> bodies{};          ///< Bodies of loops and conditions.
  std::int64_t folded = 0;             ///< Nodes that only computed constants.
  std::vector<std::string> remarks{};  ///< Differences between the model as read and the file.
};

struct ReadOptions {
  /// Sizes of dynamic dimensions by name ("batch"); unnamed ones by input and position
  /// ("input[0]").
  std::map<std::string, std::int64_t> dims{};
  /// Size of the first dimension of the first input, if it is dynamic and not in `dims`.
  std::optional<std::int64_t> batch{};
  /// Whether `batch` also replaces a size that the file states as a number (internal/rebatch.cc).
  bool rebatch = false;
};

/// Reads the bytes of an ONNX file. Weights need not be in it (external data is not read).
/// \return kInvalidInput if it is not an ONNX file, is truncated or corrupt, leaves a dimension
///     open (all are named), or has a shape that depends on values known only at run time;
///     kUnsupported for an operator without a known shape rule (named with node, domain and opset).
Result<Model> read_onnx(std::string_view bytes, const ReadOptions& options);

}  // namespace foreshard::onnx_file
