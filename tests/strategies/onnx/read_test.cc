// Reading ONNX files: shapes, folding of what only computes shapes, and what is said about files
// that cannot be read.

#include "tests/strategies/onnx/models.h"
#include "tests/test.h"

#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file::read_test {

using onnx_models::Writer;

Model read(const std::string& bytes, const ReadOptions& options) {
  return value_of(read_onnx(bytes, options));
}

std::string fault(const std::string& bytes, const ReadOptions& options = {}) {
  return message_of(read_onnx(bytes, options), "read without a fault");
}

const Value& value_named(const Model& model, const std::string& name) {
  for (const Value& value : model.values)
    if (value.name == name) return value;
  ADD_FAILURE() << "no value " << name;
  static const Value none;
  return none;
}

std::multiset<std::string> operators_of(const Model& model) {
  std::multiset<std::string> ops;
  for (const Node& node : model.main.nodes) ops.insert(node.op);
  return ops;
}

// 224 -> 112 (7 x 7, stride 2) -> 56 (pool) -> 56, 28, 14, 7; 53 convolutions in all.
TEST(ReadOnnx, FollowsTheShapesOfResnet50) {
  const Model model = read(onnx_models::resnet50(), {.dims = {{"batch", 4}}});
  const auto ops = operators_of(model);
  EXPECT_EQ(ops.count("Conv"), 53u);
  EXPECT_EQ(ops.count("BatchNormalization"), 53u);
  EXPECT_EQ(ops.count("Relu"), 49u);
  EXPECT_EQ(model.folded, 0);
  std::vector<Shape> pooled;
  for (const Node& node : model.main.nodes) {
    const Shape& shape = model.values[static_cast<std::size_t>(node.outputs[0])].shape;
    if (node.op == "MaxPool" || node.op == "GlobalAveragePool" || node.op == "Gemm")
      pooled.push_back(shape);
  }
  EXPECT_THAT(pooled, ElementsAre(Shape{4, 64, 56, 56}, Shape{4, 2048, 1, 1}, Shape{4, 1000}));
}

// All that computes shapes is gone; the positions are a constant of the sequence's length.
TEST(ReadOnnx, FoldsTheShapesOfBert) {
  const Model model =
      read(onnx_models::bert({.layers = 2}), {.dims = {{"batch", 3}, {"sequence", 128}}});
  const auto ops = operators_of(model);
  for (const char* gone : {"Shape", "Concat", "Constant", "Slice", "Range"})
    EXPECT_EQ(ops.count(gone), 0u) << gone;
  EXPECT_EQ(ops.count("MatMul"), 2u * 8);
  EXPECT_EQ(ops.count("Reshape"), 2u * 4);
  EXPECT_GT(model.folded, 100);
  for (const Node& node : model.main.nodes) {
    if (node.op != "Gather" || value_named(model, "embeddings.position").name !=
                                   model.values[static_cast<std::size_t>(node.inputs[0])].name)
      continue;
    const Value& positions = model.values[static_cast<std::size_t>(node.inputs[1])];
    EXPECT_EQ(positions.shape, (Shape{1, 128}));
    EXPECT_EQ(positions.kind, Value::Kind::kConstant);
    ASSERT_TRUE(positions.numbers);
    EXPECT_EQ(std::get<0>(*positions.numbers)[127], 127);
  }
}

TEST(ReadOnnx, NamesTheDimensionsThatAreLeftOpen) {
  EXPECT_EQ(fault(onnx_models::bert({.layers = 1})),
            "dimensions are left open: 'batch' or 'sequence'; give the sizes, for example dims: "
            "{batch: 1, sequence: 1}");
  Writer w;
  w.output(w.node("Relu", {w.input("x", {"", 4})}));
  EXPECT_EQ(fault(w.bytes()),
            "a dimension is left open: 'x[0]'; give the size, for example dims: {\"x[0]\": 1}");
  EXPECT_EQ(read(w.bytes(), {.dims = {{"x[0]", 7}}}).values[0].shape, (Shape{7, 4}));
  EXPECT_EQ(read(w.bytes(), {.batch = 5}).values[0].shape, (Shape{5, 4}));
  EXPECT_EQ(fault(w.bytes(), {.dims = {{"x[0]", 7}, {"bach", 2}}}),
            "dims: no input has an open dimension 'bach'; there are x[0]");
}

TEST(ReadOnnx, FillsTheBatchWhereverItsNameStands) {
  const Model model =
      read(onnx_models::bert({.layers = 1}), {.dims = {{"sequence", 8}}, .batch = 6});
  EXPECT_EQ(value_named(model, "attention_mask").shape, (Shape{6, 8}));
}

TEST(ReadOnnx, SaysWhatItDoesNotKnow) {
  Writer w;
  w.model().add_opset_import()->set_domain("com.example");
  w.model().mutable_opset_import(1)->set_version(3);
  w.output(w.node("Fancy", {w.input("x", {2, 4})}));
  w.last().set_domain("com.example");
  EXPECT_EQ(
      fault(w.bytes()),
      "node 'Fancy_0': operator 'com.example::Fancy' (opset 3) is not supported: operators of "
      "this domain are not supported; export the model with ONNX's own operators, or write "
      "the graph in YAML");
  w.last().clear_domain();
  EXPECT_THAT(fault(w.bytes()), HasSubstr("node 'Fancy_0': operator 'Fancy' (opset 13) is not"));
  w.last().set_op_type("MatMul");
  w.last().add_input("nowhere");
  EXPECT_EQ(fault(w.bytes()),
            "node 'Fancy_0' (MatMul) reads 'nowhere', which nothing before it computes");
}

TEST(ReadOnnx, SaysWhereShapesContradict) {
  Writer w;
  w.output(w.node("MatMul", {w.input("a", {2, 3}), w.input("b", {4, 5})}));
  EXPECT_THAT(fault(w.bytes()), HasSubstr("node 'MatMul_0' (MatMul): "));
}

TEST(ReadOnnx, SaysWhereAShapeIsKnownOnlyWhenItRuns) {
  Writer w;
  w.output(w.node("NonZero", {w.input("x", {2, 3})}));
  EXPECT_THAT(fault(w.bytes()),
              HasSubstr("the shape of 't0' depends on values that are known only"));
}

TEST(ReadOnnx, RefusesWhatIsNoOnnxFile) {
  EXPECT_THAT(fault(""), HasSubstr("it has no graph"));
  EXPECT_THAT(fault("layers: 3\n"),
              HasSubstr("it is not an ONNX file, or it is truncated or corrupt"));
  const std::string whole = onnx_models::bert({.layers = 1});
  EXPECT_THAT(fault(whole.substr(0, whole.size() / 2)), HasSubstr("truncated or corrupt"));
}

TEST(ReadOnnx, RefusesWindowsThatStandStill) {
  for (const std::string op : {"Conv", "MaxPool", "AveragePool"}) {
    Writer w;
    const std::string x = w.input("x", {2, 6, 8, 8});
    const std::string y =
        op == "Conv" ? w.node(op, {x, w.weight("w", {4, 6, 3, 3})}) : w.node(op, {x});
    w.attribute("kernel_shape", {3, 3}).attribute("strides", {1, 0});
    w.output(y);
    EXPECT_THAT(fault(w.bytes()), HasSubstr("'strides' must be at least 1, found 0")) << op;
  }
}

TEST(ReadOnnx, RefusesAValueThatIsWrittenTwice) {
  Writer nodes;
  const std::string y = nodes.node("Relu", {nodes.input("x", {2, 6})});
  nodes.node("Tanh", {"x"});
  nodes.last().set_output(0, y);
  nodes.output(y);
  EXPECT_THAT(fault(nodes.bytes()), HasSubstr("'" + y + "' is written twice"));
  Writer weights;
  weights.weight("w", {6, 4});
  weights.output(weights.node("MatMul", {weights.input("x", {2, 6}), weights.weight("w", {6, 8})}));
  EXPECT_THAT(fault(weights.bytes()), HasSubstr("'w' is written twice"));
}

// Whatever is cut off or turned over, the answer is an error or a model: never a crash.
TEST(ReadOnnx, SurvivesDamage) {
  const std::string whole = onnx_models::bert({.layers = 1, .hidden = 8, .heads = 2});
  const ReadOptions options{.dims = {{"batch", 1}, {"sequence", 4}}};
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    const auto model = read_onnx(damaged, options);
    if (!model) {
      EXPECT_FALSE(model.error().message.empty());
    }
  }
}

// if (x's rows == 2) relu else tanh: decided by the shape, so one branch is all there is.
std::string with_condition(bool decided) {
  Writer w;
  const std::string x = w.input("x", {2, 4});
  std::string which;
  if (decided) {
    const std::string rows = w.node("Gather", {w.node("Shape", {x}), w.integers({0}, true)});
    which = w.node("Equal", {rows, w.integers({2}, true)});
  } else {
    which = w.input("which", {}, ::onnx::TensorProto::BOOL);
  }
  const std::string y = w.node("If", {which});
  for (const bool yes : {true, false}) {
    auto* branch = w.last().add_attribute();
    branch->set_name(yes ? "then_branch" : "else_branch");
    branch->set_type(::onnx::AttributeProto::GRAPH);
    auto* inner = branch->mutable_g()->add_node();
    inner->set_op_type(yes ? "Relu" : "Tanh");
    inner->add_input(x);
    inner->add_output(yes ? "a" : "b");
    branch->mutable_g()->add_output()->set_name(yes ? "a" : "b");
  }
  w.output(y);
  return w.bytes();
}

TEST(ReadOnnx, TakesTheBranchThatShapesDecide) {
  EXPECT_EQ(operators_of(read(with_condition(true), {})), (std::multiset<std::string>{"Relu"}));
  const Model open = read(with_condition(false), {});
  ASSERT_EQ(open.main.nodes.size(), 1u);
  EXPECT_EQ(open.bodies.at(open.main.nodes[0].bodies.at("else_branch")).nodes[0].op, "Tanh");
  EXPECT_EQ(value_named(open, "t0").shape, (Shape{2, 4}));
}

TEST(ReadOnnx, CountsTheIterationsOfALoop) {
  const auto loop = [](bool counted) {
    Writer w;
    const std::string x = w.input("x", {2, 4});
    const std::string count =
        counted ? w.integers({6}, true) : w.input("n", {}, ::onnx::TensorProto::INT64);
    const std::string y = w.node("Loop", {count, "", x});
    auto* body = w.last().add_attribute();
    body->set_name("body");
    body->set_type(::onnx::AttributeProto::GRAPH);
    auto* graph = body->mutable_g();
    for (const char* input : {"i", "go", "state"}) graph->add_input()->set_name(input);
    auto* inner = graph->add_node();
    inner->set_op_type("Relu");
    inner->add_input("state");
    inner->add_output("next");
    for (const char* output : {"go", "next"}) graph->add_output()->set_name(output);
    w.output(y);
    return w.bytes();
  };
  const Model model = read(loop(true), {});
  ASSERT_EQ(model.main.nodes.size(), 1u);
  EXPECT_EQ(std::get<std::int64_t>(model.main.nodes[0].attributes.at("count")), 6);
  EXPECT_EQ(model.bodies.at(model.main.nodes[0].bodies.at("body")).nodes.size(), 1u);
  EXPECT_THAT(fault(loop(false)), HasSubstr("how often this Loop runs is known only when it runs"));
}

}  // namespace foreshard::onnx_file::read_test
