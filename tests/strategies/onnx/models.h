/// \file
/// ONNX models as exporters write them, made through protobuf: no weights, only their shapes.
#pragma once

#include <cstdint>
#include <onnx/onnx_pb.h>
#include <string>
#include <variant>
#include <vector>

namespace foreshard::onnx_models {

/// A size, or the name of a dynamic dimension.
using Dim = std::variant<std::int64_t, std::string>;
using Names = std::vector<std::string>;

/// Writes one graph.
class Writer {
 public:
  explicit Writer(std::int64_t opset = 13);

  std::string input(const std::string& name, const std::vector<Dim>& dims,
                    std::int32_t type = ::onnx::TensorProto::FLOAT);
  /// A float initializer whose elements lie in another file.
  std::string weight(const std::string& name, const std::vector<std::int64_t>& dims);
  /// Small constants, as Constant nodes.
  std::string integers(const std::vector<std::int64_t>& values, bool scalar = false);
  std::string real(float value);
  std::string reals(const std::vector<float>& values);

  /// A node with one output, which it returns; attributes are set on `last()`.
  std::string node(const std::string& op, const Names& inputs);
  ::onnx::NodeProto& last();
  Writer& attribute(const std::string& name, std::int64_t value);
  Writer& attribute(const std::string& name, const std::vector<std::int64_t>& values);

  void output(const std::string& name);
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  ::onnx::ModelProto& model() { return model_; }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  ::onnx::ModelProto model_;
  int count_ = 0;
};

/// ResNet-50 v1.5 (He et al. 2016; stride in the 3 x 3 convolutions): convolution, batch norm, ReLU
/// and so on as nodes of their own; input [batch, 3, 224, 224].
/// 25,557,032 parameters, 4.09 G multiply-adds per image.
std::string resnet50();

struct Bert {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
};
/// BERT (Devlin et al. 2018) as PyTorch exports it: token ids, types and mask of [batch, sequence];
/// shapes computed by nodes, layer norms and GeLU in pieces, sequence output and pooled output.
std::string bert(const Bert& size = {});
/// Its parameters: (v + p + 2) h + 2 h, 12 h^2 + 13 h of each layer, h^2 + h of the pooler.
std::int64_t parameters_of(const Bert& size);

}  // namespace foreshard::onnx_models
