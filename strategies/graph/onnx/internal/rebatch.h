/// \file
/// Changes the batch of a file that was exported with a fixed batch.
#pragma once

#include <cstdint>
#include <functional>
#include <onnx/onnx_pb.h>

#include "base/result.h"

#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

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
