// General graphs cut into units: pipelines, ZeRO 3 and recomputation from their plans.

#include "tests/strategies/graph/random_graph.h"
#include "tests/strategies/lower/lowered_graphs.h"
#include "tests/test.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/units.h"

namespace foreshard::lower::graph_units_test {

constexpr std::int64_t kLayers = 4;

// x [8, 16] -> four times: w [16, 16], relu, + the layer's input. `skip`: the first relu is added
// to the last result, too.
Graph layers(bool skip = false) {
  Graph graph{.name = "layers"};
  TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  TensorId first;
  const auto sum = [&](const std::string& name, TensorId a, TensorId b) {
    return added(graph, {.type = "binary",
                         .name = name,
                         .inputs = {a, b},
                         .settings = {{"operation", std::string("add")}}});
  };
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    const TensorId w = add_parameter(graph, "w" + n, {DType::kBf16, {kHidden, kHidden}});
    const TensorId wide = added(graph, {.type = "matmul", .name = "dense" + n, .inputs = {x, w}});
    const TensorId active = added(graph, {.type = "unary",
                                          .name = "relu" + n,
                                          .inputs = {wide},
                                          .settings = {{"operation", std::string("relu")}}});
    if (i == 0) first = active;
    x = sum("add" + n, active, x);
  }
  if (skip) x = sum("skip", x, first);
  graph.outputs = {x};
  return graph;
}

const std::vector<std::string> kCuts{"dense1", "dense2", "dense3"};

// Kernels of the first role's calls, by what they compute; the seeds of units too.
std::multiset<std::string> kernels(const Program& program) {
  std::multiset<std::string> names;
  visit_tasks(program, [&](const program::Task& task) {
    if (const auto* kernel = std::get_if<Kernel>(&task.body))
      if (!task.optimizer) names.insert(foreshard::describe(*kernel));
  });
  return names;
}

Bytes held(const Program& program, MemoryKind kind) {
  Bytes sum;
  for (const program::StaticMemory& memory : program.roles[0].memory)
    if (memory.kind == kind) sum += memory.bytes;
  return sum;
}

// What blocks of the first role's calls allocate in a step.
double allocated(const Program& program, MemoryKind kind) {
  double sum = 0;
  visit_tasks(program, [&](const program::Task& task) {
    if (const auto* one = std::get_if<program::Allocate>(&task.body); one && one->kind == kind)
      sum += one->bytes.in_base();
  });
  return sum;
}

std::string fault(const Graph& graph, const Strategy& s, const std::vector<std::string>& cuts) {
  Graph annotated = graph;
  EXPECT_TRUE(annotate(annotated, mesh_of(s, {}), {.batch = kBatch}));
  return message_of(lower_graph(annotated, s, {.cuts = cuts}), "");
}

TEST(GraphUnits, ComputeWhatTheGraphComputes) {
  for (const bool skip : {false, true}) {
    for (const auto& [tp, dp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}}) {
      const Strategy s = strategy(tp, dp);
      const std::vector<Annotation> split{{.tensor = "w0", .dims = {"-", "tensor"}},
                                          {.tensor = "w2", .dims = {"-", "tensor"}}};
      const auto annotations = tp > 1 ? split : std::vector<Annotation>{};
      const Program whole = lowered(layers(skip), s, {}, annotations).program;
      const Program units = lowered(layers(skip), s, {.cuts = kCuts}, annotations).program;
      EXPECT_EQ(kernels(units), kernels(whole));
      EXPECT_EQ(traffic(units, Purpose::kTensor), traffic(whole, Purpose::kTensor));
      for (const MemoryKind kind :
           {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer})
        EXPECT_EQ(held(units, kind), held(whole, kind));
    }
  }
}

TEST(GraphUnits, ShareABlockWhereTheyAreAlike) {
  const auto plan = lowered(layers(), strategy(1, 2), {.cuts = kCuts}).plan;
  ASSERT_EQ(plan.parts.units.size(), 4u);
  // The first one's input needs no gradient, and the last one's gradient is a seed.
  EXPECT_EQ(plan.parts.blocks.size(), 3u);
  EXPECT_EQ(plan.parts.units[1].block, plan.parts.units[2].block);
  EXPECT_EQ(plan.parts.units[2].name, "dense2");
}

// By hand: 4 layers of 256 parameters over 2 ranks. Each is gathered for both of its passes, the
// last one for both at once: 512 B in bf16. Gradients in fp32, 1,024 B each, are reduced once a
// micro-batch.
TEST(GraphUnits, GatherTheirParametersUnderZero3) {
  Strategy s = strategy(1, 2, 2);
  s.zero_stage = 3;
  const auto lowered_graph = lowered(layers(), s, {.cuts = kCuts});
  const auto data = traffic(lowered_graph.program, Purpose::kData);
  EXPECT_EQ(data.at(CollectiveKind::kAllGather),
            (Traffic{4 * kLayers - 2, (4 * kLayers - 2) * 512.0}));
  EXPECT_EQ(data.at(CollectiveKind::kReduceScatter), (Traffic{2 * kLayers, 2 * kLayers * 1024.0}));
  EXPECT_EQ(held(lowered_graph.program, MemoryKind::kParameters), kLayers * 512.0 / 2 * 1_B);
  EXPECT_EQ(held(lowered_graph.program, MemoryKind::kOptimizer), kLayers * 256 * 12.0 / 2 * 1_B);
  EXPECT_THAT(lowered_graph.remarks, Not(Contains(HasSubstr("one unit"))));
  EXPECT_THAT(lowered(layers(), s).remarks,
              Contains(HasSubstr("gathers all of its parameters at a time")));
}

TEST(GraphUnits, ComputeAgainWhatTheyDoNotKeep) {
  Strategy s = strategy(1, 1);
  const Program kept = lowered(layers(), s, {.cuts = kCuts}).program;
  s.recompute = Recompute::kFull;
  const Program again = lowered(layers(), s, {.cuts = kCuts}).program;
  // Three products a layer, but for the gradient of the first one's input; the forward one again.
  EXPECT_DOUBLE_EQ(gemm_flops(again) / gemm_flops(kept), 15.0 / 11);
  // Of each unit its input, 256 B; of the others, what relu and the product read besides.
  EXPECT_EQ(allocated(again, MemoryKind::kActivations), 4 * 256.0);
  EXPECT_EQ(allocated(kept, MemoryKind::kActivations), 8 * 256.0);
}

// A loop whose iterations have their own parameters: a unit each.
TEST(GraphUnits, AreIterationsOfALoop) {
  Strategy s = strategy(1, 2);
  const auto units = lowered(stack(true), s, {.cuts = {"layers"}});
  // A loop computes what is the same in every iteration: the gradient of the first one's input,
  // too.
  const double product = 2.0 * kBatch * kHidden / 2.0 * kHidden;
  EXPECT_EQ(gemm_flops(lowered(stack(true), s).program), 36 * product);
  EXPECT_EQ(gemm_flops(units.program), 35 * product);
  EXPECT_EQ(units.plan.parts.units.size(), 12u);
  EXPECT_EQ(units.plan.parts.units[3].name, "layers[3].product");
  EXPECT_EQ(units.plan.parts.blocks.size(), 3u);
  for (const MemoryKind kind :
       {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer})
    EXPECT_EQ(held(units.program, kind), held(lowered(stack(true), s).program, kind));
  s.zero_stage = 3;
  s.pipeline_parallel = 3;
  const Program stages = lowered(stack(true), s, {.cuts = {"layers"}}).program;
  ASSERT_EQ(stages.roles.size(), 3u);
  EXPECT_EQ(traffic(stages, Purpose::kData).at(CollectiveKind::kAllGather),
            (Traffic{8, 8 * 2.0 * kHidden * kHidden}));
  EXPECT_THAT(fault(stack(false), strategy(1, 1), {"layers"}), HasSubstr("nothing is before it"));
}

TEST(GraphUnits, AreStagesOfAPipeline) {
  Strategy s = strategy(1, 1, 4);
  s.pipeline_parallel = 2;
  for (const bool skip : {false, true}) {
    const auto lowered_graph = lowered(layers(skip), s, {.cuts = kCuts});
    const Program& program = lowered_graph.program;
    ASSERT_EQ(program.roles.size(), 2u);
    // [8, 16] in bf16 is 256 B; the skipped tensor crosses, too, with its gradient.
    const double bytes = (skip ? 2 : 1) * 256.0;
    const auto moved = traffic(program, Purpose::kPipeline);
    EXPECT_EQ(moved.at(CollectiveKind::kSend), (Traffic{4, 4 * bytes}));
    EXPECT_EQ(moved.at(CollectiveKind::kReceive), (Traffic{4, 4 * bytes}));
    EXPECT_EQ(lowered_graph.plan.roles[0].elements(), 2 * 256);
    EXPECT_EQ(held(program, MemoryKind::kParameters), 1024_B);
  }
}

TEST(GraphUnits, GoThroughEveryStage) {
  Strategy s = strategy(1, 1, 4);
  s.pipeline_parallel = 4;
  const Program program = lowered(layers(true), s, {.cuts = kCuts}).program;
  ASSERT_EQ(program.roles.size(), 4u);
  // From the second to the third stage: the stream and what skips.
  double bytes = 0;
  for (const program::Call& call : program.roles[1].calls)
    for (const program::Task& task : program.blocks[call.block.index()].tasks)
      if (const auto* what = std::get_if<program::Communication>(&task.body);
          what != nullptr && what->kind == CollectiveKind::kSend)
        bytes += what->bytes.in_base();
  EXPECT_EQ(bytes, 4 * (512.0 + 512.0));  // forward to the third, back to the first
}

TEST(GraphUnits, ShareATableBetweenTheFirstAndTheLast) {
  Graph graph = layers();
  const TensorId w0{1};
  ASSERT_EQ(graph[w0].name, "w0");
  graph.operators[9].inputs[1] = w0;
  ASSERT_EQ(graph.operators[9].name, "dense3");
  Strategy s = strategy(1, 1, 4);
  const auto one = lowered(graph, s, {.cuts = kCuts});
  EXPECT_EQ(one.plan.roles[0].elements(), 3 * 256);
  EXPECT_EQ(held(one.program, MemoryKind::kParameters),
            held(lowered(graph, s).program, MemoryKind::kParameters));
  s.pipeline_parallel = 2;
  const auto two = lowered(graph, s, {.cuts = kCuts});
  ASSERT_EQ(two.plan.copies.size(), 1u);
  EXPECT_EQ(two.plan.copies[0].elements, 256);
  EXPECT_EQ(two.plan.roles[1].elements(), 2 * 256);
}

// Whatever is cut, and however it runs, plan and Program are sound, and all units together hold
// what the graph holds.
TEST(GraphUnits, AreSoundForRandomGraphs) {
  auto examples = operator_examples();
  std::erase_if(examples,
                [](const Example& each) { return !graph_of(each).operators[0].bodies.empty(); });
  int stages = 0;
  int sharded = 0;
  for (unsigned seed = 0; seed < 1'500; ++seed) {
    std::mt19937 random(seed);
    const auto one_of = [&](int n) { return static_cast<std::int64_t>(random() % unsigned(n)); };
    const bool chained = one_of(2) == 0;
    Graph graph = !chained         ? random_graph(examples, random)
                  : one_of(3) == 0 ? stack(true)
                                   : layers(one_of(2) == 0);
    GraphOptions options{.launch_time = 1_us};
    for (std::size_t op = 1; op < graph.operators.size(); ++op)
      if (one_of(2) == 0) options.cuts.push_back(graph.operators[op].name);
    if (graph.name == "stack") options.cuts = {"layers"};
    const std::int64_t units = *units_of(graph, options.cuts);
    Strategy s;
    s.tensor_parallel = 1 + one_of(2);
    s.data_parallel = chained ? 1 << one_of(3) : 1 + one_of(3);
    s.micro_batch = chained ? kBatch / s.data_parallel : 1;
    s.pipeline_parallel = std::min<std::int64_t>(1 + one_of(3), units);
    if (s.pipeline_parallel > 1 && 2 * s.pipeline_parallel <= units && one_of(2) == 0) {
      s.virtual_stages = 2;
      s.schedule = "interleaved";
    }
    if (seed % 3 == 1 && s.pipeline_parallel > 1)
      s.schedule = s.virtual_stages == 2 ? "zb-v" : "zb-h1";
    s.layers_per_stage = std::vector<std::int64_t>(std::size_t(s.stages()), 1);
    s.layers_per_stage[std::size_t(one_of(int(s.stages())))] += units - s.stages();
    const std::int64_t batch = s.data_parallel * s.micro_batch;
    s.global_batch = batch * s.pipeline_parallel * (1 + one_of(3));
    s.zero_stage = one_of(4);
    s.recompute = one_of(2) == 0 ? Recompute::kFull : Recompute::kNone;
    if (one_of(4) == 0 && s.virtual_stages == 1) s.mode = Mode::kForward;
    Framework& framework = s.framework.value;
    framework.gradient_clipping = one_of(2) == 0;
    framework.gradient_reduction =
        one_of(2) == 0 ? GradientReduction::kAfterBackward : GradientReduction::kOverlapped;
    framework.overlap_parameter_gather = one_of(2) == 0;
    if (one_of(3) == 0) framework.shards.gather_each = 1;
    if (!faults_in_graph(s, graph, {}, units, batch, s.devices()).empty()) continue;
    // Over "tensor" and "data": the first two axes, or with a pipeline all that there are.
    std::vector<MeshAxis> axes = mesh_of(s);
    if (s.pipeline_parallel > 1) axes.pop_back();
    annotate(graph, axes, random);
    const auto cut = lower_graph(graph, s, options);
    if (!cut) {
      EXPECT_THAT(cut.error().message,
                  AnyOf(HasSubstr("passes from stage"), HasSubstr("has no kernel"),
                        HasSubstr("both train parameter"), HasSubstr("tensor '"),
                        HasSubstr("share a parameter, schedule 'zb-v'")))
          << "seed " << seed;
      continue;
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(s));
    const Status broken = plan::verify(cut->plan);
    ASSERT_TRUE(broken.ok()) << broken.error().message << plan::to_text(cut->plan);
    if (cut->program.blocks.empty()) continue;  // views alone, forward
    const Status unsound = program::verify(cut->program);
    ASSERT_TRUE(unsound.ok()) << unsound.error().message << plan::to_text(cut->plan);
    if (s.pipeline_parallel > 1) ++stages;
    if (cut->plan.states.cuts_parameters) ++sharded;
    // Without gradients, several units may share a parameter, and each counts it.
    if (s.mode == Mode::kForward) continue;
    std::int64_t elements = 0;
    for (const plan::Role& role : cut->plan.roles) elements += role.elements();
    s.pipeline_parallel = s.virtual_stages = 1;
    s.layers_per_stage.clear();
    s.schedule = "1f1b";
    const auto whole = value_of(lower_graph(with_cuts(graph, options.cuts)->graph, s, {}));
    const std::int64_t tied = cut->plan.parts.tie && !cut->plan.parts.tie->on_one_role
                                  ? cut->plan.parts.tie->elements
                                  : 0;
    EXPECT_EQ(elements - tied, whole.plan.roles.front().elements());
  }
  EXPECT_GT(stages, 100);
  EXPECT_GT(sharded, 100);
}

// The table lies on a stage once, and its whole gradient from the last unit's backward pass to the
// first one's.
TEST(GraphUnits, ShardATableOfTheFirstAndTheLast) {
  Graph graph = layers();
  graph.operators[9].inputs[1] = TensorId{1};
  for (const std::int64_t stage : {2, 3}) {
    Strategy s = strategy(1, 2, 2);
    s.zero_stage = stage;
    const Program program = lowered(graph, s, {.cuts = kCuts}).program;
    EXPECT_EQ(held(program, MemoryKind::kOptimizer), 3 * 256 * 12.0 / 2 * 1_B);
    // What is in no unit's passes, w3, stays whole.
    const double copies = stage == 3 ? 2 : 1;
    EXPECT_EQ(held(program, MemoryKind::kParameters), (3 / copies + 1) * 512 * 1_B);
  }
}

// A mask that no unit trains lies on a rank once, as the batch is split, beside the shards of the
// rest.
TEST(GraphUnits, HoldOnceWhatTheyShareUntrained) {
  Graph graph = layers();
  const TensorId mask = add_parameter(graph, "mask", {DType::kInt8, {kBatch, kHidden}});
  TensorId x = graph.outputs[0];
  for (const std::string n : {"0", "1"}) {
    const TensorId w = add_parameter(graph, "v" + n, {DType::kBf16, {kHidden, kHidden}});
    x = added(graph, {.type = "matmul", .name = "more" + n, .inputs = {x, w}});
    x = added(graph, {.type = "where", .name = "where" + n, .inputs = {mask, x, graph.outputs[0]}});
  }
  graph.outputs = {x};
  Strategy s = strategy(1, 2);
  s.zero_stage = 3;
  const Program program = lowered(graph, s, {.cuts = {"more0", "more1"}}).program;
  const Program whole = lowered(graph, s).program;
  EXPECT_EQ(held(program, MemoryKind::kParameters), held(whole, MemoryKind::kParameters));
  s.zero_stage = 0;
  EXPECT_EQ(held(lowered(graph, s, {.cuts = {"more0", "more1"}}).program, MemoryKind::kParameters),
            ((kLayers + 2) * 512.0 + 0.5 * kBatch * kHidden) * 1_B);
}

TEST(GraphUnits, AreGatheredForAForwardPass) {
  Strategy s = strategy(1, 2);
  s.mode = Mode::kForward;
  s.zero_stage = 3;
  const Program program = lowered(layers(), s, {.cuts = kCuts}).program;
  EXPECT_EQ(traffic(program, Purpose::kData).at(CollectiveKind::kAllGather),
            (Traffic{kLayers, kLayers * 512.0}));
  EXPECT_EQ(held(program, MemoryKind::kParameters), kLayers * 512.0 / 2 * 1_B);
}

TEST(GraphUnits, ClipByTheNormOfAllStages) {
  Strategy s = strategy(1, 1, 4);
  s.pipeline_parallel = 2;
  s.framework.value.gradient_clipping = true;
  const Program program = lowered(layers(), s, {.cuts = kCuts}).program;
  EXPECT_EQ(traffic(program, Purpose::kPipeline).at(CollectiveKind::kAllReduce), (Traffic{1, 4}));
}

TEST(GraphUnits, BeginWithTheFirstPartOfAModule) {
  Graph graph = layers();
  graph.operators[3].name = "block/dense";
  graph.operators[4].name = "block";
  graph.operators[6].name = "dense0";  // as the first operator
  const auto plan = lowered(graph, strategy(1, 1), {.cuts = {"block", "add1", "relu2"}}).plan;
  ASSERT_EQ(plan.parts.units.size(), 4u);
  EXPECT_EQ(plan.parts.units[1].name, "block/dense");
}

TEST(GraphUnits, HaveNamesOfTheirOwn) {
  Graph graph = layers();
  graph.operators[3].name = graph.operators[0].name;
  graph.operators[6].name = "x";
  graph.operators[9].name = "x";
  const auto sharded = value_of(distribute(graph, {{"tensor", 1}}));
  const auto units = cut(sharded, {3, 6, 9});
  EXPECT_EQ(units[1].graph.name, "dense0'");
  EXPECT_EQ(units[3].graph.name, "x'");
}

TEST(GraphUnits, SayWhatCannotBeCut) {
  const Strategy s = strategy(1, 1);
  EXPECT_THAT(fault(layers(), s, {"dens1"}),
              HasSubstr("no operator 'dens1'; did you mean 'dense1'"));
  EXPECT_THAT(fault(layers(), s, {"dense0"}),
              HasSubstr("graph 'layers' begins with operator 'dense0'"));
  Graph graph = layers();
  graph.operators[6].inputs[1] = graph.operators[3].inputs[1];
  ASSERT_EQ(graph.operators[6].name, "dense2");
  EXPECT_THAT(fault(graph, s, kCuts),
              HasSubstr("units 'dense1' and 'dense2' both train parameter 'w1'"));
  EXPECT_EQ(fault(graph, s, {"dense1", "dense3"}), "");
  // The first unit's gradient of the shared matrix is partial over "data" alone, the last one's
  // over "tensor" too, where its input is split.
  Graph shared = layers();
  shared.operators[9].inputs[1] = TensorId{1};
  const Strategy split = strategy(2, 2);
  const auto mesh = mesh_of(split);
  const Axis tensor = axis_of(mesh, "tensor");
  const Axis data = axis_of(mesh, "data");
  const auto lies = [&](const std::string& name, std::vector<Axis> rows) {
    Attribute attribute = replicated(2);
    attribute.dims[0] = std::move(rows);
    std::ranges::find(shared.tensors, name, &Tensor::name)->pinned = attribute;
  };
  for (const std::string name : {"x", "dense0", "add0"}) lies(name, {data});
  for (const std::string name : {"add2", "dense3"}) lies(name, {data, tensor});
  for (const std::string name : {"w0", "w1", "w2"}) lies(name, {});
  EXPECT_THAT(message_of(lower_graph(shared, split, {.cuts = kCuts})),
              HasSubstr("reduced over the same axes in both"));
}

TEST(GraphUnits, SayThatStagesShareNoTensor) {
  Strategy s = strategy(1, 1);
  s.pipeline_parallel = 2;
  Graph graph = layers();
  ASSERT_TRUE(
      annotate(graph, mesh_of(s, {}),
               {.annotations = {{.tensor = "w0", .dims = {"-", "pipeline"}}}, .batch = kBatch}));
  EXPECT_THAT(message_of(lower_graph(graph, s, {.cuts = kCuts})),
              HasSubstr("'w0' is annotated over axis 'pipeline'"));
}

TEST(GraphUnits, SayThatNothingPasses) {
  Graph graph{.name = "towers"};
  for (const std::string n : {"0", "1"}) {
    const TensorId x = add_input(graph, "x" + n, {DType::kBf16, {kBatch, kHidden}});
    const TensorId w = add_parameter(graph, "w" + n, {DType::kBf16, {kHidden, kHidden}});
    graph.outputs.push_back(
        added(graph, {.type = "matmul", .name = "dense" + n, .inputs = {x, w}}));
  }
  Strategy s = strategy(1, 1);
  EXPECT_EQ(fault(graph, s, {"dense1"}), "");
  s.pipeline_parallel = 2;
  EXPECT_THAT(fault(graph, s, {"dense1"}), HasSubstr("nothing passes from stage 0"));
}

}  // namespace foreshard::lower::graph_units_test
