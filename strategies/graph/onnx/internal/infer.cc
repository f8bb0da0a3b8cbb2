#include "strategies/graph/onnx/internal/infer.h"

#include <exception>
#include <limits>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>
#include <string>
#include <unordered_map>

namespace foreshard::onnx_file {
namespace {

// Refuses zero strides and dilations: libonnx divides by them without a check.
Status fault_in_window(const ::onnx::NodeProto& node) {
  for (const ::onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != "strides" && attribute.name() != "dilations") continue;
    for (const std::int64_t step : attribute.ints())
      if (step < 1)
        return Error{Error::Code::kInvalidInput, "attribute '" + attribute.name() +
                                                     "' must be at least 1, found " +
                                                     std::to_string(step)};
  }
  return {};
}

}  // namespace

Result<std::vector<::onnx::TypeProto>> inferred_types(::onnx::NodeProto node,
                                                      const std::vector<Operand>& inputs,
                                                      std::int64_t opset) {
  const auto version =
      static_cast<int>(std::min<std::int64_t>(opset, std::numeric_limits<int>::max()));
  const ::onnx::OpSchema* schema =
      ::onnx::OpSchemaRegistry::Schema(node.op_type(), version, node.domain());
  if (schema == nullptr || !schema->has_type_and_shape_inference_function())
    return Error{Error::Code::kUnsupported, "it has no rule for the shape of its results"};

  FORESHARD_TRY(fault_in_window(node));
  // Inputs are named by position: two inputs of one name would be the same value.
  std::unordered_map<std::string, ::onnx::TypeProto*> types;
  std::unordered_map<std::string, const ::onnx::TensorProto*> data;
  std::vector<::onnx::TypeProto> own(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = node.input(static_cast<int>(i));
    if (inputs[i].type == nullptr) continue;
    own[i] = *inputs[i].type;
    types[name] = &own[i];
    if (inputs[i].data != nullptr) data[name] = inputs[i].data;
  }
  try {
    ::onnx::shape_inference::InferenceContextImpl context(node, types, data, {});
    schema->GetTypeAndShapeInferenceFunction()(context);
    return context.allOutputTypes_;
  } catch (const std::exception& error) {
    return Error{Error::Code::kInvalidInput, error.what()};
  }
}

}  // namespace foreshard::onnx_file
