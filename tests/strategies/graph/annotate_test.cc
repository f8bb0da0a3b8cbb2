// Annotations that are made where the user gives none, and the user's own.
#include "strategies/graph/annotate.h"

#include "tests/test.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"

namespace foreshard::annotate_test {

const std::vector<MeshAxis> kMesh{{"tensor", 4}, {"data", 2}};

TensorId added(Graph& graph, OperatorSpec spec) {
  return value_of(add_single(graph, std::move(spec)));
}

// Embedding, then two matrices with a GeLU between, then a matrix of `odd` columns.
struct Example {
  Graph graph{.name = "example"};
  TensorId table, up, bias, down, last;

  explicit Example(std::int64_t odd = 6) {
    const TensorId ids = add_input(graph, "ids", {DType::kInt64, {8, 16}});
    table = add_parameter(graph, "encoder.table", {DType::kBf16, {100, 32}});
    up = add_parameter(graph, "encoder.up.weight", {DType::kBf16, {32, 64}});
    bias = add_parameter(graph, "encoder.up.bias", {DType::kBf16, {64}});
    down = add_parameter(graph, "encoder.down.weight", {DType::kBf16, {64, 32}});
    last = add_parameter(graph, "last.weight", {DType::kBf16, {33, odd}});
    const TensorId x = added(graph, {.type = "embedding", .name = "x", .inputs = {ids, table}});
    const TensorId wide = added(graph, {.type = "matmul", .name = "up", .inputs = {x, up}});
    const TensorId biased = added(graph, {.type = "binary",
                                          .name = "biased",
                                          .inputs = {wide, bias},
                                          .settings = {{"operation", std::string("add")}}});
    const TensorId active = added(graph, {.type = "unary",
                                          .name = "active",
                                          .inputs = {biased},
                                          .settings = {{"operation", std::string("gelu")}}});
    const TensorId y = added(graph, {.type = "matmul", .name = "down", .inputs = {active, down}});
    const TensorId padded =
        added(graph, {.type = "pad",
                      .name = "padded",
                      .inputs = {y},
                      .settings = {{"axis", std::int64_t{2}}, {"after", std::int64_t{1}}}});
    graph.outputs = {added(graph, {.type = "matmul", .name = "end", .inputs = {padded, last}})};
  }

  std::string lies(TensorId id) const { return describe(*graph[id].pinned, kMesh); }
};

// Rows of the table, columns of the first matrix, rows of the second; neither 33 nor 6 divides
// by 4.
TEST(Annotate, FindsColumnsAndRows) {
  Example example;
  const auto remarks = value_of(annotate(example.graph, kMesh, {.batch = 8}));
  EXPECT_EQ(example.lies(example.graph.inputs[0]), "[S(data), -]");
  EXPECT_EQ(example.lies(example.table), "[S(tensor), -]");
  EXPECT_EQ(example.lies(example.up), "[-, S(tensor)]");
  EXPECT_EQ(example.lies(example.down), "[S(tensor), -]");
  EXPECT_FALSE(example.graph[example.last].pinned);
  EXPECT_THAT(remarks,
              ElementsAre("parameter 'last.weight' [33, 6] has no dimension that 4 ways of "
                          "'tensor' can split: it is whole on every rank"));
  const auto sharded = value_of(distribute(example.graph, kMesh));
  EXPECT_EQ(describe(sharded.attributes[example.bias.index()], kMesh), "[S(tensor)]");
}

// `up` is split along its columns although its input is split along them: that is converted. Its
// weight and what follows lie so.
TEST(Annotate, SplitsOperators) {
  Example example;
  const auto up = std::ranges::find(example.graph.operators, "up", &Operator::name);
  const Rule& rule = up->rule;
  const auto factor = [&](std::size_t operand, std::size_t dim) {
    return rule.factors[static_cast<std::size_t>(rule.operands[operand][dim].front())].name;
  };
  const std::string rows = factor(1, 0);
  const std::string columns = factor(1, 1);
  value_of(annotate(example.graph, kMesh,
                    {.annotations = {{.tensor = "x", .dims = {"data", "-", "tensor"}},
                                     {.op = "u*", .splits = {{columns, "tensor"}}}},
                     .batch = 8}));
  const auto sharded = value_of(distribute(example.graph, kMesh));
  const auto at = static_cast<std::size_t>(up - example.graph.operators.begin());
  const auto operand = [&](std::size_t index) {
    return describe(sharded.operators[at].operands[index], kMesh);
  };
  EXPECT_EQ(operand(0), "[-, -, -]");
  EXPECT_EQ(operand(1), "[-, S(tensor)]");
  EXPECT_EQ(operand(2), "[-, -, S(tensor)]");
  EXPECT_EQ(sharded.operators[at].conversions.size(), 1U);

  const auto fault = [&](const std::string& name, std::map<std::string, std::string> splits) {
    Graph graph = Example().graph;
    const auto result =
        annotate(graph, kMesh, {.annotations = {{.op = name, .splits = std::move(splits)}}});
    return message_of(result, "none");
  };
  EXPECT_THAT(fault("upp", {}),
              HasSubstr("annotation 'upp' matches no operator; did you mean 'up'"));
  EXPECT_THAT(fault("up", {{"other", "tensor"}}),
              HasSubstr("operator 'up' has no factor 'other' (rule "));
  EXPECT_THAT(fault("up", {{rows, "tensr"}}), HasSubstr("no mesh axis is called 'tensr'"));
  EXPECT_THAT(fault("up", {{rows, "tensor"}, {columns, "tensor"}}),
              HasSubstr("operator 'up' cannot be split so"));
}

TEST(Annotate, LetsTheUserDecide) {
  Example example;
  const auto remarks = value_of(
      annotate(example.graph, kMesh,
               {.annotations = {{.tensor = "encoder.*.weight", .dims = {"-", "-"}},
                                {.tensor = "encoder.down.weight", .dims = {"tensor+data", "-"}}},
                .batch = 8}));
  EXPECT_EQ(example.lies(example.up), "[-, -]");
  EXPECT_EQ(example.lies(example.down), "[S(tensor, data), -]");
}

TEST(Annotate, SaysWhatDoesNotFit) {
  const auto fault = [](Annotation annotation) {
    Example example;
    const auto result =
        annotate(example.graph, kMesh, {.annotations = {std::move(annotation)}, .batch = 8});
    return message_of(result, "no fault");
  };
  EXPECT_EQ(fault({.tensor = "last.wait", .dims = {"-"}}),
            "annotation 'last.wait' matches no tensor; did you mean 'last.weight'?");
  EXPECT_EQ(fault({.tensor = "*.bias", .dims = {"-", "tensor"}}),
            "annotation '*.bias' has 2 dimensions, but tensor 'encoder.up.bias' has 1: [64]");
  EXPECT_EQ(fault({.tensor = "*.bias", .dims = {"tenser"}}),
            "annotation '*.bias': no mesh axis is called 'tenser'; there are tensor, data");
}

TEST(Annotate, LeavesInputsWithoutTheBatchWhole) {
  Example example;
  const auto remarks = value_of(annotate(example.graph, {{"data", 2}}, {.batch = 4}));
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("input 'ids' [8, 16] is whole on every rank")));
}

TEST(Annotate, MatchesPatterns) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*c", "abbbc"));
  EXPECT_TRUE(matches("a*b*c", "a.b.b.c"));
  EXPECT_TRUE(matches("layer.*.weight", "layer.11.up.weight"));
  EXPECT_FALSE(matches("a*c", "abbbcd"));
  EXPECT_FALSE(matches("abc", "abcd"));
  EXPECT_FALSE(matches("", "a"));
}

}  // namespace foreshard::annotate_test
