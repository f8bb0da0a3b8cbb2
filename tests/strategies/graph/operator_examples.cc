#include "operator_examples.h"

#include "tests/test.h"

namespace foreshard {
namespace {

using S = std::string;
using I = std::int64_t;

TensorType f(std::vector<std::int64_t> shape) {
  return {DType::kBf16, std::move(shape)};
}
TensorType f32(std::vector<std::int64_t> shape) {
  return {DType::kFp32, std::move(shape)};
}
TensorType ids(std::vector<std::int64_t> shape) {
  return {DType::kInt32, std::move(shape)};
}

// y = relu(x w), with w the body's own.
Graph body(const char* operation) {
  Graph graph{.name = operation, .tensors = {}, .operators = {}};
  const TensorId x = add_input(graph, "x", f({4, 8}));
  const TensorId w = add_parameter(graph, "w", f({8, 8}));
  const auto up = add_single(graph, {.type = "matmul", .name = "up", .inputs = {x, w}});
  const auto y = add_single(
      graph,
      {.type = "unary", .name = "act", .inputs = {*up}, .settings = {{"operation", S(operation)}}});
  graph.outputs = {*y};
  return graph;
}

}  // namespace

std::vector<Example> operator_examples() {
  const TensorType image = f({4, 6, 8, 8});
  const Settings window{{"strides", Integers{2}}, {"pads", Integers{1}}};
  Settings data = window;
  data.set("shape", Integers{4, 6, 8, 8});
  Settings weight = window;
  weight.set("shape", Integers{4, 3, 3, 3});
  const Settings heads{{"query_heads", I{4}}, {"kv_heads", I{2}}};
  Settings eager_heads = heads;
  eager_heads.set("eager", true);
  Settings layer_heads = heads;
  layer_heads.set("norm", S("layer"));
  Settings heads_together = heads;
  heads_together.set("together", true);
  Settings heads_without_shift = heads;
  heads_without_shift.set("shift", false);
  Settings heads_with_dropout = heads;
  heads_with_dropout.set("rate", 0.25);
  Settings heads_in_window = heads;
  heads_in_window.set("window", I{2});
  Settings heads_in_chunks = heads_in_window;
  heads_in_chunks.set("chunked", true);
  Settings heads_without_mask = heads;
  heads_without_mask.set("causal", false);
  Settings heads_with_table = heads_without_mask;
  heads_with_table.set("relative", true);
  Settings heads_in_samples = heads;
  heads_in_samples.set("sample", I{4});
  heads_in_window.set("sample", I{3});
  Settings heads_with_narrow_values = heads;
  heads_with_narrow_values.set("value_dim", I{2});
  const Settings latents{{"heads", I{4}}, {"rotary_dim", I{2}}, {"value_dim", I{1}}};
  Settings eager_latents = latents;
  eager_latents.set("eager", true);
  const Settings scan{{"heads", I{4}}, {"groups", I{2}}, {"state", I{2}}, {"chunk", I{4}}};
  const TensorType mask{DType::kInt8, {4, 6}};
  return {
      {"add_positions", {f({4, 6, 8}), f({6, 8})}},
      {"add_positions", {f({4, 6, 8}), f({10, 8})}},
      {"add_positions", {f({4, 6, 8}), f({6, 8})}, {{"in_parts", true}}},
      {"attention", {f({4, 8, 6, 16}), f({4, 4, 6, 16}), f({4, 4, 6, 16})}},
      {"attention", {f({4, 8, 6, 16}), f({4, 4, 10, 16}), f({4, 4, 10, 16})}, {{"causal", false}}},
      {"attention_gradient",
       {f({4, 8, 6, 16}), f({4, 8, 6, 16}), f({4, 4, 6, 16}), f({4, 4, 6, 16}), f({4, 8, 6, 16}),
        f32({4, 8, 6})}},
      {"batch_norm", {image, f({6}), f({6}), f32({2, 6})}},
      {"batch_norm", {image, f({6}), f({6}), f32({2, 6})}, {{"scope", S("replica")}}},
      {"batch_norm_gradient", {image, image, f({6}), f32({2, 6}), f32({2, 6})}},
      {"batch_norm_gradient_sums", {image, image, f32({2, 6})}},
      {"batch_norm_gradient_sums", {image, image, f32({2, 6})}, {{"scope", S("replica")}}},
      {"batch_statistics", {image}},
      {"bias_dropout_add", {f({4, 6}), f({4, 6})}},
      {"bias_dropout_add", {f({4, 6}), f({4, 6}), f({6})}},
      {"bias_dropout_add_gradient", {f({4, 6}), mask}},
      {"bias_gelu", {f({4, 6}), f({6})}},
      {"bias_gelu_gradient", {f({4, 6}), f({4, 6}), f({6})}},
      {"bias_gradient", {f({4, 6, 8})}},
      {"bias_gradient", {f({4, 6, 8})}, {{"rows", I{10}}}},
      {"binary", {f({4, 6}), f({4, 6})}, {{"operation", S("mul")}}},
      {"binary", {f({4, 6, 8}), f({6, 1})}, {{"operation", S("add")}}},
      {"binary", {f({6, 8}), f({4, 6, 8})}, {{"operation", S("div")}}},
      {"binary", {f({6, 8}), f({6, 8})}, {{"operation", S("max")}}},
      {"binary", {f({6, 8}), f({6, 8})}, {{"operation", S("pow")}}},
      {"binary", {f({6, 8}), f({8})}, {{"operation", S("sub")}}},
      {"cast", {f({4, 6})}, {{"to", S("fp32")}}},
      {"concat", {f({4, 6}), f({4, 2})}, {{"axis", I{1}}}},
      {"condition", {f({4, 8})}, {{"probability", 0.25}}, {body("relu"), body("tanh")}},
      {"context_attention", {f({4, 6, 16}), f({4, 6, 16})}, heads},
      {"context_attention", {f({4, 6, 16}), f({4, 6, 16})}, heads_with_dropout},
      {"context_attention", {f({4, 6, 16}), f({4, 6, 16}), f({4})}, heads_in_window},
      {"context_attention", {f({4, 6, 16}), f({4, 6, 12})}, heads_with_narrow_values},
      {"context_attention", {f({4, 6, 16}), f({4, 10, 16})}, heads_without_mask},
      {"context_attention_gradient",
       {f({4, 6, 16}), f({4, 6, 16}), f({4, 6, 16}), f32({4, 6, 4}), f({4, 6, 16})},
       heads},
      {"context_attention_gradient",
       {f({4, 6, 16}), f({4, 6, 12}), f({4, 6, 8}), f32({4, 6, 4}), f({4, 6, 8}), f({4})},
       heads_with_narrow_values},
      {"conv", {image, f({4, 3, 3, 3})}, window},
      {"conv", {f({4, 8, 16}), f({12, 8, 5})}},
      {"conv_data_gradient", {f({4, 4, 4, 4}), f({4, 3, 3, 3})}, data},
      {"conv_weight_gradient", {image, f({4, 4, 4, 4})}, weight},
      {"cross_entropy", {f({4, 6, 10}), ids({4, 6})}},
      {"cross_entropy_gradient", {f32({4, 6}), f32({4, 6, 10}), ids({4, 6})}},
      {"dequantize", {f({4, 6})}},
      {"dropout", {f({4, 6})}},
      {"dropout", {f({4, 6})}, {{"fused", true}}},
      {"dropout_gradient", {f({4, 6}), mask}},
      {"einsum", {f({4, 6, 8}), f({8, 10})}, {{"equation", S("bsi,io->bso")}}},
      {"einsum", {f({2, 6, 8}), f({2, 8, 10}), f({2, 10})}, {{"equation", S("ebi,eio,eo->ebo")}}},
      {"einsum", {f({4, 6, 8})}, {{"equation", S("bsh->hb")}}},
      {"einsum",
       {f({4, 6, 8, 2}), f({4, 6, 4, 2})},
       {{"equation", S("bsad,btad->bast")}, {"grouped", S("a")}}},
      {"embedding", {ids({4, 6}), f({10, 8})}},
      {"embedding", {ids({4, 6}), f({10, 8})}, {{"every_row", true}}},
      {"expand", {f({6, 1})}, {{"shape", Integers{4, 6, 8}}}},
      {"expert_bias", {f({4, 2, 6, 8}), f({4, 8}), f({4, 2, 6, 1})}},
      {"expert_bias_gradient", {f({4, 2, 6, 8}), f({4, 8}), f({4, 2, 6, 1})}},
      {"expert_bias_gradient", {f({4, 2, 6, 8}), f({4, 8}), f({4, 2, 6, 1})}, {{"trained", false}}},
      {"gated_norm", {f({4, 6, 8}), f({4, 6, 8}), f({8})}, {{"groups", I{2}}}},
      {"gated_norm_gradient",
       {f({4, 6, 8}), f({4, 6, 8}), f({4, 6, 8}), f({8})},
       {{"groups", I{2}}}},
      {"gather", {f({4, 10, 8}), ids({6, 2})}, {{"axis", I{1}}}},
      {"gradient_accumulate", {f({4, 6})}},
      {"gradient_accumulate", {f({4, 6})}, {{"to", S("bf16")}}},
      {"head_norm", {f({4, 6, 32}), f({4}), f({4})}, heads},
      {"head_norm", {f({4, 6, 32}), f({4}), f({4}), f({4}), f({4})}, layer_heads},
      {"head_norm", {f({4, 6, 32}), f({16}), f({8})}, heads},
      {"head_norm", {f({4, 6, 32}), f({16}), f({8})}, heads_together},
      {"head_norm_gradient", {f({4, 6, 32}), f({4, 6, 32}), f({4}), f({4})}, heads},
      {"head_norm_gradient", {f({4, 6, 32}), f({4, 6, 32}), f({16}), f({8})}, heads_without_shift},
      {"join_heads", {f({4, 6, 4, 2}), f({4, 6, 2, 2}), f({4, 6, 2, 2})}, heads},
      {"join_queries", {f({4, 6, 16}), f({4, 6, 16})}, heads},
      {"latent_heads", {f({4, 6, 24}), f({4, 6, 20}), f({4, 6, 2})}, latents},
      {"latent_heads", {f({4, 6, 24}), f({4, 6, 20}), f({4, 6, 2})}, eager_latents},
      {"latent_heads_gradient", {f({4, 6, 24}), f({4, 6, 28})}, latents},
      {"layer_norm", {f({4, 6, 8}), f({8}), f({8})}},
      {"layer_norm", {f({4, 6, 8})}, {{"kernels", S("recomputed-fp32")}}},
      {"layer_norm", {f({4, 6, 8}), f({8})}, {{"kernels", S("eager")}}},
      {"layer_norm_gradient", {f({4, 6, 8}), f({4, 6, 8}), f({8})}},
      {"layer_norm_gradient", {f({4, 6, 8}), f({4, 6, 8}), f({8})}, {{"shift", false}}},
      {"loop", {f({4, 8})}, {{"count", I{3}}}, {body("relu")}},
      {"matmul", {f({4, 6, 8}), f({8, 10})}},
      {"matmul", {f({4, 6, 8}), f({8, 10}), f({10})}},
      {"matmul", {f({4, 6, 8}), f({4, 10, 8})}, {{"transpose_b", true}}},
      {"matmul",
       {{DType::kFp8, {4, 6, 8}}, f({8, 10})},
       {{"to", S("bf16")}, {"recipe", S("fp8-current")}}},
      {"merge_heads", {f({4, 2, 6, 8})}},
      {"merge_heads_gradient", {f({4, 6, 16})}, {{"heads", I{2}}}},
      {"moe_combine", {f({4, 2, 6, 8}), ids({2, 10, 2}), f({2, 10, 2})}},
      {"moe_combine", {f({4, 2, 6, 8}), ids({2, 10, 2})}},
      {"moe_dispatch", {f({2, 10, 8}), ids({2, 10, 2})}, {{"experts", I{4}}, {"capacity", I{6}}}},
      {"moe_slot_weights",
       {f({2, 10, 2}), ids({2, 10, 2})},
       {{"experts", I{4}}, {"capacity", I{6}}}},
      {"moe_weight_gradient", {f({2, 10, 8}), f({4, 2, 6, 8}), ids({2, 10, 2})}},
      {"moe_weight_gradient", {f({4, 2, 6, 1}), ids({2, 10, 2})}},
      {"optimizer_update", {f({4, 6}), f32({4, 6})}},
      {"packed_attention", {f({4, 6, 32})}, heads_in_samples},
      {"packed_attention", {f({4, 6, 32})}, heads},
      {"packed_attention", {f({4, 6, 32})}, heads_with_dropout},
      {"packed_attention", {f({4, 6, 32})}, heads_without_mask},
      {"packed_attention", {f({4, 6, 32}), f({8, 4})}, heads_with_table},
      {"packed_attention_gradient",
       {f({4, 6, 32}), f({4, 6, 16}), f32({4, 6, 4}), f({4, 6, 16})},
       heads_in_samples},
      {"packed_attention_gradient",
       {f({4, 6, 32}), f({4, 6, 16}), f32({4, 6, 4}), f({4, 6, 16})},
       heads},
      {"pad", {f({4, 6})}, {{"axis", I{1}}, {"before", I{2}}, {"between", I{1}}}},
      {"pool", {image}, {{"operation", S("max")}, {"kernel", Integers{2}}}},
      {"pool", {image}, {{"operation", S("mean")}}},
      {"pool_gradient",
       {f({4, 6, 7, 7}), image},
       {{"operation", S("max")}, {"kernel", Integers{2}}}},
      {"quantize", {f({4, 6})}, {{"recipe", S("fp8-delayed")}}},
      {"quantize", {f({4, 6, 8})}, {{"recipe", S("fp8-block")}}},
      {"quantize", {f({4, 6})}, {{"recipe", S("mxfp8")}}},
      {"reduce", {f({4, 6, 8})}, {{"operation", S("sum")}, {"axes", Integers{0, 2}}}},
      {"reduce", {f({4, 6, 8})}, {{"operation", S("max")}, {"axes", Integers{-1}}}},
      {"reduce", {f({4, 6})}, {{"operation", S("mean")}, {"keep_dims", true}}},
      {"reshape", {f({4, 6, 8})}, {{"shape", Integers{24, 2, -1}}}},
      {"rms_norm", {f({4, 6, 8}), f({8})}},
      {"rms_norm", {f({4, 6, 8})}, {{"kernels", S("eager")}}},
      {"rms_norm_gradient", {f({4, 6, 8}), f({4, 6, 8}), f({8})}},
      {"rope", {f({4, 6, 32})}, heads},
      {"rope", {f({4, 6, 32})}, eager_heads},
      {"rope_gradient", {f({4, 6, 32})}, heads},
      {"row_update", {f({10, 8}), ids({4, 6}), f({4, 6, 8})}},
      {"scatter_add", {f({4, 6, 8}), ids({4, 6})}, {{"axis", I{0}}, {"size", I{10}}}},
      {"slice", {f({4, 6})}, {{"axis", I{1}}, {"start", I{1}}, {"end", I{6}}, {"step", I{2}}}},
      {"softmax", {f({4, 6})}},
      {"softmax", {f({4, 6, 8})}, {{"scale", 0.5}, {"causal", true}}},
      {"softmax_gradient", {f({4, 6}), f({4, 6})}},
      {"split", {f({4, 6})}, {{"axis", I{1}}, {"sizes", Integers{2, 4}}}},
      {"split_heads", {f({4, 6, 32})}, heads},
      {"split_queries", {f({4, 6, 32})}, heads},
      {"ssd_scan",
       {f({4, 6, 20}), f({4, 6, 4}), f({20, 2}), f({4}), f({4}), f({4}), f({20})},
       scan},
      {"ssd_scan", {f({4, 6, 20}), f({4, 6, 4}), f({20, 3}), f({4}), f({4}), f({4})}, scan},
      {"ssd_scan_gradient",
       {f({4, 6, 12}), f({4, 6, 20}), f({4, 6, 4}), f({20, 2}), f({4}), f({4}), f({4}), f({20})},
       scan},
      {"swiglu", {f({4, 6, 16})}},
      {"swiglu", {f({4, 6, 16})}, {{"eager", true}}},
      {"swiglu", {f({4, 6, 8}), f({4, 6, 8})}},
      {"swiglu", {f({4, 6, 16}), f({4, 6, 1})}, {{"weighted", true}}},
      {"swiglu_gradient", {f({4, 6, 8}), f({4, 6, 16})}},
      {"swiglu_gradient", {f({4, 6, 8}), f({4, 6, 16}), f({4, 6, 1})}, {{"weighted", true}}},
      {"swiglu_gradient", {f({4, 6, 8}), f({4, 6, 8}), f({4, 6, 8})}},
      {"top_k", {f({4, 6, 8})}, {{"k", I{2}}}},
      {"top_k", {f({4, 6, 8})}, {{"k", I{3}}, {"groups", I{4}}, {"groups_of_k", I{2}}}},
      {"top_k_gradient", {f({4, 6, 2}), ids({4, 6, 2})}, {{"size", I{8}}}},
      {"transpose", {f({4, 6, 8})}, {{"order", Integers{2, 0, 1}}}},
      {"unary", {f({4, 6})}, {{"operation", S("gelu")}}},
      {"unary_gradient", {f({4, 6}), f({4, 6})}, {{"operation", S("gelu")}}},
      {"vocabulary_cross_entropy", {f({4, 6, 10}), f32({4, 6, 1}), ids({4, 6})}},
      {"vocabulary_cross_entropy_gradient", {f32({4, 6, 10}), f32({4, 6, 2}), ids({4, 6})}},
      {"vocabulary_loss", {f32({4, 6, 2})}},
      {"vocabulary_maximum", {f({4, 6, 10})}},
      {"where", {mask, f({4, 6}), f({6})}},
  };
}

Graph graph_of(const Example& example) {
  Graph graph{.name = example.type, .tensors = {}, .operators = {}};
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < example.inputs.size(); ++i)
    inputs.push_back(add_input(graph, "in" + std::to_string(i), example.inputs[i]));
  const auto outputs = add_operator(graph, {.type = example.type,
                                            .name = "op",
                                            .inputs = inputs,
                                            .settings = example.settings,
                                            .bodies = example.bodies});
  EXPECT_TRUE(outputs) << outputs.error().message;
  if (outputs) graph.outputs = *outputs;
  return graph;
}

}  // namespace foreshard
