// Graphs from YAML: what comes out, and where each fault is said to be.
#include "strategies/graph/graph_config.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace graph_config_test {

using testing::AllOf;
using testing::HasSubstr;

Result<Graph> read(const std::string& text) {
  yaml::Loader loader;
  FORESHARD_ASSIGN(const auto config, loader.read_text<GraphConfig>(text, "g.yaml"));
  const auto mesh = mesh_of(config);
  return build_graph(config, mesh, loader);
}

std::string fault(const std::string& text) {
  const auto graph = read(text);
  return graph ? "accepted" : graph.error().message;
}

const std::string kHead = R"(name: g
mesh: [{name: data, size: 2}, {name: tensor, size: 4}]
tensors:
  - {name: x, role: input, dtype: bf16, shape: [8, 16], dims: [data, "-"]}
  - {name: w, role: parameter, dtype: bf16, shape: [16, 32], dims: ["-", tensor]}
)";

TEST(GraphConfig, GivesTheGraphThatItSays) {
  const auto graph = read(kHead + R"(operators:
  - {op: matmul, name: h, inputs: [x, w]}
  - {op: reduce, outputs: [y], inputs: [h], settings: {operation: sum, axes: [-1], keep_dims: true}}
outputs: [y]
)");
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->operators.size(), 2U);
  EXPECT_EQ(graph->operators[1].name, "y");
  EXPECT_EQ((*graph)[graph->outputs[0]].shape, (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(graph->operators[1].settings.integers("axes"), Integers{-1});
  EXPECT_EQ((*graph)[graph->inputs[0]].pinned, (Attribute{.dims = {{0}, {}}}));
  EXPECT_EQ(parameter_elements(*graph), 16 * 32);
  EXPECT_TRUE(distribute(*graph, {{"data", 2}, {"tensor", 4}}));
}

TEST(GraphConfig, HasBodies) {
  const auto graph = read(kHead + R"(operators:
  - op: loop
    name: layers
    inputs: [x]
    settings: {count: 12}
    bodies:
      - name: layer
        tensors:
          - {name: z, role: input, dtype: bf16, shape: [8, 16]}
          - {name: v, role: parameter, dtype: bf16, shape: [16, 16]}
        operators: [{op: matmul, name: zv, inputs: [z, v]}]
        outputs: [zv]
outputs: [layers]
)");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(parameter_elements(*graph), 16 * 32 + 12 * 16 * 16);
}

TEST(GraphConfig, CarriesUnevenSlicesAndOpenDimensions) {
  const auto graph = read(R"(name: g
mesh: [{name: tensor, size: 4}]
tensors:
  - {name: x, role: input, dtype: bf16, shape: [10, 16], dims: ["tensor{3,3,2,2}", "-"], open: [1]}
operators: [{op: unary, name: y, inputs: [x], settings: {operation: relu}}]
outputs: [y]
)");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ((*graph)[graph->inputs[0]].pinned,
            (Attribute{.dims = {{0}, {}}, .sizes = {{3, 3, 2, 2}, {}}}));
  EXPECT_EQ((*graph)[graph->inputs[0]].open, std::vector<std::int32_t>{1});
}

TEST(GraphConfig, HasParametersThatNoOptimizerTrains) {
  const auto graph = read(R"(name: g
tensors:
  - {name: ids, role: input, dtype: int64, shape: [8]}
  - {name: t, role: table, dtype: fp32, shape: [100, 16]}
  - {name: w, role: frozen, dtype: fp32, shape: [16, 32]}
operators:
  - {op: embedding, name: rows, inputs: [ids, t]}
  - {op: matmul, name: y, inputs: [rows, w]}
outputs: [y]
)");
  ASSERT_TRUE(graph) << graph.error().message;
  const Graph both = training_graph(*graph, {});
  const auto has = [&](const std::string& type) {
    return std::ranges::count(both.operators, type, &Operator::type);
  };
  EXPECT_EQ(has("row_update"), 1);
  EXPECT_EQ(has("scatter_add"), 0);
  EXPECT_EQ(has("matmul") + has("einsum"), 2);  // forward, and the gradient of the rows
  EXPECT_EQ(std::ranges::count(both.tensors, TensorRole::kParameterGradient, &Tensor::role), 0);
}

TEST(GraphConfig, PointsAtEachFault) {
  const auto with = [](const std::string& operators) {
    return fault(kHead + "operators:\n  - " + operators + "\noutputs: [y]\n");
  };
  EXPECT_THAT(with("{op: matmull, name: y, inputs: [x, w]}"),
              AllOf(HasSubstr("g.yaml:7:10: error: unknown operator 'matmull'"),
                    HasSubstr("did you mean 'matmul'?"), HasSubstr("foreshard catalog operators")));
  EXPECT_THAT(with("{op: matmul, name: y, inputs: [x, v]}"),
              AllOf(HasSubstr("g.yaml:7:39"), HasSubstr("no tensor 'v' has been made so far")));
  EXPECT_THAT(with("{op: matmul, name: y, inputs: [x, x]}"),
              AllOf(HasSubstr("g.yaml:7:5"), HasSubstr("16 meets 8")));
  EXPECT_THAT(with("{op: softmax, name: y, inputs: [x], settings: {axis: first}}"),
              AllOf(HasSubstr("g.yaml:7:"), HasSubstr("'axis' must be integer, found 'first'")));
  EXPECT_THAT(with("{op: softmax, name: y, inputs: [x], settings: {axes: 1}}"),
              HasSubstr("unknown setting 'axes'; did you mean 'axis'?"));
  EXPECT_THAT(with("{op: unary, name: y, inputs: [x], settings: {operation: gelu, halves: true}}"),
              HasSubstr("halves are of clip, not of gelu"));
  EXPECT_THAT(
      fault("name: g\ntensors:\n"
            "  - {name: x, role: input, dtype: fp32, shape: [8, 7]}\noperators:\n"
            "  - {op: unary, name: y, inputs: [x], settings: {operation: clip, halves: true}}\n"
            "outputs: [y]\n"),
      HasSubstr("halves need an even number of columns"));
  EXPECT_THAT(with("{op: softmax, name: x, inputs: [x]}"), HasSubstr("tensor 'x' is made twice"));
  EXPECT_THAT(with("{op: softmax, name: y, inputs: [x]}\n  - {op: softmax, name: y, inputs: [x], "
                   "outputs: [z]}"),
              AllOf(HasSubstr("g.yaml:8:5"), HasSubstr("operator 'y' is named twice")));
  EXPECT_THAT(with("{op: softmax, name: z, inputs: [x]}"), HasSubstr("no tensor 'y'"));
  EXPECT_THAT(with("{op: softmax, inputs: [x]}"), HasSubstr("needs a name"));

  EXPECT_THAT(fault("name: g\ntensors:\n"
                    "  - {name: x, role: input, dtype: fp32, shape: [8, 16]}\n"
                    "  - {name: t, role: table, dtype: fp32, shape: [16, 32]}\n"
                    "operators:\n  - {op: matmul, name: y, inputs: [x, t]}\noutputs: [y]\n"),
              AllOf(HasSubstr("g.yaml:6:39: error: 't' is a table: only operator 'embedding'"),
                    HasSubstr("give it the role parameter")));

  const auto tensor = [](const std::string& text) {
    return fault("name: g\nmesh: [{name: data, size: 4}]\ntensors:\n  - " + text +
                 "\noperators: []\noutputs: [x]\n");
  };
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf17, shape: [8]}"),
              AllOf(HasSubstr("g.yaml:4:35"), HasSubstr("did you mean 'bf16'?")));
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf16}"), HasSubstr("needs dtype and shape"));
  EXPECT_THAT(tensor("{name: x}"), HasSubstr("no operator makes tensor 'x'"));
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf16, shape: [8, 8], dims: [data, data]}"),
              AllOf(HasSubstr("g.yaml:4:"), HasSubstr("tensor 'x'"), HasSubstr("'data'")));
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf16, shape: [6], dims: [data]}"),
              AllOf(HasSubstr("g.yaml:4:"), HasSubstr("6"), HasSubstr("4")));
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf16, shape: [8], dims: [model]}"),
              HasSubstr("model"));
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf16, shape: [8, 8], dims: [data]}"),
              HasSubstr("needs 2 entries in `dims`, not 1"));
  EXPECT_THAT(tensor("{name: x, role: input, dtype: bf16, shape: [-8]}"),
              HasSubstr("extent -8 is not between 0 and 2^40"));
}

}  // namespace graph_config_test
}  // namespace foreshard
