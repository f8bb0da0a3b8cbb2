// State-space layers and patterns of layers: parameters, arithmetic and kernels by hand.
#include "strategies/graph/mamba.h"

#include "tests/test.h"

#include "strategies/graph/model.h"
#include "strategies/graph/operators/build.h"
#include "strategies/graph/transformer.h"

namespace foreshard::mamba_test {

// Two groups of two heads of 3 channels, states of 3 x 5.
constexpr Mamba kSmall{.heads = 4, .head_dim = 3, .groups = 2, .state = 5, .conv = 2, .chunk = 4};

Model small() {
  Model model{.name = "m",
              .layers = 3,
              .hidden = 8,
              .heads = 2,
              .ffn = 6,
              .vocabulary = 7,
              .sequence = 8,
              .norm = Norm::kRmsNorm,
              .activation = Activation::kSquaredRelu,
              .positions = Positions::kNone,
              .bias = false,
              .dropout = false,
              .pattern = "M*-",
              .mamba = kSmall,
              .source = ""};
  return model;
}

// in_proj makes 12 gates, 12 values, B and C of 2 x 5 each, 4 steps: 48; the convolution has 32
// columns of 2 taps and a bias; A, D and bias of 4 heads; a norm of 12; out_proj 12 x 8. Attention
// 4 x 8 x 8, a feed-forward layer 2 x 8 x 6; a norm of 8 before each, and before the head; the
// embedding.
TEST(Mamba, ParametersByHand) {
  EXPECT_EQ(kSmall.projected(), 48);
  EXPECT_EQ(kSmall.conv_width(), 32);
  constexpr int kLayer = 8 * 48 + 32 * 3 + 3 * 4 + 12 + 12 * 8;
  EXPECT_EQ(parameter_count(small()), kLayer + 4 * 64 + 2 * 48 + 4 * 8 + 7 * 8);
}

// The blocks of the graph have as many, each once; the norm before the head is in the head.
TEST(Mamba, ParametersOfTheGraph) {
  const Model model = small();
  const TransformerGraphs graphs =
      transformer_graphs(model, {.mesh = {{"tensor", 1}, {"data", 1}}, .batch = 1});
  std::int64_t sum = parameter_elements(graphs.embedding) + model.hidden;
  std::vector<std::string> names;
  for (const Graph& layer : graphs.layers) {
    sum += parameter_elements(layer);
    names.push_back(layer.name);
  }
  EXPECT_EQ(sum, parameter_count(model));
  EXPECT_THAT(names, ElementsAre("attention_layer", "mamba_layer", "mlp_layer"));
}

// Of 8 tokens: 2 for each element of the matrices, 2 x 2 x 8 of scores of two products for each of
// 64 pairs, 7 for each of 12 x 5 numbers of the state.
TEST(Mamba, FlopsByHand) {
  constexpr double kMatrices = 8 * (48 + 12) + 4 * 64 + 2 * 48 + 7 * 8;
  EXPECT_DOUBLE_EQ(forward_flops(small(), 1).in_base(),
                   2 * 8 * kMatrices + 2 * 64 * 16 + 8 * 7 * 60);
  EXPECT_DOUBLE_EQ(model_flops(small(), 2).in_base(), 6 * forward_flops(small(), 1).in_base());
}

std::vector<Kernel> kernels_of_type(const std::string& type) {
  const TransformerGraphs graphs =
      transformer_graphs(small(), {.mesh = {{"tensor", 1}, {"data", 1}}, .batch = 3});
  const Graph& graph = graphs.layers[1];
  for (const Operator& op : graph.operators) {
    if (op.type != type) continue;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back(graph[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
    return kernels_of(graph, op, shapes);
  }
  return {};
}

// Three sequences of two chunks of 4 tokens; 4 heads, 2 groups. The convolution reads and writes
// its 32 columns once. Products: 2 T (H P N + G Q N + H P (Q + N)) for T = 24 tokens.
TEST(Mamba, KernelsOfTheScanByHand) {
  const auto kernels = kernels_of_type("ssd_scan");
  ASSERT_EQ(kernels.size(), 6U);
  EXPECT_DOUBLE_EQ(bytes_of(kernels[0]) / 1_B, 2 * 24 * 32 * 2);
  EXPECT_EQ(std::get<Gemm>(kernels[2]), (Gemm{.batch = 24, .m = 3, .n = 5, .k = 4}));
  EXPECT_EQ(std::get<Gemm>(kernels[4]), (Gemm{.batch = 12, .m = 4, .n = 4, .k = 5}));
  EXPECT_EQ(std::get<Gemm>(kernels[5]), (Gemm{.batch = 24, .m = 4, .n = 3, .k = 9}));
  Flops products;
  for (const Kernel& kernel : kernels)
    if (std::holds_alternative<Gemm>(kernel)) products += flops_of(kernel);
  EXPECT_DOUBLE_EQ(products.in_base(), 2 * 24 * (4 * 3 * 5 + 2 * 4 * 5 + 4 * 3 * (4 + 5)));
  // 6 chunks of 4 states of 15 numbers in fp32, read and written.
  EXPECT_DOUBLE_EQ(bytes_of(kernels[3]) / 1_B, 2 * 24 * 15 * 4);
  const auto norm = kernels_of_type("gated_norm");
  ASSERT_EQ(norm.size(), 1U);
  EXPECT_DOUBLE_EQ(bytes_of(norm[0]) / 1_B, 3 * 24 * 12 * 2);
}

TEST(Mamba, KindsOfLayersFollowThePattern) {
  const Model model = small();
  EXPECT_EQ(model.kind_of_layer(0), (LayerKind{.mixer = Mixer::kMamba, .feed_forward = false}));
  EXPECT_EQ(model.kind_of_layer(1), LayerKind{.feed_forward = false});
  EXPECT_EQ(model.kind_of_layer(2), LayerKind{.mixer = Mixer::kNone});
  EXPECT_TRUE(model.has_dense_layers());
  EXPECT_FALSE(model.has_expert_layers());
}

}  // namespace foreshard::mamba_test
