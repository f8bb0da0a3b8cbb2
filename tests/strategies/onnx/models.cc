#include "tests/strategies/onnx/models.h"

#include <cmath>

namespace foreshard::onnx_models {
namespace {

using ::onnx::AttributeProto;
using ::onnx::TensorProto;

class Resnet {
 public:
  std::string write() {
    std::string x = w_.input("input", {"batch", 3, 224, 224});
    x = relu(convolution(x, 3, 64, 7, 2));
    x = w_.node("MaxPool", {x});
    w_.attribute("kernel_shape", {3, 3})
        .attribute("strides", {2, 2})
        .attribute("pads", {1, 1, 1, 1});
    std::int64_t in = 64;
    const std::vector<std::int64_t> blocks{3, 4, 6, 3};
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const std::int64_t width = std::int64_t{64} << stage;
      for (std::int64_t i = 0; i < blocks[stage]; ++i) {
        x = bottleneck(x, in, width, i == 0 && stage > 0 ? 2 : 1, i == 0);
        in = 4 * width;
      }
    }
    x = w_.node("GlobalAveragePool", {x});
    x = w_.node("Flatten", {x});
    w_.attribute("axis", 1);
    x = w_.node("Gemm", {x, w_.weight("fc.weight", {1000, 2048}), w_.weight("fc.bias", {1000})});
    w_.attribute("transB", 1);
    w_.output(x);
    return w_.bytes();
  }

 private:
  std::string relu(const std::string& x) { return w_.node("Relu", {x}); }

  // Convolution without bias, then batch norm.
  std::string convolution(const std::string& x, std::int64_t in, std::int64_t out,
                          std::int64_t kernel, std::int64_t stride) {
    const std::string name = "conv" + std::to_string(count_++);
    const std::int64_t pad = kernel / 2;
    const std::string y =
        w_.node("Conv", {x, w_.weight(name + ".weight", {out, in, kernel, kernel})});
    w_.attribute("kernel_shape", {kernel, kernel})
        .attribute("strides", {stride, stride})
        .attribute("pads", {pad, pad, pad, pad})
        .attribute("group", 1);
    return w_.node("BatchNormalization",
                   {y, w_.weight(name + ".scale", {out}), w_.weight(name + ".bias", {out}),
                    w_.weight(name + ".mean", {out}), w_.weight(name + ".var", {out})});
  }

  std::string bottleneck(const std::string& x, std::int64_t in, std::int64_t width,
                         std::int64_t stride, bool project) {
    std::string y = relu(convolution(x, in, width, 1, 1));
    y = relu(convolution(y, width, width, 3, stride));
    y = convolution(y, width, 4 * width, 1, 1);
    const std::string skip = project ? convolution(x, in, 4 * width, 1, stride) : x;
    return relu(w_.node("Add", {y, skip}));
  }

  Writer w_;
  int count_ = 0;
};

class BertWriter {
 public:
  explicit BertWriter(const Bert& size) : size_(size) {}

  std::string write() {
    const auto int64 = TensorProto::INT64;
    const std::string ids = w_.input("input_ids", {"batch", "sequence"}, int64);
    const std::string types = w_.input("token_type_ids", {"batch", "sequence"}, int64);
    const std::string mask = w_.input("attention_mask", {"batch", "sequence"}, int64);
    const std::string bias = mask_bias(mask);

    // Positions 0 .. sequence-1, cut out of a constant.
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < size_.positions; ++i) all.push_back(i);
    const std::string row = w_.node("Unsqueeze", {w_.integers(all), w_.integers({0})});
    const std::string length = w_.node("Unsqueeze", {extent(ids, 1), w_.integers({0})});
    const std::string positions =
        w_.node("Slice", {row, w_.integers({0}), length, w_.integers({1}), w_.integers({1})});

    const std::int64_t h = size_.hidden;
    const auto embedding = [&](const char* name, std::int64_t rows, const std::string& indices) {
      return w_.node("Gather", {w_.weight(name, {rows, h}), indices});
    };
    std::string x = w_.node("Add", {embedding("embeddings.word", size_.vocabulary, ids),
                                    embedding("embeddings.type", 2, types)});
    x = w_.node("Add", {x, embedding("embeddings.position", size_.positions, positions)});
    x = norm(x, "embeddings.norm");
    for (std::int64_t i = 0; i < size_.layers; ++i) x = layer(x, bias, i);
    w_.output(x);

    const std::string first = w_.node("Gather", {x, w_.integers({0}, true)});
    w_.attribute("axis", 1);
    const std::string pooled =
        w_.node("Gemm", {first, w_.weight("pooler.weight", {h, h}), w_.weight("pooler.bias", {h})});
    w_.attribute("transB", 1);
    w_.output(w_.node("Tanh", {pooled}));
    return w_.bytes();
  }

 private:
  // (1 - mask) * -10000, as [batch, 1, 1, sequence].
  std::string mask_bias(const std::string& mask) {
    const std::string wide = w_.node("Unsqueeze", {mask, w_.integers({1, 2})});
    const std::string real = w_.node("Cast", {wide});
    w_.attribute("to", TensorProto::FLOAT);
    const std::string inverse = w_.node("Sub", {w_.real(1), real});
    return w_.node("Mul", {inverse, w_.real(-10000)});
  }

  std::string extent(const std::string& x, std::int64_t dim) {
    return w_.node("Gather", {w_.node("Shape", {x}), w_.integers({dim}, true)});
  }

  // Reshape to [batch, sequence, ...rest], with the first two read from `x`.
  std::string reshape(const std::string& x, const std::vector<std::int64_t>& rest) {
    Names parts{w_.node("Unsqueeze", {extent(x, 0), w_.integers({0})}),
                w_.node("Unsqueeze", {extent(x, 1), w_.integers({0})}), w_.integers(rest)};
    const std::string shape = w_.node("Concat", parts);
    w_.attribute("axis", 0);
    return w_.node("Reshape", {x, shape});
  }

  std::string norm(const std::string& x, const std::string& name) {
    const std::string mean = w_.node("ReduceMean", {x});
    w_.attribute("axes", std::vector<std::int64_t>{-1}).attribute("keepdims", 1);
    const std::string centred = w_.node("Sub", {x, mean});
    const std::string squares = w_.node("Pow", {centred, w_.real(2)});
    const std::string variance = w_.node("ReduceMean", {squares});
    w_.attribute("axes", std::vector<std::int64_t>{-1}).attribute("keepdims", 1);
    const std::string deviation = w_.node("Sqrt", {w_.node("Add", {variance, w_.real(1e-12F)})});
    const std::string unit = w_.node("Div", {centred, deviation});
    const std::string scaled = w_.node("Mul", {unit, w_.weight(name + ".weight", {size_.hidden})});
    return w_.node("Add", {scaled, w_.weight(name + ".bias", {size_.hidden})});
  }

  std::string linear(const std::string& x, const std::string& name, std::int64_t in,
                     std::int64_t out) {
    const std::string y = w_.node("MatMul", {x, w_.weight(name + ".weight", {in, out})});
    return w_.node("Add", {w_.weight(name + ".bias", {out}), y});
  }

  std::string gelu(const std::string& x) {
    const std::string erf = w_.node("Erf", {w_.node("Div", {x, w_.real(std::sqrt(2.0F))})});
    const std::string twice = w_.node("Mul", {x, w_.node("Add", {erf, w_.real(1)})});
    return w_.node("Mul", {twice, w_.real(0.5F)});
  }

  std::string heads_of(const std::string& x, const std::vector<std::int64_t>& order) {
    const std::string y =
        w_.node("Transpose", {reshape(x, {size_.heads, size_.hidden / size_.heads})});
    w_.attribute("perm", order);
    return y;
  }

  std::string layer(const std::string& x, const std::string& bias, std::int64_t index) {
    const std::string name = "layer." + std::to_string(index);
    const std::int64_t h = size_.hidden;
    const std::string q = heads_of(linear(x, name + ".query", h, h), {0, 2, 1, 3});
    const std::string k = heads_of(linear(x, name + ".key", h, h), {0, 2, 3, 1});
    const std::string v = heads_of(linear(x, name + ".value", h, h), {0, 2, 1, 3});
    const std::int64_t head_size = h / size_.heads;
    const float root = std::sqrt(static_cast<float>(head_size));
    const std::string scores =
        w_.node("Add", {w_.node("Div", {w_.node("MatMul", {q, k}), w_.real(root)}), bias});
    const std::string shares = w_.node("Softmax", {scores});
    w_.attribute("axis", -1);
    const std::string context = w_.node("Transpose", {w_.node("MatMul", {shares, v})});
    w_.attribute("perm", {0, 2, 1, 3});
    const std::string attention = linear(reshape(context, {h}), name + ".output", h, h);
    const std::string middle = norm(w_.node("Add", {attention, x}), name + ".attention_norm");
    const std::string wide = gelu(linear(middle, name + ".up", h, 4 * h));
    const std::string narrow = linear(wide, name + ".down", 4 * h, h);
    return norm(w_.node("Add", {narrow, middle}), name + ".output_norm");
  }

  Bert size_;
  Writer w_;
};

}  // namespace

Writer::Writer(std::int64_t opset) {
  model_.set_ir_version(8);
  model_.set_producer_name("pytorch");
  model_.set_producer_version("2.1.0");
  model_.add_opset_import()->set_version(opset);
  graph().set_name("main_graph");
}

std::string Writer::input(const std::string& name, const std::vector<Dim>& dims,
                          std::int32_t type) {
  auto* info = graph().add_input();
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();  // a scalar has one without dimensions
  for (const Dim& dim : dims) {
    auto* to = tensor->mutable_shape()->add_dim();
    if (const auto* size = std::get_if<std::int64_t>(&dim)) {
      to->set_dim_value(*size);
    } else if (!std::get<std::string>(dim).empty()) {
      to->set_dim_param(std::get<std::string>(dim));
    }
  }
  return name;
}

std::string Writer::weight(const std::string& name, const std::vector<std::int64_t>& dims) {
  TensorProto* tensor = graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::FLOAT);
  for (const std::int64_t extent : dims) tensor->add_dims(extent);
  tensor->set_data_location(TensorProto::EXTERNAL);
  return name;
}

std::string Writer::integers(const std::vector<std::int64_t>& values, bool scalar) {
  const std::string name = node("Constant", {});
  AttributeProto* value = last().add_attribute();
  value->set_name("value");
  value->set_type(AttributeProto::TENSOR);
  TensorProto* tensor = value->mutable_t();
  tensor->set_data_type(TensorProto::INT64);
  if (!scalar) tensor->add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t each : values) tensor->add_int64_data(each);
  return name;
}

std::string Writer::real(float value) {
  const std::string name = node("Constant", {});
  AttributeProto* attribute = last().add_attribute();
  attribute->set_name("value");
  attribute->set_type(AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(TensorProto::FLOAT);
  attribute->mutable_t()->add_float_data(value);
  return name;
}

std::string Writer::reals(const std::vector<float>& values) {
  const std::string name = real(values.front());
  auto* tensor = last().mutable_attribute(0)->mutable_t();
  tensor->add_dims(static_cast<std::int64_t>(values.size()));
  tensor->clear_float_data();
  for (const float value : values) tensor->add_float_data(value);
  return name;
}

std::string Writer::node(const std::string& op, const Names& inputs) {
  auto* made = graph().add_node();
  made->set_op_type(op);
  made->set_name(op + "_" + std::to_string(count_));
  for (const std::string& input : inputs) made->add_input(input);
  const std::string output = "t" + std::to_string(count_++);
  made->add_output(output);
  return output;
}

::onnx::NodeProto& Writer::last() {
  return *graph().mutable_node(graph().node_size() - 1);
}

Writer& Writer::attribute(const std::string& name, std::int64_t value) {
  AttributeProto* attribute = last().add_attribute();
  attribute->set_name(name);
  attribute->set_type(AttributeProto::INT);
  attribute->set_i(value);
  return *this;
}

Writer& Writer::attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  AttributeProto* attribute = last().add_attribute();
  attribute->set_name(name);
  attribute->set_type(AttributeProto::INTS);
  for (const std::int64_t value : values) attribute->add_ints(value);
  return *this;
}

void Writer::output(const std::string& name) {
  auto* info = graph().add_output();
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
}

std::string resnet50() {
  return Resnet().write();
}

std::string bert(const Bert& size) {
  return BertWriter(size).write();
}

std::int64_t parameters_of(const Bert& size) {
  const std::int64_t h = size.hidden;
  return (size.vocabulary + size.positions + 2) * h + 2 * h + size.layers * (12 * h * h + 13 * h) +
         h * h + h;
}

}  // namespace foreshard::onnx_models
