/// \file
/// Shapes of one node's results, inferred by libonnx. Nothing else uses libonnx's inference.
#pragma once

// libonnx is compiled with these; cmake/ForeshardDependencies.cmake defines them.
#include <onnx/onnx_pb.h>
#include <string>
#include <vector>

#include "base/result.h"

namespace foreshard::onnx_file {

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

}  // namespace foreshard::onnx_file
