#include "validate/profile/match.h"

#include <fmt/format.h>

#include "tests/test.h"
#include "tests/validate/profile/small_trace.h"

#include "validate/profile/samples.h"

namespace foreshard::profile {
namespace {

KernelNames shipped_names() {
  return value_of(yaml::Loader(shipped_options()).read_ref<KernelNames>("kernels"));
}

// Of two ranks: a product and a norm, an all-reduce of 128 KiB, and the product's backward pass.
program::Program small_program() {
  program::Program p;
  p.name = "small";
  p.mesh = {{"tensor", 2}};
  p.streams = {{"compute"}, {"tensor"}};
  const program::StreamId compute{0};
  p.blocks = {
      {"layer.forward",
       {{.name = "up",
         .body = Kernel{Gemm{.m = 128, .n = 512, .k = 256, .dtype = DType::kBf16}},
         .stream = compute},
        {.name = "norm",
         .body = Kernel{Pass{.kind = PassKind::kRmsNormForward, .rows = 128, .columns = 512}},
         .stream = compute},
        {.name = "reduce",
         .body = program::Communication{.kind = program::CollectiveKind::kAllReduce,
                                        .group = program::AxisGroup{{0}, {}},
                                        .bytes = 128_KiB},
         .stream = program::StreamId{1},
         .after = {1}}}},
      {"layer.backward",
       {{.name = "d.up.data",
         .body = Kernel{Gemm{.m = 128, .n = 256, .k = 512, .dtype = DType::kBf16}},
         .stream = compute},
        {.name = "d.norm",
         .body = Kernel{Pass{.kind = PassKind::kLayerNormBackward, .rows = 128, .columns = 512}},
         .stream = compute}}}};
  p.roles = {{.name = "all",
              .ranks = {0, 1},
              .calls = {{.block = program::BlockId{0}}, {.block = program::BlockId{1}}}}};
  return p;
}

TEST(Match, OfASmallTraceByHand) {
  const auto program = small_program();
  const auto names = shipped_names();
  const auto trace = value_of(read_trace(kSmallTrace, "t.json"));
  const Match found = match(program, 0, trace, names, [](const program::Task&) { return 10_us; });
  ASSERT_EQ(found.tasks.size(), 5U);
  EXPECT_EQ(found.tasks[0].by, MatchedBy::kShape);  // its operator's shapes were recorded
  EXPECT_EQ(found.tasks[1].by, MatchedBy::kPlace);  // two kernels between product and all-reduce
  EXPECT_NEAR(found.tasks[1].measured / 1_us, 5, 1e-6);
  EXPECT_EQ(found.tasks[2].by, MatchedBy::kShape);  // of 65,536 numbers of 2 bytes
  EXPECT_EQ(found.tasks[3].by, MatchedBy::kOrder);  // the one product of the backward pass
  EXPECT_NEAR(found.tasks[3].measured / 1_us, 12, 1e-6);
  EXPECT_EQ(found.tasks[4].by, MatchedBy::kNothing);
  EXPECT_NEAR(found.share(trace), 47.0 / 50, 1e-9);

  const std::string text = to_text(program, trace, found);
  EXPECT_THAT(text, HasSubstr("94.0 % of the GPU time"));
  EXPECT_THAT(text, HasSubstr("somebodys_kernel: no line of the list of kernel names fits"));
  EXPECT_THAT(text, HasSubstr("layer.backward / d.norm"));
}

TEST(Match, GivesSamples) {
  const auto program = small_program();
  const auto names = shipped_names();
  auto trace = value_of(read_trace(kSmallTrace, "t.json"));
  std::vector<ProfiledRank> ranks(1);
  ranks[0].match = match(program, 0, trace, names, [](const program::Task&) { return 10_us; });
  ranks[0].trace = std::move(trace);
  const auto samples = samples_of(program, ranks);
  ASSERT_EQ(samples.kernels.size(), 3U);
  EXPECT_EQ(describe(samples.kernels[0].kernel), "gemm 128x256x512 bf16");
  EXPECT_NEAR(samples.kernels[0].time.median / 1_us, 12, 1e-6);
  ASSERT_EQ(samples.collectives.size(), 1U);
  EXPECT_EQ(samples.collectives[0].ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_NEAR(samples.collectives[0].time.median / 1_us, 20, 1e-6);

  // By hand: launches begin at 10, 50, 70, 90 us, and 210 us on the thread of the backward pass:
  // 40, 20, 20, 120 apart; five for four tasks.
  const auto host = value_of(host_numbers(ranks));
  EXPECT_EQ(host.launches, 5);
  EXPECT_NEAR(host.call.median / 1_us, 4, 1e-6);
  EXPECT_NEAR(host.interval.median / 1_us, 20, 1e-6);
  EXPECT_NEAR(host.mean_interval / 1_us, 50, 1e-6);
  EXPECT_NEAR(host.per_task / 1_us, 62.5, 1e-6);
  EXPECT_EQ(held_out_layers(program, ranks).layers, 0);  // of one layer nothing can be held out
}

// A kernel and its launch, inside a range of its own.
std::string launched(const std::string& range, const std::string& name, int at, int correlation) {
  return fmt::format(R"(
    {{"ph": "X", "cat": "cpu_op", "name": "{0}", "tid": 1, "ts": {2}, "dur": 9}},
    {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": {3}, "dur": 1,
     "args": {{"correlation": {4}}}}},
    {{"ph": "X", "cat": "kernel", "name": "{1}", "ts": {5}, "dur": 3, "args": {{"correlation": {4}}}}})",
                     range, name, at, at + 1, correlation, at + 2);
}

// Nobody told the profiler where steps begin. Gradients are clipped outside of all ranges, behind
// the backward pass, and the optimizer takes two launches for all its tensors.
TEST(Match, CutsStepsBehindTheirOptimizers) {
  const auto pass = [](PassKind kind) {
    return Kernel{Pass{.kind = kind, .rows = 30'000'000, .columns = 1, .dtype = DType::kFp32}};
  };
  const program::StreamId compute{0};
  program::Program program;
  program.name = "trained";
  program.mesh = {{"data", 1}};
  program.streams = {{"compute"}};
  program.blocks = {
      {"layer.forward",
       {{.name = "up", .body = Kernel{Gemm{.m = 128, .n = 512, .k = 256}}, .stream = compute}}},
      {"layer.backward",
       {{.name = "d.up", .body = Kernel{Gemm{.m = 128, .n = 256, .k = 512}}, .stream = compute}}},
      {"optimizer",
       {{.name = "clip", .body = pass(PassKind::kUnary), .stream = compute, .optimizer = true},
        {.name = "adam", .body = pass(PassKind::kAdam), .stream = compute, .optimizer = true}}}};
  program.roles = {{.name = "all",
                    .ranks = {0},
                    .calls = {{.block = program::BlockId{0}},
                              {.block = program::BlockId{1}},
                              {.block = program::BlockId{2}}}}};
  const std::string adam = "multi_tensor_apply_kernel<FusedAdamMathFunctor>";
  std::string text = R"({"traceEvents": [)";
  for (int step = 0; step < 2; ++step) {
    const int at = 100 * step;
    const int id = 10 * step;
    text += launched("aten::mm", "nvjet_a", at, id + 1) + ",";
    text +=
        launched("autograd::engine::evaluate_function: MmBackward0", "nvjet_b", at + 10, id + 2);
    text += "," + launched("aten::_foreach_mul_",
                           "multi_tensor_apply_kernel<BinaryOpScalarTensorFunctor, multiplies>",
                           at + 20, id + 3);
    for (const int part : {0, 1})
      text += "," + launched("Optimizer.step#AdamW.step", adam, at + 30 + 20 * part, id + 4 + part);
    text += "," + launched("aten::_amp_foreach_non_finite_check_and_unscale_", "unscale", at + 40,
                           id + 6);
    text += step == 0 ? "," : "]}";
  }
  const auto names = shipped_names();
  const auto trace = value_of(read_trace(text, "t.json"));
  const Match found = match(program, 0, trace, names, [](const program::Task&) { return 5_us; });
  EXPECT_EQ(found.steps, 2);
  ASSERT_EQ(found.tasks.size(), 8U);
  for (const ProfiledTask& task : found.tasks) {
    SCOPED_TRACE(task.task->name + " of step " + std::to_string(task.step));
    const bool is_adam = task.task->name == "adam";
    EXPECT_EQ(task.by, MatchedBy::kOrder);
    EXPECT_EQ(task.kernels, is_adam ? 2 : 1);
    EXPECT_NEAR(task.measured / 1_us, is_adam ? 6 : 3, 1e-6);
  }
  EXPECT_NEAR(found.share(trace), 15.0 / 18, 1e-12);  // "unscale" is no task
}

// How many steps of `small_program` the trace is taken for.
std::int64_t steps_in(const std::string& text) {
  const auto trace = value_of(read_trace(text, "t.json"));
  const auto program = small_program();
  const auto expected = [](const program::Task&) { return 5_us; };
  return match(program, 0, trace, shipped_names(), expected).steps;
}

TEST(Match, TakesOneMarkAsOneStep) {
  std::string text = R"({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "tid": 1, "ts": 0, "dur": 99},)";
  text += launched("Optimizer.step#AdamW.step", "nvjet_a", 10, 1) + ",";
  text += launched("autograd::engine::evaluate_function: MmBackward0", "nvjet_b", 30, 2) + ",";
  text += launched("Optimizer.step#SGD.step", "nvjet_c", 50, 3) + "]}";
  EXPECT_EQ(steps_in(text), 1);
}

// An optimizer that each parameter calls as soon as its gradient is there: no step ends with it.
TEST(Match, OptimizersInsideOfABackwardPassEndNoStep) {
  std::string text = R"({"traceEvents": [)";
  for (const int at : {0, 40, 80})
    text += fmt::format(R"(
    {{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: MmBackward0", "tid": 1,
     "ts": {}, "dur": 35}},)",
                        at) +
            launched("aten::mm", "nvjet_a", at + 1, at + 1) + "," +
            launched("Optimizer.step#AdamW.step", "nvjet_b", at + 20, at + 2) +
            (at == 80 ? "]}" : ",");
  EXPECT_EQ(steps_in(text), 1);
}

// A product that the framework runs in two pieces of the same input: 128x256 . 256x(384 + 128).
TEST(Match, JoinsProductsThatAddUpToATask) {
  const std::string text = R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 1, "ts": 0, "dur": 9,
     "args": {"Input Dims": [[128, 256], [256, 384]]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "nvjet_a", "ts": 2, "dur": 3, "args": {"correlation": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 1, "ts": 10, "dur": 9,
     "args": {"Input Dims": [[128, 256], [256, 128]]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": 11, "dur": 1, "args": {"correlation": 2}},
    {"ph": "X", "cat": "kernel", "name": "nvjet_b", "ts": 12, "dur": 4, "args": {"correlation": 2}}]})";
  const auto program = small_program();
  const auto names = shipped_names();
  const auto trace = value_of(read_trace(text, "t.json"));
  const Match found = match(program, 1, trace, names, [](const program::Task&) { return 10_us; });
  EXPECT_EQ(found.tasks[0].by, MatchedBy::kShape);
  EXPECT_EQ(found.tasks[0].kernels, 2);
  EXPECT_NEAR(found.tasks[0].measured / 1_us, 7, 1e-6);
}

TEST(KernelNames, TakeTheFirstLineThatFits) {
  const auto names = shipped_names();
  const auto kinds = [&](const char* name) {
    const KernelName* line = names.kernel(name);
    return line == nullptr ? std::vector<std::string>{"nothing"} : line->kinds;
  };
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            Kinds{"all_reduce"});
  EXPECT_EQ(kinds("void cutlass::device_kernel<flash::FlashAttnBwd<...> >"),
            Kinds{"attention_bwd"});
  EXPECT_EQ(kinds("volta_sgemm_128x32_nn"), Kinds{"gemm"});
  EXPECT_EQ(kinds("triton_poi_fused_add_0"), Kinds{"pass"});
  EXPECT_EQ(kinds("mine"), Kinds{"nothing"});
  EXPECT_EQ(names.range("LinearBackward")->phase, Phase::kBackward);
}

TEST(KernelNames, RefuseWhatIsNoTask) {
  yaml::Loader loader;
  const std::string names = message_of(loader.read_text<KernelNames>(
      "kernels:\n  - {name: a, kinds: [gem], source: s}\n  - {name: b, kinds: [gemm], dtype: fp7, "
      "source: s}\nranges: []\n",
      "mine.yaml"));
  EXPECT_THAT(names, HasSubstr("mine.yaml:2"));
  EXPECT_THAT(names, HasSubstr("'gem' is no kind of task"));
  EXPECT_THAT(names, HasSubstr("'fp7' is no type"));
}

// A kernel that may be any pass, beside nothing that tells where it ran: it stands for no task, and
// the trace shows nothing of the Program.
TEST(Match, OfALoneKernelIsNothing) {
  const auto program = small_program();
  const auto names = shipped_names();
  const auto trace = value_of(read_trace(
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
          "traceEvents": [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
             "ts": 10, "dur": 5, "args": {"correlation": 7}},
            {"ph": "X", "cat": "kernel", "name": "triton_poi_fused_add_0", "pid": 0, "tid": 7,
             "ts": 20, "dur": 2, "args": {"correlation": 7, "device": 0, "stream": 7}}]})",
      "t.json"));
  const Match found = match(program, 0, trace, names, [](const program::Task&) { return 10_us; });
  EXPECT_EQ(found.share(trace), 0);
  EXPECT_EQ(found.shown(), 0);
  // Of the small trace: the products, two of four kernels of 10 us each.
  const auto whole = value_of(read_trace(kSmallTrace, "t.json"));
  EXPECT_NEAR(match(program, 0, whole, names, [](const program::Task&) { return 10_us; }).shown(),
              0.5, 1e-12);
}

}  // namespace
}  // namespace foreshard::profile
