// General graphs as Programs: kernels, communication and memory counted by hand.
#include "strategies/program/lower/graph.h"

#include "tests/strategies/lower/lowered_graphs.h"
#include "tests/test.h"

#include "strategies/program/lower/block.h"

namespace foreshard::lower::graph_test {

constexpr double kWeights = 2 * kHidden * kWide;  // elements

// Two products forward of 2 b h f each; backward two weight gradients and one data gradient: nobody
// asks for that of x. The model's FLOPs are three times the forward ones by convention.
TEST(LowerGraph, ComputesForwardAndBackward) {
  const double product = 2.0 * kBatch * kHidden * kWide;
  const Program one = lowered(mlp(), strategy(1, 1)).program;
  EXPECT_EQ(gemm_flops(one), 5 * product);
  EXPECT_EQ(one.totals.model_flops.in_base(), 5 * product);
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

// With ZeRO, a framework that gathers beside the forward pass does so here too: the first pass
// waits.
TEST(LowerGraph, GathersWhenTheFrameworkDoes) {
  Strategy s = strategy(1, 2, 2);
  s.zero_stage = 1;
  for (const bool early : {true, false}) {
    s.framework.value.overlap_parameter_gather = early;
    const Program program = lowered(mlp(), s).program;
    const auto& calls = program.roles[0].calls;
    const auto gathers = [&](const program::Call& call) {
      return program.blocks[call.block.index()].name.find("gather") != std::string::npos;
    };
    EXPECT_EQ(std::ranges::count_if(calls, gathers), 1);
    EXPECT_EQ(gathers(calls.front()), early);
    EXPECT_EQ(gathers(calls.back()), !early);
    EXPECT_EQ(calls[1].after, early ? (std::vector<program::CallDependency>{{.call = 0}})
                                    : std::vector<program::CallDependency>{});
  }
}

// A table that is split over the data-parallel ranks has no copies: nothing is gathered or reduced.
TEST(LowerGraph, LeavesWhatHasNoCopies) {
  Graph graph = mlp();
  std::erase_if(graph.operators, [](const Operator& op) { return op.name != "up"; });
  graph.outputs = graph.operators.front().outputs;
  for (const bool early : {true, false}) {
    Strategy s = strategy(1, 2);
    s.zero_stage = 1;
    s.framework.value.overlap_parameter_gather = early;
    const LoweredGraph one =
        lowered(graph, s, {}, {{.tensor = "up.weight", .dims = {"data", "-"}}});
    EXPECT_EQ(one.plan.roles[0].elements(), kWeights / 4);
    EXPECT_THAT(one.plan.parts.cut_groups(one.plan.roles[0].parameters), IsEmpty());
    for (const plan::Action& action : one.plan.roles[0].actions)
      EXPECT_THAT(action.kind, AnyOf(plan::ActionKind::kPass, plan::ActionKind::kOptimizer));
  }
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
  EXPECT_THAT(norm->after, Contains(static_cast<std::int32_t>(sum - tasks.begin())));
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
              Contains(HasSubstr("output 'down' of 'mlp' has no loss behind it")));
}

// The result is the update of a parameter: no gradient flows through it.
TEST(LowerGraph, SaysWhatIsNotTrained) {
  Graph graph{.name = "update"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId w = add_parameter(graph, "weight", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "optimizer_update", .name = "new", .inputs = {w, x}})};
  const std::string remark = "nothing flows back to parameter 'weight'";
  EXPECT_THAT(lowered(graph, strategy(1, 1)).remarks, Contains(HasSubstr(remark)));
  EXPECT_THAT(lowered(mlp(), strategy(1, 1)).remarks,
              Not(Contains(HasSubstr("nothing flows back"))));
  Strategy s = strategy(1, 1);
  s.mode = Mode::kForward;
  EXPECT_THAT(lowered(graph, s).remarks, IsEmpty());
}

TEST(LowerGraph, SaysWhatAStrategyCannotAsk) {
  Strategy s = strategy(1, 2);
  s.pipeline_parallel = 2;
  s.zero_stage = 3;
  s.sequence_parallel = true;
  s.recompute = Recompute::kSelective;
  std::vector<std::string> keys;
  for (const StrategyFault& fault : faults_in_graph(s, mlp(), {{"expert", 2}}, 1, 7, 4))
    keys.push_back(fault.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"data_parallel", "sequence_parallel",
                                            "pipeline_parallel", "recompute", "micro_batch"}));
  EXPECT_TRUE(faults_in_graph(strategy(2, 2), mlp(), {}, 1, kBatch, 4).empty());
}

// Ranks, batch and order of ranks are checked as a transformer's are.
TEST(LowerGraph, SaysWhatIsWrongWithRanksAndBatch) {
  Strategy s = strategy(1, 2);
  s.global_batch += 1;
  s.rank_order = {"tensor", "tensor", "data"};
  const auto faults = faults_in_graph(s, mlp(), {{"expert", 2}}, 1, kBatch, 1);
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].message,
            "tensor_parallel 1 x pipeline_parallel 1 x data_parallel 2 x expert 2 = 4 ranks, but "
            "there is 1 device for them");
  EXPECT_THAT(faults[1].message, StartsWith("9 samples do not divide into data_parallel 2 x"));
  EXPECT_EQ(faults[1].help, "use strategy.global_batch=8 or 16");
  EXPECT_EQ(faults[2].key, "rank_order");
}

TEST(LowerGraph, SaysThatThePrecisionIsAnother) {
  Strategy s = strategy(1, 1);
  s.precision = DType::kFp32;
  const auto faults = faults_in_graph(s, mlp(), {}, 1, kBatch, 1);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].key, "precision");
  EXPECT_EQ(faults[0].message, "most of the graph's parameters are bf16, not fp32");
  EXPECT_EQ(faults[0].help, "set precision: bf16");
}

TEST(LowerGraph, NamesATensorWithoutElements) {
  Graph graph = mlp();
  graph.tensors[2].shape = {kWide, 0};
  EXPECT_THAT(message_of(lower_graph(graph, strategy(1, 1), {})),
              HasSubstr("tensor 'down.weight' of shape [64, 0] has no elements"));
}

}  // namespace foreshard::lower::graph_test
