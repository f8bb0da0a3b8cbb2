// General graphs as Programs: kernels, communication and memory counted by hand.
#include "strategies/program/lower/graph.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "strategies/graph/annotate.h"
#include "strategies/graph/operators/build.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {
namespace {

using program::CollectiveKind;
using program::MemoryKind;
using program::Program;
using program::Purpose;
using testing::HasSubstr;

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kHidden = 16;
constexpr std::int64_t kWide = 64;

TensorId added(Graph& graph, OperatorSpec spec) {
  auto id = add_single(graph, std::move(spec));
  EXPECT_TRUE(id) << id.error().message;
  return *id;
}

// x [8, 16] -> up [16, 64] -> relu -> down [64, 16].
Graph mlp() {
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

Strategy strategy(std::int64_t tp, std::int64_t dp, std::int64_t micro_batches = 1) {
  Strategy s;
  s.tensor_parallel = tp;
  s.data_parallel = dp;
  s.micro_batch = kBatch / dp;
  s.global_batch = kBatch * micro_batches;
  s.framework.value.gradient_clipping = false;
  return s;
}

LoweredGraph lowered(Graph graph, const Strategy& s, const GraphOptions& options = {},
                     std::vector<Annotation> annotations = {}) {
  const auto mesh = mesh_of(s, options.axes);
  const auto remarks =
      annotate(graph, mesh, {.annotations = std::move(annotations), .batch = kBatch});
  EXPECT_TRUE(remarks) << remarks.error().message;
  auto result = lower_graph(graph, s, options);
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return {};
  const Status fault = plan::verify(result->plan);
  EXPECT_TRUE(fault.ok()) << fault.error().message;
  const auto violation = program::verify(result->program);
  EXPECT_TRUE(violation.ok()) << violation.error().message;
  return *std::move(result);
}

struct Traffic {
  std::int64_t operations = 0;
  double bytes = 0;
  bool operator==(const Traffic&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Traffic& traffic) {
  return out << traffic.operations << " operations, " << traffic.bytes << " B";
}

template <class Visit>
void visit_tasks(const Program& program, Visit visit) {
  for (const program::Call& call : program.roles[0].calls) {
    for (std::int32_t i = 0; i < call.repeat; ++i)
      for (const program::Task& task : program.blocks[call.block.index()].tasks) visit(task);
  }
}

std::map<CollectiveKind, Traffic> traffic(const Program& program, Purpose purpose) {
  std::map<CollectiveKind, Traffic> sums;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr || what->purpose != purpose) return;
    ++sums[what->kind].operations;
    sums[what->kind].bytes += what->bytes.in_base();
  });
  return sums;
}

double gemm_flops(const Program& program) {
  double sum = 0;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    if (kernel != nullptr && std::holds_alternative<Gemm>(*kernel))
      sum += flops_of(*kernel).in_base();
  });
  return sum;
}

using Sums = std::map<CollectiveKind, Traffic>;
constexpr double kWeights = 2 * kHidden * kWide;  // elements

// Two products forward of 2 b h f each; backward two weight gradients and one data gradient: nobody
// asks for that of x. The model's FLOPs are three times the forward ones by convention.
TEST(LowerGraph, ComputesForwardAndBackward) {
  const double product = 2.0 * kBatch * kHidden * kWide;
  const Program one = lowered(mlp(), strategy(1, 1)).program;
  EXPECT_EQ(gemm_flops(one), 5 * product);
  EXPECT_EQ(one.totals.model_flops.in_base(), 6 * product);
  EXPECT_EQ(one.totals.samples, kBatch);
  for (const auto& [tp, dp] : {std::pair{2, 1}, {1, 2}, {2, 2}, {4, 2}})
    EXPECT_EQ(gemm_flops(lowered(mlp(), strategy(tp, dp)).program), 5 * product / (tp * dp));
  EXPECT_EQ(gemm_flops(lowered(mlp(), strategy(1, 1, 3)).program), 3 * 5 * product);
  Strategy forward = strategy(1, 1);
  forward.mode = Mode::kForward;
  EXPECT_EQ(gemm_flops(lowered(mlp(), forward).program), 2 * product);
}

// Column, then row: one all-reduce of the output forward, in bf16 (Shoeybi et al. 2019). Backward
// there would be one of the input's gradient.
TEST(LowerGraph, TensorParallelReducesOnce) {
  const Program program = lowered(mlp(), strategy(2, 1)).program;
  const double boundary = 2.0 * kBatch * kHidden;
  EXPECT_EQ(traffic(program, Purpose::kTensor),
            (Sums{{CollectiveKind::kAllReduce, {1, boundary}}}));
  EXPECT_EQ(traffic(program, Purpose::kData), Sums{});
  EXPECT_EQ(program.roles[0].memory[0].bytes.in_base(), 2 * kWeights / 2);
}

// Gradients in fp32, all of them once: one bucket is enough here. With ZeRO they are scattered and
// the parameters gathered in bf16.
TEST(LowerGraph, DataParallelReducesGradients) {
  EXPECT_EQ(traffic(lowered(mlp(), strategy(1, 2, 3)).program, Purpose::kData),
            (Sums{{CollectiveKind::kAllReduce, {1, 4 * kWeights}}}));
  Strategy s = strategy(1, 2, 3);
  s.framework.value.gradient_bucket = 1_KiB;  // a bucket for each weight
  EXPECT_EQ(traffic(lowered(mlp(), s).program, Purpose::kData),
            (Sums{{CollectiveKind::kAllReduce, {2, 4 * kWeights}}}));
  s.zero_stage = 1;
  EXPECT_EQ(traffic(lowered(mlp(), s).program, Purpose::kData),
            (Sums{{CollectiveKind::kReduceScatter, {2, 4 * kWeights}},
                  {CollectiveKind::kAllGather, {1, 2 * kWeights}}}));
  s.zero_stage = 2;  // every micro-batch
  EXPECT_EQ(traffic(lowered(mlp(), s).program, Purpose::kData),
            (Sums{{CollectiveKind::kReduceScatter, {6, 3 * 4 * kWeights}},
                  {CollectiveKind::kAllGather, {1, 2 * kWeights}}}));
  s.zero_stage = 0;
  s.framework.value.gradient_reduction = GradientReduction::kAfterBackward;
  EXPECT_EQ(traffic(lowered(mlp(), s).program, Purpose::kData),
            (Sums{{CollectiveKind::kAllReduce, {1, 4 * kWeights}}}));
}

// A bucket goes when its gradient is there, not when the backward pass is over.
TEST(LowerGraph, SendsABucketBesideTheBackwardPass) {
  Strategy s = strategy(1, 2);
  s.framework.value.gradient_bucket = 1_KiB;
  const Program program = lowered(mlp(), s).program;
  bool kernel_after = false;
  for (const program::Block& block : program.blocks) {
    bool sent = false;
    for (const program::Task& task : block.tasks) {
      if (std::holds_alternative<program::Communication>(task.body)) sent = true;
      if (sent && std::holds_alternative<Kernel>(task.body)) kernel_after = true;
    }
  }
  EXPECT_TRUE(kernel_after);
}

// Summands wait for the bucket also where a pass of its own adds them to the fp32 gradients, with
// a cast before it or without; not one all-reduce for each gradient and micro-batch.
TEST(LowerGraph, AddsSummandsToTheGradients) {
  for (const bool casts : {false, true}) {
    Strategy s = strategy(1, 2, 3);
    s.framework.value.fused_gradient_accumulation = false;
    s.framework.value.accumulation_casts = casts;
    EXPECT_EQ(traffic(lowered(mlp(), s).program, Purpose::kData),
              (Sums{{CollectiveKind::kAllReduce, {1, 4 * kWeights}}}));
  }
}

// The gradient of "up" is summed beside that of its weight; the norm before it waits for the sum.
TEST(LowerGraph, WaitsForASumBesideTheBackwardPass) {
  Graph graph = mlp();
  const TensorId scale = add_parameter(graph, "norm.weight", {DType::kBf16, {kHidden}});
  const TensorId x = graph.inputs.front();
  const TensorId normed = added(graph, {.type = "rms_norm", .name = "norm", .inputs = {x, scale}});
  graph.operators.front().inputs[0] = normed;
  std::rotate(graph.operators.begin(), graph.operators.end() - 1, graph.operators.end());
  Strategy s = strategy(2, 1);
  s.framework.value.overlap_tensor_gradients = true;
  const Program program = lowered(graph, s).program;
  const auto& tasks = program.blocks.at(1).tasks;
  const auto named = [&](const std::string& name) {
    const auto found = std::ranges::find(tasks, name, &program::Task::name);
    EXPECT_NE(found, tasks.end()) << name;
    return found;
  };
  const auto sum = named("all_reduce.d.up.data");
  const auto norm = named("d.norm");
  EXPECT_LT(named("d.up.data"), sum);
  EXPECT_LT(sum, named("d.up.weight"));
  EXPECT_THAT(norm->after, testing::Contains(static_cast<std::int32_t>(sum - tasks.begin())));
}

// bf16 parameters, fp32 gradients, 12 bytes of Adam; ZeRO shares them over the replicas.
TEST(LowerGraph, WeighsWhatStays) {
  const auto held = [](const Strategy& s) {
    std::map<MemoryKind, double> bytes;
    const Program program = lowered(mlp(), s).program;
    for (const auto& part : program.roles[0].memory) bytes[part.kind] = part.bytes.in_base();
    return bytes;
  };
  using Held = std::map<MemoryKind, double>;
  Strategy s = strategy(1, 2);
  EXPECT_EQ(held(s), (Held{{MemoryKind::kParameters, 2 * kWeights},
                           {MemoryKind::kGradients, 4 * kWeights},
                           {MemoryKind::kOptimizer, 12 * kWeights}}));
  s.zero_stage = 2;
  EXPECT_EQ(held(s), (Held{{MemoryKind::kParameters, 2 * kWeights},
                           {MemoryKind::kGradients, 2 * kWeights},
                           {MemoryKind::kOptimizer, 6 * kWeights}}));
  s.zero_stage = 0;
  s.mode = Mode::kForward;
  EXPECT_EQ(held(s), (Held{{MemoryKind::kParameters, 2 * kWeights}}));
}

// Kept between the passes: x (for up's gradient), up's result (for relu's), relu's (for down's).
TEST(LowerGraph, KeepsActivationsForTheBackwardPass) {
  const Program program = lowered(mlp(), strategy(1, 1)).program;
  double kept = 0;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* allocate = std::get_if<program::Allocate>(&task.body);
    if (allocate != nullptr && allocate->kind == MemoryKind::kActivations)
      kept += allocate->bytes.in_base();
  });
  EXPECT_EQ(kept, 2.0 * kBatch * (kHidden + 2 * kWide));
}

// Twelve layers of one matrix each, as a loop whose iterations have their own.
Graph stack(bool own) {
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

// The body is a block that is called twelve times each way.
TEST(LowerGraph, CallsTheBlockOfALoopAgainAndAgain) {
  const Program program = lowered(stack(true), strategy(1, 2)).program;
  const double product = 2.0 * kBatch * kHidden * kHidden / 2;
  EXPECT_EQ(gemm_flops(program), 12 * 3 * product);
  std::int64_t seeds = 0;  // iterations take their gradients from the one before
  visit_tasks(program, [&](const program::Task& task) { seeds += task.name.starts_with("seed."); });
  EXPECT_EQ(seeds, 1);
  EXPECT_EQ(program.totals.model_flops.in_base(), 3 * 12 * 2 * product);
  std::vector<std::int32_t> repeats;
  for (const program::Call& call : program.roles[0].calls)
    if (call.repeat > 1) repeats.push_back(call.repeat);
  EXPECT_EQ(repeats, (std::vector<std::int32_t>{12, 12}));
  constexpr double kEach = kHidden * kHidden;
  EXPECT_EQ(program.roles[0].memory[0].bytes.in_base(), 2 * 12 * kEach);
  // Each iteration's gradient is reduced when it is there.
  EXPECT_EQ(traffic(program, Purpose::kData),
            (Sums{{CollectiveKind::kAllReduce, {12, 4 * 12 * kEach}}}));
}

// One parameter for all iterations: its gradient is complete after the last.
TEST(LowerGraph, ReducesWhatIterationsShareOnce) {
  const Program program = lowered(stack(false), strategy(1, 2)).program;
  constexpr double kEach = kHidden * kHidden;
  EXPECT_EQ(program.roles[0].memory[0].bytes.in_base(), 2 * kEach);
  EXPECT_EQ(traffic(program, Purpose::kData), (Sums{{CollectiveKind::kAllReduce, {1, 4 * kEach}}}));
}

// With probability 1/4 a matrix, else nothing but a ReLU.
Graph choice() {
  Graph yes{.name = "yes"};
  const TensorId x = add_input(yes, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId w = add_parameter(yes, "weight", {DType::kBf16, {kHidden, kHidden}});
  yes.outputs = {added(yes, {.type = "matmul", .name = "product", .inputs = {x, w}})};
  Graph no{.name = "no"};
  const TensorId same = add_input(no, "x", {DType::kBf16, {kBatch, kHidden}});
  no.outputs = {added(no, {.type = "unary",
                           .name = "relu",
                           .inputs = {same},
                           .settings = {{"operation", std::string("relu")}}})};
  Graph graph{.name = "choice"};
  const TensorId in = add_input(graph, "in", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "condition",
                                 .name = "branch",
                                 .inputs = {in},
                                 .settings = {{"probability", 0.25}},
                                 .bodies = {yes, no}})};
  return graph;
}

// Of 400 micro-batches about 100 take the matrix (four deviations of the binomial are 35), the
// same ones each time; the totals count the expected quarter.
TEST(LowerGraph, DrawsABranchForEachMicroBatch) {
  Strategy s = strategy(1, 1, 400);
  s.mode = Mode::kForward;
  const Program program = lowered(choice(), s).program;
  const double product = 2.0 * kBatch * kHidden * kHidden;
  EXPECT_NEAR(gemm_flops(program) / product, 100, 35);
  EXPECT_DOUBLE_EQ(program.totals.model_flops.in_base(), 400 * product / 4);
  EXPECT_EQ(lowered(choice(), s).program, program);
  EXPECT_NE(lowered(choice(), s, {.seed = 2}).program, program);
}

// Within a loop every iteration draws anew, and its backward pass takes the branch that its forward
// pass took: one product forward, two backward, and what is kept is freed (which verify() checks).
TEST(LowerGraph, DrawsABranchForEachIteration) {
  Graph layer{.name = "layer"};
  const Graph inner = choice();
  const TensorId x = add_input(layer, "x", {DType::kBf16, {kBatch, kHidden}});
  layer.outputs = {added(layer, {.type = "condition",
                                 .name = "branch",
                                 .inputs = {x},
                                 .settings = {{"probability", 0.25}},
                                 .bodies = inner.bodies})};
  Graph graph{.name = "choices"};
  TensorId last = add_input(graph, "in", {DType::kBf16, {kBatch, kHidden}});
  for (const std::string name : {"first", "1"})  // bodies with the same names; a number as one
    last = added(graph, {.type = "loop",
                         .name = name,
                         .inputs = {last},
                         .settings = {{"count", std::int64_t{200}}},
                         .bodies = {layer}});
  graph.outputs = {last};
  const double product = 2.0 * kBatch * kHidden * kHidden;
  Strategy s = strategy(1, 1);
  const double both = gemm_flops(lowered(graph, s).program) / product;
  s.mode = Mode::kForward;
  const double forward = gemm_flops(lowered(graph, s).program) / product;
  EXPECT_NEAR(forward, 100, 35);
  EXPECT_EQ(both, 3 * forward);
}

// Dimensions that a body splits together are split together outside: replicas that take a branch,
// or iterate, over two inputs of their own samples move nothing forward.
TEST(LowerGraph, KeepsBatchesSplitThroughBodies) {
  const auto body = [](const std::string& operation) {
    Graph both{.name = operation};
    const TensorId a = add_input(both, "a", {DType::kBf16, {kBatch, kHidden}});
    const TensorId b = add_input(both, "b", {DType::kBf16, {kBatch, kHidden}});
    const TensorId w = add_parameter(both, "w", {DType::kBf16, {kHidden, kHidden}});
    const TensorId y = added(both, {.type = "matmul", .name = "y", .inputs = {a, w}});
    both.outputs = {added(both, {.type = "binary",
                                 .name = "sum",
                                 .inputs = {y, b},
                                 .settings = {{"operation", operation}}})};
    return both;
  };
  for (const bool loops : {true, false}) {
    Graph graph{.name = "two"};
    const TensorId a = add_input(graph, "a", {DType::kBf16, {kBatch, kHidden}});
    const TensorId b = add_input(graph, "b", {DType::kBf16, {kBatch, kHidden}});
    OperatorSpec spec{.type = "condition",
                      .name = "op",
                      .inputs = {a, b},
                      .settings = {{"probability", 0.5}},
                      .bodies = {body("add"), body("mul")}};
    if (loops) {
      spec.type = "loop";
      spec.settings = {{"count", std::int64_t{3}}};
      spec.bodies = {body("add")};
    }
    graph.outputs = {added(graph, std::move(spec))};
    Strategy s = strategy(1, 2);
    s.mode = Mode::kForward;
    EXPECT_TRUE(traffic(lowered(graph, s).program, Purpose::kData).empty()) << loops;
  }
}

// A loop that also adds something up over its iterations: its parameters are trained as well.
TEST(LowerGraph, TrainsLoopsThatAddUp) {
  Graph layer{.name = "layer"};
  const TensorId x = add_input(layer, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId w = add_parameter(layer, "weight", {DType::kBf16, {kHidden, kHidden}});
  const TensorId y = added(layer, {.type = "matmul", .name = "product", .inputs = {x, w}});
  layer.outputs = {y, added(layer, {.type = "unary",
                                    .name = "square",
                                    .inputs = {y},
                                    .settings = {{"operation", std::string("square")}}})};
  Graph graph{.name = "adding"};
  const TensorId in = add_input(graph, "in", {DType::kBf16, {kBatch, kHidden}});
  const auto out =
      add_operator(graph, {.type = "loop",
                           .name = "layers",
                           .inputs = {in},
                           .settings = {{"count", std::int64_t{12}}, {"carried", std::int64_t{1}}},
                           .bodies = {layer}});
  ASSERT_TRUE(out) << out.error().message;
  graph.outputs = *out;
  const Program program = lowered(graph, strategy(1, 1)).program;
  EXPECT_EQ(gemm_flops(program), 12 * 3 * 2.0 * kBatch * kHidden * kHidden);
  EXPECT_EQ(program.roles[0].memory[2].bytes.in_base(), 12.0 * 12 * kHidden * kHidden);
}

// Activations are given back when the kernels are done, not when the gradients are sent.
TEST(LowerGraph, FreesActivationsBeforeGradientsAreSent) {
  const Program program = lowered(mlp(), strategy(1, 2)).program;
  std::int64_t frees = 0;
  for (const program::Block& block : program.blocks) {
    if (std::ranges::find(block.tasks, stream(kDataStream), &program::Task::stream) ==
        block.tasks.end())
      continue;
    for (const program::Task& task : block.tasks) {
      if (!std::holds_alternative<program::Free>(task.body)) continue;
      ++frees;
      ASSERT_FALSE(task.after.empty()) << task.name;
      for (const std::int32_t before : task.after)
        EXPECT_TRUE(std::holds_alternative<Kernel>(block.tasks[std::size_t(before)].body))
            << task.name;
    }
  }
  EXPECT_GT(frees, 0);
}

TEST(LowerGraph, WeighsParametersAsTheyAreStored) {
  Graph graph{.name = "table"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId w = add_parameter(graph, "weight", {DType::kInt8, {kHidden, kWide}});
  const TensorId wide = added(
      graph,
      {.type = "cast", .name = "wide", .inputs = {w}, .settings = {{"to", std::string("bf16")}}});
  graph.outputs = {added(graph, {.type = "matmul", .name = "y", .inputs = {x, wide}})};
  Strategy s = strategy(1, 1);
  s.mode = Mode::kForward;
  EXPECT_EQ(lowered(graph, s).program.roles[0].memory[0].bytes.in_base(), kHidden * kWide);
}

TEST(LowerGraph, SaysThatALossIsMissing) {
  EXPECT_THAT(lowered(mlp(), strategy(1, 1)).remarks,
              testing::Contains(HasSubstr("output 'down' of 'mlp' has no loss behind it")));
}

// The result is the update of a parameter: no gradient flows through it.
TEST(LowerGraph, SaysWhatIsNotTrained) {
  Graph graph{.name = "update"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId w = add_parameter(graph, "weight", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "optimizer_update", .name = "new", .inputs = {w, x}})};
  const std::string remark = "nothing flows back to parameter 'weight'";
  EXPECT_THAT(lowered(graph, strategy(1, 1)).remarks, testing::Contains(HasSubstr(remark)));
  EXPECT_THAT(lowered(mlp(), strategy(1, 1)).remarks,
              testing::Not(testing::Contains(HasSubstr("nothing flows back"))));
  Strategy s = strategy(1, 1);
  s.mode = Mode::kForward;
  EXPECT_THAT(lowered(graph, s).remarks, testing::IsEmpty());
}

TEST(LowerGraph, SaysWhatAStrategyCannotAsk) {
  Strategy s = strategy(1, 2);
  s.pipeline_parallel = 2;
  s.zero_stage = 3;
  s.sequence_parallel = true;
  s.recompute = Recompute::kFull;
  std::vector<std::string> keys;
  for (const StrategyFault& fault : faults_in_graph(s, mlp(), {{"expert", 2}}, 7, 4))
    keys.push_back(fault.key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"data_parallel", "pipeline_parallel", "sequence_parallel",
                                      "recompute", "zero_stage", "micro_batch"}));
  EXPECT_TRUE(faults_in_graph(strategy(2, 2), mlp(), {}, kBatch, 4).empty());
}

TEST(LowerGraph, SaysThatThePrecisionIsAnother) {
  Strategy s = strategy(1, 1);
  s.precision = DType::kFp32;
  const auto faults = faults_in_graph(s, mlp(), {}, kBatch, 1);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].key, "precision");
  EXPECT_EQ(faults[0].message, "most of the graph's parameters are bf16, not fp32");
  EXPECT_EQ(faults[0].help, "set precision: bf16");
}

TEST(LowerGraph, NamesATensorWithoutElements) {
  Graph graph = mlp();
  graph.tensors[2].shape = {kWide, 0};
  const auto lowered = lower_graph(graph, strategy(1, 1), {});
  ASSERT_FALSE(lowered);
  EXPECT_THAT(lowered.error().message,
              HasSubstr("tensor 'down.weight' of shape [64, 0] has no elements"));
}

// A million micro-batches are fine, a million of twelve iterations are not.
TEST(LowerGraph, LimitsTheStep) {
  const Strategy s = strategy(1, 1, std::int64_t{1} << 20);
  EXPECT_TRUE(faults_in_graph(s, mlp(), {}, kBatch, 1).empty());
  const auto faults = faults_in_graph(s, stack(true), {}, kBatch, 1);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0].message, HasSubstr("13631488 passes"));
}

}  // namespace
}  // namespace foreshard::lower
