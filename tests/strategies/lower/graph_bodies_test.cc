// Loops and conditions of general graphs as Programs.

#include "tests/strategies/lower/lowered_graphs.h"
#include "tests/test.h"

namespace foreshard::lower {
namespace {

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

// Where a branch has no task, its micro-batch has no call, and nothing waits for one.
TEST(LowerGraph, SkipsABranchWithoutTasks) {
  Graph yes{.name = "yes"};
  const TensorId x = add_input(yes, "x", {DType::kBf16, {1, 1}});
  const TensorId w = add_parameter(yes, "weight", {DType::kBf16, {1, 1}});
  yes.outputs = {added(yes, {.type = "matmul", .name = "product", .inputs = {x, w}})};
  Graph no{.name = "no"};
  const TensorId same = add_input(no, "x", {DType::kBf16, {1, 1}});
  no.outputs = {added(no, {.type = "reshape",
                           .name = "view",
                           .inputs = {same},
                           .settings = {{"shape", std::vector<std::int64_t>{1, 1}}}})};
  Graph graph{.name = "choice"};
  const TensorId in = add_input(graph, "in", {DType::kBf16, {1, 1}});
  graph.outputs = {added(graph, {.type = "condition",
                                 .name = "branch",
                                 .inputs = {in},
                                 .settings = {{"probability", 0.5}},
                                 .bodies = {yes, no}})};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {  // in half of them the last branch has no task
    const Program program = lowered(graph, strategy(1, 1, 5), {.seed = seed}).program;
    EXPECT_LE(program.roles[0].calls.size(), 2U * 5 + 1);
    EXPECT_EQ(program.blocks[program.roles[0].calls.back().block.index()].name.substr(0, 9),
              "optimizer");
  }
}

// Iterations wait for each other's sums: a call each.
TEST(LowerGraph, CallsIterationsApartWhereTheyEndWithASum) {
  Graph layer{.name = "layer"};
  const TensorId x = add_input(layer, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId up = add_parameter(layer, "up.weight", {DType::kBf16, {kHidden, kWide}});
  const TensorId down = add_parameter(layer, "down.weight", {DType::kBf16, {kWide, kHidden}});
  const TensorId wide = added(layer, {.type = "matmul", .name = "up", .inputs = {x, up}});
  layer.outputs = {added(layer, {.type = "matmul", .name = "down", .inputs = {wide, down}})};
  Graph graph{.name = "stack"};
  const TensorId in = add_input(graph, "in", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "loop",
                                 .name = "layers",
                                 .inputs = {in},
                                 .settings = {{"count", std::int64_t{3}}, {"own_parameters", true}},
                                 .bodies = {layer}})};
  Strategy s = strategy(2, 1);
  s.mode = Mode::kForward;
  const Program program = lowered(graph, s).program;
  EXPECT_EQ(traffic(program, Purpose::kTensor)[CollectiveKind::kAllReduce].operations, 3);
  const auto& calls = program.roles[0].calls;
  ASSERT_EQ(calls.size(), 3U);
  for (std::int32_t i = 1; i < 3; ++i) {
    ASSERT_EQ(calls[std::size_t(i)].after.size(), 1U);
    EXPECT_EQ(calls[std::size_t(i)].after[0].call, i - 1);
    EXPECT_GE(calls[std::size_t(i)].after[0].task, 0);
  }
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
  s.recompute = Recompute::kFull;
  const double again = gemm_flops(lowered(graph, s).program) / product;
  s.recompute = Recompute::kNone;
  s.mode = Mode::kForward;
  const double forward = gemm_flops(lowered(graph, s).program) / product;
  EXPECT_NEAR(forward, 100, 35);
  EXPECT_EQ(both, 3 * forward);
  EXPECT_EQ(again, 4 * forward);
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
  const auto out = value_of(
      add_operator(graph, {.type = "loop",
                           .name = "layers",
                           .inputs = {in},
                           .settings = {{"count", std::int64_t{12}}, {"carried", std::int64_t{1}}},
                           .bodies = {layer}}));
  graph.outputs = out;
  const Program program = lowered(graph, strategy(1, 1)).program;
  EXPECT_EQ(gemm_flops(program), 12 * 3 * 2.0 * kBatch * kHidden * kHidden);
  EXPECT_EQ(program.roles[0].memory[2].bytes.in_base(), 12.0 * 12 * kHidden * kHidden);
}

// A million micro-batches are fine, a million of twelve iterations are not.
TEST(LowerGraph, LimitsTheStep) {
  const Strategy s = strategy(1, 1, std::int64_t{1} << 20);
  EXPECT_TRUE(faults_in_graph(s, mlp(), {}, 1, kBatch, 1).empty());
  const auto faults = faults_in_graph(s, stack(true), {}, 1, kBatch, 1);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0].message, HasSubstr("13631488 passes"));
}

}  // namespace
}  // namespace foreshard::lower
