/// \file
/// Values of constants that ONNX nodes compute: the arithmetic on shapes that exporters write out
/// as nodes (Shape, Gather, Concat, Mul ...).
#pragma once

#include <optional>
#include <vector>

#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

/// Constants with more elements stay without values.
inline constexpr std::int64_t kMostFolded = 65536;

/// The result of `node`, if it is computed from constants. `inputs` are its operands (nullptr: left
/// out); `shape` and `real` describe the result.
/// \return nothing if an operand has no known value or the operator is not one that is folded.
std::optional<Numbers> folded(const Node& node, const std::vector<const Value*>& inputs,
                              const Shape& shape, bool real);

/// Number of elements of a shape.
/// \pre no overflow (read_onnx bounds shapes).
std::int64_t count_of(const Shape& shape);
std::size_t size_of(const Numbers& numbers);

/// Attributes by name, or the default; a wrong type counts as missing.
std::int64_t integer_of(const Node& node, const std::string& name, std::int64_t otherwise);
std::optional<std::vector<std::int64_t>> integers_of(const Node& node, const std::string& name);
double real_of(const Node& node, const std::string& name, double otherwise);
std::string text_of(const Node& node, const std::string& name, const std::string& otherwise);

/// The integers of a constant.
/// \return nothing if it has none.
std::optional<std::vector<std::int64_t>> integers_of(const Value& value);

}  // namespace foreshard::onnx_file
