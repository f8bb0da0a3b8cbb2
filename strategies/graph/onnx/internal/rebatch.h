/// \file
/// A file that was exported with a number for its batch, with another number.
#pragma once

#include <cstdint>
#include <functional>
#include <onnx/onnx_pb.h>

#include "base/result.h"

#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

/// `model` is what `read` makes of `file`; its batch is the first dimension of its first input.
/// Inputs that begin with it get `batch` there, and so do constants that say the shape of a
/// Reshape; whether the rest follows is seen by reading again: each value either stays as it was or
/// has `batch` in place of the old one in a single dimension, and all results change.
/// \return kUnsupported with the reason where they do not: the batch is merged with dimensions
///     that are then transposed, a Reshape follows a Transpose of the batch, a result has none.
Result<Model> with_batch(const ::onnx::ModelProto& file, Model model, std::int64_t batch,
                         const std::function<Result<Model>(const ::onnx::ModelProto&)>& read);

}  // namespace foreshard::onnx_file
