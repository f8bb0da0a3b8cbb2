// What every operator of the table must obey.

#include "operator_examples.h"
#include "tests/test.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/layout.h"

namespace foreshard::operators_contract_test {

std::vector<Shape> shapes_of(const Graph& graph, const Operator& op) {
  std::vector<Shape> shapes;
  for (const TensorId id : op.inputs) shapes.push_back(graph[id].shape);
  for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
  return shapes;
}

Flops flops_of_kernels(const std::vector<Kernel>& kernels) {
  Flops sum;
  for (const Kernel& kernel : kernels) sum += flops_of(kernel);
  return sum;
}

TEST(OperatorTable, IsSortedDocumentedAndHasExamples) {
  std::set<std::string> shown;
  for (const Example& example : operator_examples()) shown.insert(example.type);
  const auto table = operator_definitions();
  EXPECT_TRUE(std::ranges::is_sorted(table, {}, &OperatorDefinition::name));
  for (const OperatorDefinition& each : table) {
    EXPECT_EQ(find_operator(each.name), &each);
    EXPECT_FALSE(each.doc.empty()) << each.name;
    EXPECT_FALSE(each.inputs.empty()) << each.name;
    EXPECT_FALSE(each.outputs.empty()) << each.name;
    EXPECT_NE(each.infer, nullptr) << each.name;
    EXPECT_EQ(each.kernels == nullptr, each.view || each.bodies > 0) << each.name;
    EXPECT_TRUE(shown.contains(std::string(each.name))) << each.name << " has no example";
    for (const SettingDefinition& setting : each.settings)
      EXPECT_FALSE(setting.doc.empty()) << each.name << "." << setting.name;
  }
  EXPECT_EQ(find_operator("no such operator"), nullptr);
}

class OperatorContract : public testing::TestWithParam<std::size_t> {
 protected:
  const Example example_ = operator_examples()[GetParam()];
  const Graph graph_ = graph_of(example_);
  const Operator& op() const { return graph_.operators.front(); }
  const std::vector<Shape> shapes_ = shapes_of(graph_, op());
};

TEST_P(OperatorContract, TheRuleFitsTheShapes) {
  EXPECT_EQ(misfit(op().rule, shapes_), "");
  EXPECT_EQ(op().rule.inputs, op().inputs.size());
}

// A factor that is not whole can be split by 2: legal for all operands, and the work of both ranks
// together is that of one.
TEST_P(OperatorContract, EveryFactorThatMayBeSplitIs) {
  const std::vector<MeshAxis> mesh{{"x", 2}};
  const Rule& rule = op().rule;
  const Flops whole = flops_of_kernels(kernels_of(graph_, op(), shapes_));
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    if (factor.whole || factor.size % 2 != 0) continue;
    // The factor leads its dimension, or those before it have nothing to split.
    std::vector<Attribute> inputs;
    bool leads = true;
    for (std::size_t i = 0; i < rule.operands.size(); ++i) {
      Attribute attribute = replicated(shapes_[i].size());
      for (std::size_t d = 0; d < shapes_[i].size(); ++d) {
        for (const std::int32_t g : rule.operands[i][d]) {
          if (g == static_cast<std::int32_t>(f)) {
            attribute.dims[d] = {0};
          } else if (attribute.dims[d].empty() &&
                     rule.factors[static_cast<std::size_t>(g)].size > 1 &&
                     std::ranges::find(rule.operands[i][d], static_cast<std::int32_t>(f)) !=
                         rule.operands[i][d].end()) {
            leads = false;
          }
        }
      }
      if (i < rule.inputs) inputs.push_back(attribute);
    }
    if (!leads) continue;
    const auto legal = value_of(legal_signatures(rule, shapes_, inputs, mesh), factor.name);
    // A factor of outputs alone is one of several ways to use replicated inputs.
    const auto split = std::ranges::find_if(legal, [&](const Signature& signature) {
      std::vector<Attribute> all = signature.inputs;
      all.insert(all.end(), signature.outputs.begin(), signature.outputs.end());
      for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t d = 0; d < all[i].dims.size(); ++d) {
          const auto& factors = rule.operands[i][d];
          const bool has =
              std::ranges::find(factors, static_cast<std::int32_t>(f)) != factors.end();
          if (has && all[i].dims[d] != std::vector<Axis>{0}) return false;
        }
      return true;
    });
    ASSERT_NE(split, legal.end()) << factor.name;
    std::vector<Shape> local;
    std::vector<Attribute> all = split->inputs;
    all.insert(all.end(), split->outputs.begin(), split->outputs.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(fault_in({mesh_from(mesh), all[i]}, shapes_[i]), std::nullopt);
      local.push_back(largest_local_shape(shapes_[i], all[i], mesh));
    }
    EXPECT_DOUBLE_EQ(2.0 * (flops_of_kernels(kernels_of(graph_, op(), local)) / 1_FLOP),
                     whole / 1_FLOP)
        << describe(rule) << " split along " << factor.name;
  }
}

TEST_P(OperatorContract, GradientsHaveTheShapesOfTheInputs) {
  const OperatorDefinition& definition = *find_operator(op().type);
  if (definition.gradient == nullptr) return;
  const Graph training = training_graph(graph_, {});
  std::size_t at = graph_.outputs.size();
  for (const TensorId input : graph_.inputs) {
    const DType dtype = graph_[input].dtype;
    if (dtype == DType::kInt8 || dtype == DType::kInt32) continue;
    if (op().type == "batch_norm" && input == graph_.inputs[3]) continue;  // counted in dx
    // Whatever the maximum is, the loss is the same.
    if (op().type == "vocabulary_cross_entropy" && input == graph_.inputs[1]) continue;
    ASSERT_LT(at, training.outputs.size()) << graph_[input].name;
    EXPECT_EQ(training[training.outputs[at++]].shape, graph_[input].shape);
  }
  EXPECT_EQ(at, training.outputs.size());
  for (const Operator& each : training.operators)
    EXPECT_EQ(misfit(each.rule, shapes_of(training, each)), "") << each.name;
}

std::string name_of_example(const testing::TestParamInfo<std::size_t>& info) {
  return operator_examples()[info.param].type + "_" + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Operators, OperatorContract,
                         testing::Range<std::size_t>(0, operator_examples().size()),
                         name_of_example);

std::string fault(OperatorSpec spec, const std::vector<TensorType>& inputs) {
  Graph graph{.name = "g", .tensors = {}, .operators = {}};
  for (const TensorType& type : inputs) spec.inputs.push_back(add_input(graph, "in", type));
  spec.name = "op";
  return message_of(add_operator(graph, std::move(spec)));
}

TEST(OperatorFault, NamesWhatIsWrong) {
  const TensorType a{DType::kBf16, {4, 8}};
  const TensorType b{DType::kBf16, {6, 10}};
  EXPECT_THAT(fault({.type = "matmull"}, {a, b}),
              HasSubstr("unknown operator 'matmull'; did you mean 'matmul'?"));
  EXPECT_THAT(fault({.type = "matmul"}, {a, b}),
              HasSubstr("operator 'op' (matmul): shapes [4, 8] and [6, 10] do not multiply: 8 "
                        "meets 6"));
  EXPECT_THAT(fault({.type = "matmul"}, {a}), HasSubstr("has 1 inputs; it takes a, b"));
  EXPECT_THAT(fault({.type = "softmax", .settings = {{"axes", std::int64_t{1}}}}, {a}),
              HasSubstr("unknown setting 'axes'; did you mean 'axis'?"));
  EXPECT_THAT(fault({.type = "softmax", .settings = {{"axis", std::int64_t{2}}}}, {a}),
              HasSubstr("axis 2 is outside -2 to 1"));
  EXPECT_THAT(fault({.type = "softmax", .settings = {{"axis", 0.5}}}, {a}),
              HasSubstr("setting 'axis' must be integer, not number '0.5'"));
  EXPECT_THAT(fault({.type = "unary", .settings = {{"operation", std::string("gelo")}}}, {a}),
              HasSubstr("unknown 'gelo'; did you mean 'gelu'?"));
  EXPECT_THAT(fault({.type = "reshape", .settings = {{"shape", Integers{5, -1}}}}, {a}),
              HasSubstr("does not divide the 32 elements"));
  EXPECT_THAT(fault({.type = "binary", .settings = {{"operation", std::string("add")}}}, {a, b}),
              HasSubstr("do not broadcast"));
  EXPECT_THAT(fault({.type = "conv", .settings = {{"pads", Integers{1, 2, 3}}}},
                    {{DType::kBf16, {4, 6, 8, 8}}, {DType::kBf16, {4, 6, 3, 3}}}),
              HasSubstr("pads [1, 2, 3] must have 4 numbers"));
}

}  // namespace foreshard::operators_contract_test
