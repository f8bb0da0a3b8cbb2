// ONNX models as graphs: parameters and arithmetic counted by hand.
#include "strategies/graph/onnx/import.h"

#include "tests/strategies/onnx/models.h"
#include "tests/test.h"

#include "strategies/graph/operators/build.h"

namespace foreshard::onnx_file {
namespace {

using onnx_models::Writer;

Imported imported(const std::string& bytes, const ReadOptions& read,
                  const ImportOptions& options = {}) {
  return value_of(import_onnx(value_of(read_onnx(bytes, read)), options));
}

std::map<std::string, int> types_of(const Graph& graph) {
  std::map<std::string, int> types;
  for (const Operator& op : graph.operators) ++types[op.type];
  return types;
}

double product_flops(const Graph& graph) {
  double sum = 0;
  for (const Operator& op : graph.operators) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back(graph[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
    for (const Kernel& kernel : kernels_of(graph, op, shapes))
      if (std::holds_alternative<Gemm>(kernel)) sum += flops_of(kernel).in_base();
  }
  return sum;
}

// Parameters by hand: 9,408 of the first convolution; stages of 212,992, 1,212,416, 7,077,888 and
// 14,942,208 in their convolutions; 2 x 26,560 of the batch norms; 2,048 x 1,000 + 1,000 of the
// classifier. Multiply-adds per image: 4.089 G (He et al. 2016 count 3.8 G for v1; v1.5 strides
// later).
TEST(ImportOnnx, CountsResnet50) {
  const Imported model = imported(onnx_models::resnet50(), {.batch = 2});
  EXPECT_EQ(parameter_elements(model.graph), 25'557'032);
  EXPECT_EQ(parameter_elements(model.graph),
            9'408 + 212'992 + 1'212'416 + 7'077'888 + 14'942'208 + 2 * 26'560 + 2'049'000);
  EXPECT_NEAR(product_flops(model.graph) / 2 / 2, 4.089e9, 0.001e9);
  EXPECT_EQ(model.batch, 2);
  const auto types = types_of(model.graph);
  EXPECT_EQ(types.at("conv"), 53);
  EXPECT_EQ(types.at("batch_norm"), 53);
  EXPECT_EQ(types.at("batch_statistics"), 53);
}

// Evaluation takes the statistics of the file.
TEST(ImportOnnx, EvaluatesWithoutBatchStatistics) {
  const Imported model = imported(onnx_models::resnet50(), {.batch = 2}, {.training = false});
  EXPECT_EQ(types_of(model.graph).count("batch_statistics"), 0u);
}

// 109,482,240 parameters for BERT-base. Multiply-adds forward per sample of s tokens: 12 h^2 s + 2
// h s^2 of each layer, h^2 of the pooler.
TEST(ImportOnnx, CountsBert) {
  const double s = 128;
  const double h = 768;
  const Imported model = imported(onnx_models::bert(), {.dims = {{"sequence", 128}}, .batch = 4});
  EXPECT_EQ(parameter_elements(model.graph), 109'482'240);
  EXPECT_EQ(parameter_elements(model.graph), onnx_models::parameters_of({}));
  EXPECT_DOUBLE_EQ(product_flops(model.graph),
                   4 * 2 * (12 * (12 * h * h * s + 2 * h * s * s) + h * h));
}

// Two norms and one GeLU of each layer, and the norm of the embeddings.
TEST(ImportOnnx, PutsPiecesTogether) {
  const Imported model =
      imported(onnx_models::bert({.layers = 3}), {.dims = {{"sequence", 16}}, .batch = 2});
  const auto types = types_of(model.graph);
  EXPECT_EQ(types.at("layer_norm"), 7);
  EXPECT_EQ(types.at("embedding"), 3);
  EXPECT_EQ(types.count("reduce"), 0u);
  EXPECT_THAT(model.remarks,
              Contains("7 layer norms and 3 GeLUs that the file has in pieces run as "
                       "one operator each"));
}

// A value in between that is read elsewhere keeps the pieces apart.
TEST(ImportOnnx, LeavesPiecesThatOthersRead) {
  Writer w;
  const std::string x = w.input("x", {4, 8});
  const std::string erf = w.node("Erf", {w.node("Div", {x, w.real(1.41421356F)})});
  const std::string product = w.node("Mul", {x, w.node("Add", {erf, w.real(1)})});
  w.output(w.node("Mul", {product, w.real(0.5F)}));
  EXPECT_EQ(imported(w.bytes(), {}).graph.operators.size(), 1u);
  w.output(erf);
  EXPECT_EQ(imported(w.bytes(), {}).graph.operators.size(), 5u);
}

TEST(ImportOnnx, NamesEveryOperatorWithoutCounterpart) {
  Writer w;
  const std::string x = w.input("x", {4, 8});
  w.output(w.node("CumSum", {w.node("Selu", {x}), w.integers({0}, true)}));
  const auto model = value_of(read_onnx(w.bytes(), {}));
  EXPECT_THAT(
      error_of(import_onnx(model, {})),
      Fails(Error::Code::kUnsupported,
            AllOf(HasSubstr("operators are not supported: 'CumSum' (opset 13, node 'CumSum_"),
                  HasSubstr("'Selu' (opset 13, node 'Selu_0')"),
                  HasSubstr("or write the graph in YAML"))));
}

TEST(ImportOnnx, SaysWhereAttributesContradictOperands) {
  Writer w;
  const std::string x = w.input("x", {2, 6, 8, 8});
  const std::string y = w.node("Conv", {x, w.weight("w", {4, 6, 3, 3})});
  w.attribute("kernel_shape", {5, 5});
  w.output(y);
  const auto model = value_of(read_onnx(w.bytes(), {}));
  EXPECT_THAT(message_of(import_onnx(model, {})),
              HasSubstr("is [2, 4, 4, 4] by its attributes, but [2, 4, 6, 6] by its operands"));
}

// By hand: [2, 6, 8, 8] by 2 in height: [2, 6, 8, 1, 8] to [2, 6, 8, 2, 8], which is 1,536 elements
// written. A transposed convolution multiplies as its convolution does: per input element, 4 x 3
// x 3.
TEST(ImportOnnx, TransposedConvolutionsAndRepeatedElements) {
  Writer w;
  const std::string x = w.input("x", {2, 6, 8, 8});
  w.output(w.node("Resize", {x, "", w.reals({1, 1, 2, 1})}));
  w.output(w.node("ConvTranspose", {x, w.weight("up", {6, 4, 3, 3})}));
  w.attribute("strides", {2, 2});
  const Imported model = imported(w.bytes(), {});
  EXPECT_EQ(types_of(model.graph),
            (std::map<std::string, int>{{"conv_data_gradient", 1}, {"expand", 1}, {"reshape", 2}}));
  EXPECT_DOUBLE_EQ(product_flops(model.graph), 2.0 * (2 * 6 * 8 * 8) * (4 * 3 * 3));
  EXPECT_EQ(parameter_elements(model.graph), 6 * 4 * 9);
  Writer linear;
  linear.output(
      linear.node("Resize", {linear.input("x", {1, 1, 4, 4}), "", linear.reals({1, 1, 2, 2})}));
  linear.last().add_attribute()->CopyFrom([] {
    ::onnx::AttributeProto mode;
    mode.set_name("mode");
    mode.set_type(::onnx::AttributeProto::STRING);
    mode.set_s("linear");
    return mode;
  }());
  const auto read = value_of(read_onnx(linear.bytes(), {}));
  EXPECT_THAT(import_onnx(read, {}).error().message, HasSubstr("mode 'linear' is not supported"));
}

// A mask that something reads is that of the operator; in evaluation it is there, and nothing is
// dropped.
TEST(ImportOnnx, DropoutWithItsMask) {
  Writer w(7);  // whose schema does not say what the mask is
  const std::string x = w.input("x", {4, 8});
  w.output(w.node("Dropout", {x}));
  w.last().add_output("mask");
  w.output("mask");
  const Graph training = imported(w.bytes(), {}).graph;
  EXPECT_EQ(training.outputs, training.operators.at(0).outputs);
  const Graph forward = imported(w.bytes(), {}, {.training = false}).graph;
  EXPECT_TRUE(forward.operators.empty());
  EXPECT_EQ(forward[forward.outputs[1]].shape, (Shape{4, 8}));
}

// The zoo's "light" models have a shape in place of each weight.
TEST(ImportOnnx, WeightsThatTheFileAbbreviates) {
  Writer w;
  const std::string x = w.input("x", {4, 8});
  auto& shape = *w.graph().add_initializer();
  shape.set_name("shape");
  shape.set_data_type(::onnx::TensorProto::INT64);
  shape.add_dims(2);
  shape.add_int64_data(8);
  shape.add_int64_data(16);
  w.output(w.node("MatMul", {x, w.node("ConstantOfShape", {"shape"})}));
  EXPECT_EQ(parameter_elements(imported(w.bytes(), {}).graph), 8 * 16);
}

// Two images, flattened by a Reshape with their number in it.
std::string of_two(const std::vector<std::int64_t>& flat, bool transposed = false) {
  Writer w;
  std::string x = w.input("x", {2, 3, 4, 4});
  if (transposed) {
    x = w.node("Transpose", {x});
    w.attribute("perm", {1, 0, 2, 3});
  }
  const std::string rows = w.node("Reshape", {x, w.integers(flat)});
  w.output(w.node("Relu", {rows}));
  return w.bytes();
}

TEST(ImportOnnx, TheBatchThatAFileStates) {
  const auto shape_of_result = [](const std::string& bytes) {
    const Imported model = imported(bytes, {.batch = 6, .rebatch = true});
    EXPECT_EQ(model.batch, 6);
    EXPECT_THAT(model.remarks, Contains("the file's batch is written as 2; it is 6 here"));
    return model.graph.outputs.empty() ? Shape{} : model.graph[model.graph.outputs[0]].shape;
  };
  EXPECT_EQ(shape_of_result(of_two({2, 48})), (Shape{6, 48}));
  EXPECT_EQ(shape_of_result(of_two({2, -1})), (Shape{6, 48}));
  EXPECT_EQ(shape_of_result(of_two({0, -1})), (Shape{6, 48}));
  EXPECT_EQ(shape_of_result(of_two({6, 16})), (Shape{18, 16}));  // images times channels
  EXPECT_EQ(imported(of_two({2, 48}), {.batch = 6}).batch, 2);   // not asked for
  const auto fault = [](const std::string& bytes) {
    return read_onnx(bytes, {.batch = 6, .rebatch = true}).error().message;
  };
  EXPECT_THAT(fault(of_two({3, 32}, true)),
              AllOf(HasSubstr("its batch is written as 2, and cannot become 6: node 'Reshape"),
                    HasSubstr("export it with an open batch dimension")));
  Writer w;
  w.output(w.node("ReduceSum", {w.input("x", {2, 3}), w.integers({0})}));
  EXPECT_THAT(fault(w.bytes()), HasSubstr("its result does not grow with the batch"));
}

// Shapes that ONNX infers are those that our operators give: every operator once.
TEST(ImportOnnx, AgreesWithOnnxOnShapes) {
  Writer w;
  const std::string x = w.input("x", {2, 6, 8, 8});
  const auto check = [&](const std::string& y) { w.output(y); };
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Neg", "Abs", "Sqrt", "Softplus",
                         "Identity", "Elu", "LeakyRelu", "Floor", "Reciprocal", "HardSigmoid"})
    check(w.node(op, {x}));
  check(w.node("GreaterOrEqual", {x, w.real(0)}));
  check(w.node("LRN", {x}));
  w.attribute("size", 5);
  check(w.node("ConvTranspose", {x, w.weight("up", {6, 2, 3, 3}), w.weight("up.bias", {4})}));
  w.attribute("group", 2).attribute("strides", {2, 2}).attribute("pads", {1, 1, 1, 1});
  w.attribute("output_padding", {1, 1});
  check(w.node("ConvTranspose", {x, w.weight("same", {6, 4, 4, 4})}));
  w.attribute("strides", {2, 2}).attribute("output_shape", {16, 16});
  check(w.node("Resize", {x, "", w.reals({1, 1, 2, 3})}));
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"})
    check(w.node(op, {x, w.weight(std::string(op) + ".other", {6, 1, 8})}));
  check(w.node("Softmax", {x}));
  check(w.node("GlobalAveragePool", {x}));
  check(w.node("AveragePool", {x}));
  w.attribute("kernel_shape", {3, 3}).attribute("strides", {2, 2});
  check(w.node("Conv", {x, w.weight("grouped", {4, 3, 3, 3}), w.weight("bias", {4})}));
  w.attribute("group", 2).attribute("pads", {1, 0, 1, 0});
  check(w.node("ReduceSum", {x, w.integers({1, -1})}));
  w.attribute("keepdims", 0);
  check(w.node("Concat", {x, x}));
  w.attribute("axis", 1);
  check(w.node("Slice", {x, w.integers({1, -4}), w.integers({5, 1000}), w.integers({1, 3})}));
  check(w.node("Pad", {x, w.integers({0, 0, 1, 2, 0, 0, 3, 0})}));
  check(w.node("Expand", {w.node("Unsqueeze", {x, w.integers({0})}), w.integers({3, 1, 1, 1, 1})}));
  check(w.node("Where", {w.node("Greater", {x, w.real(0)}), x, w.real(1)}));
  check(w.node("Cast", {x}));
  w.attribute("to", ::onnx::TensorProto::INT32);
  check(w.node("Gather", {x, w.integers({0, 2, 2})}));
  w.attribute("axis", 1);
  const auto model = value_of(read_onnx(w.bytes(), {}));
  const auto result = value_of(import_onnx(model, {}));
  ASSERT_EQ(result.graph.outputs.size(), model.main.outputs.size());
  for (std::size_t i = 0; i < model.main.outputs.size(); ++i) {
    const Value& value = model.values[static_cast<std::size_t>(model.main.outputs[i])];
    EXPECT_EQ(result.graph[result.graph.outputs[i]].shape, value.shape) << value.name;
  }
}

}  // namespace
}  // namespace foreshard::onnx_file
