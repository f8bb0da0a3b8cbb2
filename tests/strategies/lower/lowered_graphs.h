// Small graphs as Programs, and what these compute and send.
#pragma once

#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/graph/annotate.h"
#include "strategies/graph/operators/build.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/graph.h"

namespace foreshard::lower {

using program::CollectiveKind;
using program::MemoryKind;
using program::Program;
using program::Purpose;

inline constexpr std::int64_t kBatch = 8;
inline constexpr std::int64_t kHidden = 16;
inline constexpr std::int64_t kWide = 64;

inline TensorId added(Graph& graph, OperatorSpec spec) {
  return value_of(add_single(graph, std::move(spec)));
}

// x [8, 16] -> up [16, 64] -> relu -> down [64, 16].
inline Graph mlp() {
  Graph graph{.name = "mlp"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId up = add_parameter(graph, "up.weight", {DType::kBf16, {kHidden, kWide}});
  const TensorId down = add_parameter(graph, "down.weight", {DType::kBf16, {kWide, kHidden}});
  const TensorId wide = added(graph, {.type = "matmul", .name = "up", .inputs = {x, up}});
  const TensorId active = added(graph, {.type = "unary",
                                        .name = "relu",
                                        .inputs = {wide},
                                        .settings = {{"operation", std::string("relu")}}});
  graph.outputs = {added(graph, {.type = "matmul", .name = "down", .inputs = {active, down}})};
  return graph;
}

// Twelve layers of one matrix each, as a loop whose iterations have their own.
inline Graph stack(bool own) {
  Graph layer{.name = "layer"};
  const TensorId x = add_input(layer, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId w = add_parameter(layer, "weight", {DType::kBf16, {kHidden, kHidden}});
  layer.outputs = {added(layer, {.type = "matmul", .name = "product", .inputs = {x, w}})};
  Graph graph{.name = "stack"};
  const TensorId in = add_input(graph, "in", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "loop",
                                 .name = "layers",
                                 .inputs = {in},
                                 .settings = {{"count", std::int64_t{12}}, {"own_parameters", own}},
                                 .bodies = {layer}})};
  return graph;
}

inline Strategy strategy(std::int64_t tp, std::int64_t dp, std::int64_t micro_batches = 1) {
  Strategy s;
  s.tensor_parallel = tp;
  s.data_parallel = dp;
  s.micro_batch = kBatch / dp;
  s.global_batch = kBatch * micro_batches;
  s.framework.value.gradient_clipping = false;
  return s;
}

inline LoweredGraph lowered(Graph graph, const Strategy& s, const GraphOptions& options = {},
                            std::vector<Annotation> annotations = {}) {
  const auto mesh = mesh_of(s, options.axes);
  value_of(annotate(graph, mesh, {.annotations = std::move(annotations), .batch = kBatch}));
  auto result = value_of(lower_graph(graph, s, options));
  EXPECT_EQ(message_of(plan::verify(result.plan)), "accepted");
  EXPECT_EQ(message_of(program::verify(result.program)), "accepted");
  return result;
}

inline std::map<CollectiveKind, Traffic> traffic(const Program& program, Purpose purpose) {
  std::map<CollectiveKind, Traffic> sums;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr || what->purpose != purpose) return;
    ++sums[what->kind].operations;
    sums[what->kind].bytes += what->bytes.in_base();
  });
  return sums;
}

inline double gemm_flops(const Program& program) {
  return gemm_flops(program, program.roles[0]);
}

using Sums = std::map<CollectiveKind, Traffic>;

}  // namespace foreshard::lower
