/// \file
/// Conversion between protobuf's messages and plain values.
#pragma once

#include <onnx/onnx_pb.h>
#include <optional>
#include <string>

#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

/// The element type of a tensor as foreshard counts it.
/// \return nothing for strings and other types without numbers.
std::optional<DType> dtype_of(std::int32_t type);
/// "INT16"; for an unknown type, its number.
std::string type_name(std::int32_t type);

::onnx::TypeProto type_of(std::int32_t type, const Shape& shape);

/// The elements of a tensor of at most `most`.
/// \return nothing if it has more, if they are in another file, or if the data do not fit the
///     shape.
std::optional<Numbers> numbers_of(const ::onnx::TensorProto& tensor, std::int64_t most);
/// A tensor of that type with those elements.
::onnx::TensorProto tensor_of(const Numbers& numbers, const ::onnx::TypeProto& type);

/// \return nothing for graphs, tensors of more than one element, and lists of strings.
std::optional<Attribute> attribute_of(const ::onnx::AttributeProto& attribute);
/// What a Constant node holds.
/// \return nothing for strings and sparse tensors.
std::optional<::onnx::TensorProto> constant_tensor(const ::onnx::AttributeProto& attribute);

}  // namespace foreshard::onnx_file
