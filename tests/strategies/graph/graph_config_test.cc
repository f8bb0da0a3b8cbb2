// Graphs from YAML: what comes out.
#include "strategies/graph/graph_config.h"

#include "tests/test.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"

namespace foreshard::graph_config_test {

Result<Graph> read(const std::string& text) {
  yaml::Loader loader;
  FORESHARD_ASSIGN(const auto config, loader.read_text<GraphConfig>(text, "g.yaml"));
  return build_graph(config, mesh_of(config), loader);
}

const std::string kHead = R"(name: g
mesh: [{name: data, size: 2}, {name: tensor, size: 4}]
tensors:
  - {name: x, role: input, dtype: bf16, shape: [8, 16], dims: [data, "-"]}
  - {name: w, role: parameter, dtype: bf16, shape: [16, 32], dims: ["-", tensor]}
)";

TEST(GraphConfig, GivesTheGraphThatItSays) {
  const auto graph = value_of(read(kHead + R"(operators:
  - {op: matmul, name: h, inputs: [x, w]}
  - {op: reduce, outputs: [y], inputs: [h], settings: {operation: sum, axes: [-1], keep_dims: true}}
outputs: [y]
)"));
  ASSERT_EQ(graph.operators.size(), 2U);
  EXPECT_EQ(graph.operators[1].name, "y");
  EXPECT_EQ(graph[graph.outputs[0]].shape, (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(graph.operators[1].settings.integers("axes"), Integers{-1});
  EXPECT_EQ(graph[graph.inputs[0]].pinned, (Attribute{.dims = {{0}, {}}}));
  EXPECT_EQ(parameter_elements(graph), 16 * 32);
  EXPECT_TRUE(distribute(graph, {{"data", 2}, {"tensor", 4}}));
}

TEST(GraphConfig, HasBodies) {
  const auto graph = value_of(read(kHead + R"(operators:
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
)"));
  EXPECT_EQ(parameter_elements(graph), 16 * 32 + 12 * 16 * 16);
}

TEST(GraphConfig, CarriesUnevenSlicesAndOpenDimensions) {
  const auto graph = value_of(read(R"(name: g
mesh: [{name: tensor, size: 4}]
tensors:
  - {name: x, role: input, dtype: bf16, shape: [10, 16], dims: ["tensor{3,3,2,2}", "-"], open: [1]}
operators: [{op: unary, name: y, inputs: [x], settings: {operation: relu}}]
outputs: [y]
)"));
  EXPECT_EQ(graph[graph.inputs[0]].pinned,
            (Attribute{.dims = {{0}, {}}, .sizes = {{3, 3, 2, 2}, {}}}));
  EXPECT_EQ(graph[graph.inputs[0]].open, std::vector<std::int32_t>{1});
}

TEST(GraphConfig, HasParametersThatNoOptimizerTrains) {
  const auto graph = value_of(read(R"(name: g
tensors:
  - {name: ids, role: input, dtype: int64, shape: [8]}
  - {name: t, role: table, dtype: fp32, shape: [100, 16]}
  - {name: w, role: frozen, dtype: fp32, shape: [16, 32]}
operators:
  - {op: embedding, name: rows, inputs: [ids, t]}
  - {op: matmul, name: y, inputs: [rows, w]}
outputs: [y]
)"));
  const Graph both = training_graph(graph, {});
  const auto has = [&](const std::string& type) {
    return std::ranges::count(both.operators, type, &Operator::type);
  };
  EXPECT_EQ(has("row_update"), 1);
  EXPECT_EQ(has("scatter_add"), 0);
  EXPECT_EQ(has("matmul") + has("einsum"), 2);  // forward, and the gradient of the rows
  EXPECT_EQ(std::ranges::count(both.tensors, TensorRole::kParameterGradient, &Tensor::role), 0);
}

}  // namespace foreshard::graph_config_test
