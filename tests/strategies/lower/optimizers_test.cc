// What each optimizer keeps, computes and sends, by hand: a GPT of 4 layers of width 8 whose
// weights are 8 x 24, 8 x 8, 8 x 32 and 32 x 8: 768 elements a layer.

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"

namespace foreshard::lower::optimizers_test {

using program::Program;

constexpr double kInMatrices = 4 * 768;

Model gpt() {
  return tiny_gpt();
}

Strategy strategy(std::string rule, std::int64_t tensor, std::int64_t data, std::int64_t zero) {
  Strategy s = degrees(tensor, 1, data);
  s.zero_stage = zero;
  s.optimizer.rule = std::move(rule);
  return s;
}

Program lowered(const Model& model, const Strategy& of) {
  return value_of(lower(model, of, {.launch_time = 5_us}));
}

double kept(const Program& program) {
  return held(program, program::MemoryKind::kOptimizer);
}

// Of the tasks whose names end like that.
struct Sum {
  std::int64_t tasks = 0;
  double flops = 0;
  double bytes = 0;
};
Sum sum(const Program& program, std::string_view name) {
  Sum sum;
  visit_tasks(program, [&](const program::Task& task) {
    if (!task.name.ends_with(name)) return;
    ++sum.tasks;
    if (const auto* kernel = std::get_if<Kernel>(&task.body)) {
      sum.flops += flops_of(*kernel).in_base();
      sum.bytes += bytes_of(*kernel).in_base();
    } else if (const auto* sent = std::get_if<program::Communication>(&task.body)) {
      sum.bytes += sent->bytes.in_base();
    }
  });
  return sum;
}

double parameters() {
  return static_cast<double>(parameter_count(gpt()));
}

// --- every one -----------------------------------------------------------------------------------

TEST(Optimizers, AreSortedAndDescribed) {
  const auto& rules = optimizer_rules();
  EXPECT_TRUE(std::ranges::is_sorted(rules, {}, &OptimizerRule::name));
  for (const OptimizerRule& rule : rules) {
    EXPECT_TRUE(rule.doc.ends_with('.')) << rule.name;
    for (const bool is_matrix : {false, true})
      for (const Moment& moment : rule.moments({.rule = std::string(rule.name)}, is_matrix))
        EXPECT_GE(moment.bytes, size_of(moment.dtype)) << rule.name;
  }
}

// From 16 bits to fp32, out of the scale of the loss, squares, clipping: what training needs of
// them.
TEST(Optimizers, GetTheirGradientsInPasses) {
  const auto names = [](DType precision, DType gradients, bool clips, bool fused) {
    Strategy s;
    s.precision = precision;
    s.framework.value.gradient_dtype = gradients;
    s.framework.value.gradient_clipping = clips;
    s.framework.value.fused_update = fused;
    std::vector<std::string_view> found;
    for (const GradientPass& one : gradient_passes(s, 7)) {
      EXPECT_EQ(one.pass.rows, 7);
      found.push_back(one.name);
    }
    return found;
  };
  EXPECT_THAT(names(DType::kFp16, DType::kFp16, true, false),
              ElementsAre("main_gradients", "unscale", "gradient_norm", "clip"));
  EXPECT_THAT(names(DType::kFp16, DType::kFp32, true, false),
              ElementsAre("unscale", "gradient_norm", "clip"));
  EXPECT_THAT(names(DType::kBf16, DType::kBf16, false, false), ElementsAre("main_gradients"));
  EXPECT_THAT(names(DType::kBf16, DType::kFp32, true, false), ElementsAre("gradient_norm", "clip"));
  EXPECT_THAT(names(DType::kFp16, DType::kFp16, true, true), ElementsAre("gradient_norm"));
}

// What the host does once a step is behind the norm that it reads, in front of the first kernel.
TEST(Optimizers, WaitForWhatTheHostDoesOnceAStep) {
  Strategy once = strategy("adam", 1, 2, 1);
  once.framework.value.gradient_clipping = true;
  once.framework.value.step_launches = 280;
  const Program program = lowered(gpt(), once);
  std::vector<double> launches;
  bool has_read = false;
  for (const program::Block& block : program.blocks) {
    if (!block.name.starts_with("optimizer.")) continue;
    for (const program::Task& task : block.tasks) {
      has_read = has_read || std::holds_alternative<program::Sync>(task.body);
      if (!task.stream.valid()) continue;
      if (has_read)
        launches.push_back(task.launches);
      else
        EXPECT_EQ(task.launches, 1) << task.name;
    }
  }
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.front(), 281);
  EXPECT_EQ(std::ranges::count(launches, 1), std::ssize(launches) - 1);
}

// Whatever a rule runs is booked as the optimizer's, and its states are cut as ZeRO 1 says.
TEST(Optimizers, AreCutOverTheRanksThatShareThem) {
  for (const OptimizerRule& rule : optimizer_rules()) {
    const std::string name(rule.name);
    EXPECT_EQ(kept(lowered(gpt(), strategy(name, 1, 2, 1))),
              kept(lowered(gpt(), strategy(name, 1, 2, 0))) / 2)
        << name;
    const Program program = lowered(gpt(), strategy(name, 2, 2, 1));
    const Status sound = program::verify(program);
    EXPECT_TRUE(sound.ok()) << name << ": " << sound.error().message;
  }
}

// --- Adam's types --------------------------------------------------------------------------------

// Moments in bf16, as DeepSeek-V3 has them: 4 + 2 + 2 bytes an element; with a master copy in fp16,
// 2 + 2 + 2; without one, as parameters are bf16 too, 2 + 2. The fused kernel reads and writes
// them, the gradient's 4 bytes and the working copy's 2.
TEST(Adam, KeepsWhatItKeepsInTheTypesThatAreAskedFor) {
  const auto check = [&](const Optimizer& optimizer, double bytes, double moved) {
    Strategy s = strategy("adam", 1, 2, 1);
    s.optimizer = optimizer;
    const Program program = lowered(gpt(), s);
    EXPECT_EQ(kept(program), bytes * parameters() / 2);
    EXPECT_EQ(sum(program, "adam").bytes, moved * parameters() / 2);
  };
  constexpr DType kBf16 = DType::kBf16;
  check({}, 12, 4 + 2 * 12 + 2);
  check({.first_moment = kBf16, .second_moment = kBf16}, 8, 4 + 2 * 8 + 2);
  check({.first_moment = kBf16}, 10, 4 + 2 * 10 + 2);
  check({.first_moment = DType::kFp8, .second_moment = DType::kFp16}, 7, 4 + 2 * 7 + 2);
  check({.first_moment = kBf16, .second_moment = kBf16, .master = DType::kFp16}, 6, 4 + 2 * 6 + 2);
  // The parameters themselves are read and written in the place of a copy.
  check({.first_moment = kBf16, .second_moment = kBf16, .master = kBf16}, 4, 4 + 2 * 6);
  // The lower halves of masters, and the parameters for the upper ones.
  check({.first_moment = kBf16, .second_moment = kBf16, .remainders = true}, 6, 4 + 2 * 6 + 2 + 2);
  Strategy s = strategy("adam", 1, 1, 0);
  s.precision = DType::kFp32;  // no copy, two moments
  s.optimizer = {.first_moment = kBf16, .second_moment = kBf16};
  EXPECT_EQ(kept(lowered(gpt(), s)), 4 * parameters());
}

// In a loop, operations on moments move 2 bytes where they moved 4: of the 80, half of the 8 + 12
// of each moment and half of three times 8.
TEST(Adam, InALoopReadsMomentsInTheirTypes) {
  Strategy s = strategy("adam", 1, 1, 0);
  s.framework.value.optimizer = OptimizerKernels::kLoop;
  s.optimizer = {.first_moment = DType::kBf16, .second_moment = DType::kBf16};
  EXPECT_EQ(sum(lowered(gpt(), s), "adam").bytes, (80 - 10 - 10 - 12) * parameters());
}

// --- each ----------------------------------------------------------------------------------------

// Master copy and momentum; gradient, both and the working copy: 4 + 2 x 8 + 2.
TEST(Sgd, HasOneMoment) {
  const Program program = lowered(gpt(), strategy("sgd", 1, 1, 0));
  EXPECT_EQ(kept(program), 8 * parameters());
  EXPECT_EQ(sum(program, "sgd").bytes, 22 * parameters());
}

// 4 + 1 + 1 bytes, and two scales of 4 for 256 elements; with blocks of 2048, for eight times as
// many. The kernel: 4 + 2 x 6 + 2.
TEST(Adam8Bit, HasMomentsOfAByte) {
  Strategy s = strategy("adam-8bit", 1, 1, 0);
  EXPECT_EQ(kept(lowered(gpt(), s)), (6 + 8.0 / 256) * parameters());
  EXPECT_EQ(sum(lowered(gpt(), s), "adam").bytes, 18 * parameters());
  s.optimizer.block = 2048;
  EXPECT_EQ(kept(lowered(gpt(), s)), (6 + 8.0 / 2048) * parameters());
  s.optimizer.master = DType::kBf16;  // none: bf16 parameters are updated themselves
  EXPECT_EQ(kept(lowered(gpt(), s)), (2 + 8.0 / 2048) * parameters());
}

// Moments and directions: 16 bytes in, 12 out; two norms: 4 each; the step: 8 in, 4 out and the
// copy's 2. A layer has 4 weights, 4 biases and 2 norms of 2 tensors; beside the layers there are 2
// tables, a norm of 2 tensors and the projection: 53 tensors, of each two norms in fp32.
TEST(Lamb, AddsUpTheNormsOfEveryTensor) {
  const Program alone = lowered(gpt(), strategy("lamb", 1, 1, 0));
  EXPECT_EQ(kept(alone), 12 * parameters());
  EXPECT_EQ(sum(alone, "lamb_update").bytes, 28 * parameters());
  EXPECT_EQ(sum(alone, "lamb_norm").bytes, 8 * parameters());
  EXPECT_EQ(sum(alone, "lamb_apply").bytes, 14 * parameters());
  EXPECT_EQ(sum(alone, "lamb_norms").tasks, 0);
  EXPECT_EQ(sum(lowered(gpt(), strategy("lamb", 1, 2, 1)), "lamb_norms").bytes, 2 * 4 * 53);
  EXPECT_EQ(sum(lowered(gpt(), strategy("lamb", 2, 1, 0)), "lamb_norms").bytes, 2 * 4 * 53);
  // A tied projection is the embedding's table.
  Model tied = gpt();
  tied.tied_embeddings = true;
  EXPECT_EQ(sum(lowered(tied, strategy("lamb", 1, 2, 1)), "lamb_norms").bytes, 2 * 4 * 52);
}

// An s x l matrix: 5 iterations of 2 s s l, 2 s s s and 2 s s l. With s = 8: 4 x 64 l + 1024, which
// for l of 24, 8, 32 and 32 is 7168 + 3072 + 9216 + 9216 = 28672 a layer.
constexpr double kNewtonSchulz = 5 * 4 * 28672;

TEST(Muon, KeepsOneMomentOfWeightsOfLayersAndMakesItOrthogonal) {
  const Program program = lowered(gpt(), strategy("muon", 1, 1, 0));
  EXPECT_EQ(kept(program), 12 * parameters() - 4 * kInMatrices);
  EXPECT_EQ(sum(program, "newton_schulz").flops, kNewtonSchulz);
  EXPECT_EQ(sum(program, "newton_schulz").tasks, 4 * 4 * 5 * 3);
  EXPECT_EQ(sum(program, "adam").bytes, 30 * (parameters() - kInMatrices));
  // Momentum twice: two operands and a result in fp32; in bf16: read 4, written 2.
  EXPECT_EQ(sum(program, "muon_momentum").bytes, 12 * kInMatrices);
  EXPECT_EQ(sum(program, "muon_nesterov").bytes, 12 * kInMatrices);
  EXPECT_EQ(sum(program, "muon_cast").bytes, 6 * kInMatrices);
  EXPECT_EQ(sum(program, "muon_updates").tasks, 0);
  EXPECT_EQ(sum(program, "muon_parts").tasks, 0);
}

// Replicas without ZeRO do the same work; with it each has half of the matrices, and gathers the
// updates of all in bf16: 2 bytes an element, where gradients have 4 and parameters 2.
TEST(Muon, GathersUpdatesOfMatricesThatRanksShare) {
  EXPECT_EQ(sum(lowered(gpt(), strategy("muon", 1, 2, 0)), "newton_schulz").flops, kNewtonSchulz);
  for (const std::int64_t zero : {1, 2, 3}) {
    const Program program = lowered(gpt(), strategy("muon", 1, 2, zero));
    EXPECT_EQ(sum(program, "muon_updates").bytes, 2 * kInMatrices);
    EXPECT_EQ(sum(program, "newton_schulz").flops, kNewtonSchulz / 2);
    EXPECT_EQ(sum(program, "muon_momentum").bytes, 12 * kInMatrices / 2);
  }
  // One after another: there is room for one, the largest of 8 x 32.
  double most = 0;
  for (const program::Block& block : lowered(gpt(), strategy("muon", 1, 2, 1)).blocks)
    for (const program::Task& task : block.tasks)
      if (const auto* room = std::get_if<program::Allocate>(&task.body);
          room != nullptr && room->buffer == "muon_updates")
        most = std::max(most, room->bytes.in_base());
  EXPECT_EQ(most, 2 * 8 * 32);
  // 16 matrices for 32 ranks: the busiest has one, of the largest.
  EXPECT_EQ(sum(lowered(gpt(), strategy("muon", 1, 32, 1)), "newton_schulz").flops, 5 * 9216);
  // For 12 ranks: the first of the eight largest, and of what comes round again (a query, key and
  // value projection is the ninth to the twelfth, so the next is one of 8 x 8).
  EXPECT_EQ(sum(lowered(gpt(), strategy("muon", 1, 12, 1)), "newton_schulz").flops,
            5 * (9216 + 3072));
}

// Two tensor-parallel ranks hold halves: over the data-parallel ones each gathers 1536 elements,
// then both gather the other's half of the matrices that they work on, and do the same.
TEST(Muon, GathersWhatTensorParallelRanksHoldOfIt) {
  const Program program = lowered(gpt(), strategy("muon", 2, 2, 1));
  EXPECT_EQ(sum(program, "muon_updates").bytes, 2 * kInMatrices / 2);
  EXPECT_EQ(sum(program, "muon_parts").bytes, 2 * kInMatrices / 2);
  EXPECT_EQ(sum(program, "newton_schulz").flops, kNewtonSchulz / 2);
  EXPECT_EQ(sum(lowered(gpt(), strategy("muon", 2, 1, 0)), "muon_parts").bytes, 2 * kInMatrices);
}

// 4 layers of 4 experts of 8 x 32 and 32 x 8, two on each of two ranks, and a router of 8 x 4
// (s = 4, l = 8: 4 x 16 x 8 + 2 x 64 = 640), beside the 8 x 24 and 8 x 8 of attention.
TEST(Muon, MakesEachExpertOrthogonalForItself) {
  Model model = gpt();
  model.bias = false;
  model.experts = 4;
  model.experts_per_token = 2;
  Strategy s = strategy("muon", 1, 2, 0);
  s.expert_parallel = 2;
  const double attention = 7168 + 3072;
  EXPECT_EQ(sum(lowered(model, s), "newton_schulz").flops,
            5 * 4 * (attention + 640 + 2 * 2 * 9216.0));
  // ZeRO: experts have no copies; of 4 routers and 8 matrices of attention each rank has half.
  s.zero_stage = 1;
  EXPECT_EQ(sum(lowered(model, s), "newton_schulz").flops,
            5 * 4 * ((attention + 640) / 2 + 2 * 2 * 9216.0));
  EXPECT_EQ(sum(lowered(model, s), "muon_updates").bytes, 2 * 4 * (192 + 64 + 32));
}

}  // namespace foreshard::lower::optimizers_test
