// Replaces read.cc in a build without libonnx.
#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

Result<Model> read_onnx(std::string_view, const ReadOptions&) {
  return Error{Error::Code::kUnsupported,
               "this foreshard was built without ONNX; install libonnx-dev and libprotobuf-dev and "
               "build it again"};
}

}  // namespace foreshard::onnx_file
