/// \file
/// Protobuf's messages: their conversion to plain values, the shapes that libonnx infers, and the
/// change of a batch that a file states as a number.
#pragma once

#include <cstdint>
#include <functional>
#include <onnx/onnx_pb.h>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

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

/// A value in libonnx's form: `data` (may be null) has its known elements.
struct Operand {
  const ::onnx::TypeProto* type = nullptr;
  const ::onnx::TensorProto* data = nullptr;
};

/// Types and shapes of the outputs of `node`, in order; a dimension that cannot be inferred is left
/// open.
/// \return kUnsupported if libonnx has no shape rule for the operator at that version;
///     kInvalidInput, with libonnx's reason, if the node contradicts its inputs.
Result<std::vector<::onnx::TypeProto>> inferred_types(::onnx::NodeProto node,
                                                      const std::vector<Operand>& inputs,
                                                      std::int64_t opset);

/// Returns the model of `file` with another batch. `model` is the result of `read` for `file`; its
/// batch is the first dimension of its first input. Inputs whose first dimension is the batch get
/// `batch` there, and so do constants that are the shape of a Reshape. The file is then read again
/// and compared: each value must either stay as it was or have `batch` in place of the old batch in
/// a single dimension, and all results must change.
/// \return kUnsupported with the reason if they do not: the batch is merged with dimensions that
///     are then transposed, a Reshape follows a Transpose of the batch, or a result has no batch
///     dimension.
Result<Model> with_batch(const ::onnx::ModelProto& file, Model model, std::int64_t batch,
                         const std::function<Result<Model>(const ::onnx::ModelProto&)>& read);

}  // namespace foreshard::onnx_file
