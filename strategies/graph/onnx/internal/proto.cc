#include "strategies/graph/onnx/internal/proto.h"

#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>
#include <string>
#include <unordered_map>

#include "strategies/graph/onnx/internal/fold.h"

namespace foreshard::onnx_file {
namespace {

using ::onnx::TensorProto;

std::size_t bytes_of_element(std::int32_t type) {
  switch (type) {
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return 8;
    case TensorProto::FLOAT:
    case TensorProto::INT32:
    case TensorProto::UINT32:
      return 4;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::INT16:
    case TensorProto::UINT16:
      return 2;
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return 1;
    default:
      return 0;
  }
}

// The value of an IEEE 754 binary16 number.
double half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // subnormal: fraction / 2^24
    const double value = static_cast<double>(fraction) / 16777216.0;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return static_cast<double>(std::bit_cast<float>(sign | wide << 23U | fraction << 13U));
}

double brain(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
}

template <class T>
T read(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);  // ONNX is little-endian, as the supported machines
  return value;
}

double real_at(const char* bytes, std::int32_t type) {
  switch (type) {
    case TensorProto::DOUBLE:
      return read<double>(bytes);
    case TensorProto::FLOAT16:
      return half(read<std::uint16_t>(bytes));
    case TensorProto::BFLOAT16:
      return brain(read<std::uint16_t>(bytes));
    default:
      return static_cast<double>(read<float>(bytes));
  }
}

std::int64_t integer_at(const char* bytes, std::int32_t type) {
  switch (type) {
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return read<std::int64_t>(bytes);
    case TensorProto::INT32:
      return read<std::int32_t>(bytes);
    case TensorProto::UINT32:
      return read<std::uint32_t>(bytes);
    case TensorProto::INT16:
      return read<std::int16_t>(bytes);
    case TensorProto::UINT16:
      return read<std::uint16_t>(bytes);
    case TensorProto::INT8:
      return read<std::int8_t>(bytes);
    default:
      return read<std::uint8_t>(bytes);
  }
}

bool is_real(std::int32_t type) {
  return type == TensorProto::FLOAT || type == TensorProto::DOUBLE ||
         type == TensorProto::FLOAT16 || type == TensorProto::BFLOAT16;
}

std::vector<double> typed_reals(const TensorProto& tensor) {
  std::vector<double> values;
  for (const float value : tensor.float_data()) values.push_back(static_cast<double>(value));
  for (const double value : tensor.double_data()) values.push_back(value);
  for (const std::int32_t bits : tensor.int32_data()) {
    const auto low = static_cast<std::uint16_t>(bits);
    values.push_back(tensor.data_type() == TensorProto::BFLOAT16 ? brain(low) : half(low));
  }
  return values;
}

std::vector<std::int64_t> typed_integers(const TensorProto& tensor) {
  std::vector<std::int64_t> values(tensor.int64_data().begin(), tensor.int64_data().end());
  for (const std::int32_t value : tensor.int32_data()) values.push_back(value);
  for (const std::uint64_t value : tensor.uint64_data())
    values.push_back(static_cast<std::int64_t>(value));
  return values;
}

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

std::optional<DType> dtype_of(std::int32_t type) {
  switch (type) {
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
      return DType::kFp32;
    case TensorProto::FLOAT16:
      return DType::kFp16;
    case TensorProto::BFLOAT16:
      return DType::kBf16;
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return DType::kInt64;
    case TensorProto::INT32:
    case TensorProto::UINT32:
      return DType::kInt32;
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return DType::kInt8;
    default:
      return std::nullopt;
  }
}

std::string type_name(std::int32_t type) {
  if (TensorProto::DataType_IsValid(type))
    return TensorProto::DataType_Name(static_cast<TensorProto::DataType>(type));
  return "number " + std::to_string(type);
}

::onnx::TypeProto type_of(std::int32_t type, const Shape& shape) {
  ::onnx::TypeProto result;
  auto* tensor = result.mutable_tensor_type();
  tensor->set_elem_type(type);
  auto* dims = tensor->mutable_shape();
  for (const std::int64_t extent : shape) dims->add_dim()->set_dim_value(extent);
  return result;
}

std::optional<Numbers> numbers_of(const TensorProto& tensor, std::int64_t most) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.dims()) {
    if (extent < 0 || extent > most) return std::nullopt;  // corrupt, or too many
    count *= extent;
    if (count > most) return std::nullopt;
  }
  const std::int32_t type = tensor.data_type();
  const std::size_t width = bytes_of_element(type);
  if (width == 0 || tensor.data_location() == TensorProto::EXTERNAL) return std::nullopt;
  const auto elements = static_cast<std::size_t>(count);
  Numbers numbers;
  if (tensor.has_raw_data()) {
    const std::string& raw = tensor.raw_data();
    if (raw.size() != elements * width) return std::nullopt;
    std::vector<double> reals;
    std::vector<std::int64_t> integers;
    for (std::size_t i = 0; i < elements; ++i) {
      const char* at = raw.data() + i * width;
      if (is_real(type)) {
        reals.push_back(real_at(at, type));
      } else {
        integers.push_back(integer_at(at, type));
      }
    }
    if (is_real(type)) return reals;
    return integers;
  }
  if (is_real(type)) {
    numbers = typed_reals(tensor);
  } else {
    numbers = typed_integers(tensor);
  }
  if (size_of(numbers) != elements) return std::nullopt;
  return numbers;
}

TensorProto tensor_of(const Numbers& numbers, const ::onnx::TypeProto& type) {
  TensorProto tensor;
  const auto& of = type.tensor_type();
  tensor.set_data_type(of.elem_type());
  for (const auto& dim : of.shape().dim()) tensor.add_dims(dim.dim_value());
  const auto element = of.elem_type();
  if (const auto* reals = std::get_if<std::vector<double>>(&numbers)) {
    for (const double value : *reals) {
      if (element == TensorProto::DOUBLE) {
        tensor.add_double_data(value);
      } else {
        tensor.add_float_data(static_cast<float>(value));
      }
    }
    return tensor;
  }
  for (const std::int64_t value : std::get<std::vector<std::int64_t>>(numbers)) {
    if (element == TensorProto::INT64) {
      tensor.add_int64_data(value);
    } else if (element == TensorProto::UINT64 || element == TensorProto::UINT32) {
      tensor.add_uint64_data(static_cast<std::uint64_t>(value));
    } else {
      tensor.add_int32_data(static_cast<std::int32_t>(value));
    }
  }
  return tensor;
}

std::optional<Attribute> attribute_of(const ::onnx::AttributeProto& attribute) {
  using ::onnx::AttributeProto;
  switch (attribute.type()) {
    case AttributeProto::INT:
      return attribute.i();
    case AttributeProto::FLOAT:
      return static_cast<double>(attribute.f());
    case AttributeProto::STRING:
      return attribute.s();
    case AttributeProto::INTS:
      return std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
    case AttributeProto::FLOATS:
      return std::vector<double>(attribute.floats().begin(), attribute.floats().end());
    case AttributeProto::TENSOR: {  // the fill value of ConstantOfShape
      const auto numbers = numbers_of(attribute.t(), 1);
      if (!numbers || size_of(*numbers) != 1) return std::nullopt;
      if (const auto* reals = std::get_if<std::vector<double>>(&*numbers)) return reals->front();
      return static_cast<double>(std::get<std::vector<std::int64_t>>(*numbers).front());
    }
    default:
      return std::nullopt;
  }
}

std::optional<TensorProto> constant_tensor(const ::onnx::AttributeProto& attribute) {
  using ::onnx::AttributeProto;
  if (attribute.type() == AttributeProto::TENSOR) return attribute.t();
  TensorProto tensor;
  switch (attribute.type()) {
    case AttributeProto::INT:
      tensor.set_data_type(TensorProto::INT64);
      tensor.add_int64_data(attribute.i());
      return tensor;
    case AttributeProto::FLOAT:
      tensor.set_data_type(TensorProto::FLOAT);
      tensor.add_float_data(attribute.f());
      return tensor;
    case AttributeProto::INTS:
      tensor.set_data_type(TensorProto::INT64);
      tensor.add_dims(attribute.ints_size());
      *tensor.mutable_int64_data() = attribute.ints();
      return tensor;
    case AttributeProto::FLOATS:
      tensor.set_data_type(TensorProto::FLOAT);
      tensor.add_dims(attribute.floats_size());
      *tensor.mutable_float_data() = attribute.floats();
      return tensor;
    default:
      return std::nullopt;
  }
}

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
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return Error{Error::Code::kInvalidInput, error.what()};
  }
}

}  // namespace foreshard::onnx_file
