// What a strategy makes ranks do, counted and weighed by hand.
#include "strategies/program/lower/lower.h"

#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

namespace foreshard::lower::lower_test {

using program::CollectiveKind;
using program::Program;
using program::Purpose;

constexpr double kLayers = 4;
constexpr double kHidden = 8;
constexpr double kSequence = 4;
constexpr double kMicroBatch = 2;
constexpr double kHeadElements = 12 * kHidden + 2 * kHidden;  // the projection and a LayerNorm
// One boundary tensor of a micro-batch, in bf16.
constexpr double kBoundary = 2 * kSequence * kMicroBatch * kHidden;

Model gpt() {
  return tiny_gpt();
}

// `micro_batches` of 2 sequences; the vocabulary is not padded.
Strategy strategy(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t micro_batches) {
  return degrees(tp, pp, dp, 2, micro_batches);
}

Program lowered(const Model& model, const Strategy& of) {
  return value_of(lower(model, of, {.launch_time = 5_us}));
}

// What one rank of a role takes part in, by kind; of one purpose; without the gradient norm.
std::map<CollectiveKind, Traffic> traffic(const Program& program, std::size_t role,
                                          Purpose purpose) {
  std::map<CollectiveKind, Traffic> sums;
  visit_tasks(program, program.roles[role], [&](const program::Task& task) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr || what->purpose != purpose || what->tag == "gradient_norm") return;
    Traffic& sum = sums[what->kind];
    ++sum.operations;
    sum.bytes += what->bytes.in_base();
  });
  return sums;
}

// Megatron-LM: two all-reduces forward and two backward per layer and micro-batch, two more where
// the layer is computed again. Besides, per micro-batch: the embedding's lookup, the three
// statistics per token of the loss (fp32; first the maximum, then the sum and the target's logit),
// the gradient of the last norm's output.
TEST(TensorParallel, ReducesFourTimesPerLayerAndSixWithFullRecompute) {
  Strategy s = strategy(2, 1, 1, 3);
  const double statistics = 4 * 3 * kSequence * kMicroBatch;
  auto sums = traffic(lowered(gpt(), s), 0, Purpose::kTensor);
  EXPECT_EQ(sums.size(), 1u);
  EXPECT_EQ(
      sums[CollectiveKind::kAllReduce],
      (Traffic{std::int64_t{3} * (4 * 4 + 4), 3 * ((4 * kLayers + 2) * kBoundary + statistics)}));

  s.recompute = Recompute::kFull;
  sums = traffic(lowered(gpt(), s), 0, Purpose::kTensor);
  EXPECT_EQ(
      sums[CollectiveKind::kAllReduce],
      (Traffic{std::int64_t{3} * (6 * 4 + 4), 3 * ((6 * kLayers + 2) * kBoundary + statistics)}));

  s.recompute = Recompute::kSelective;
  sums = traffic(lowered(gpt(), s), 0, Purpose::kTensor);
  EXPECT_EQ(sums[CollectiveKind::kAllReduce].operations, 3 * (4 * 4 + 4));
}

// Per layer: two all-gathers forward, four backward (two gradients, two saved inputs once more);
// two reduce-scatters each way. Per micro-batch: the gradient of the embedding, the input of the
// head and the same once more are gathered, the head's input gradient is scattered; the embedding
// with learned positions and the loss statistics are reduced. Once per step: gradients of what
// tensor-parallel ranks have copies of but saw parts for: per layer two norms of 2 h and two biases
// of h, and the last norm, in fp32.
TEST(SequenceParallel, GathersAndScatters) {
  Strategy s = strategy(2, 1, 1, 3);
  s.sequence_parallel = true;
  auto sums = traffic(lowered(gpt(), s), 0, Purpose::kTensor);
  EXPECT_EQ(sums[CollectiveKind::kAllGather],
            (Traffic{std::int64_t{3} * (6 * 4 + 3), 3 * (6 * kLayers + 3) * kBoundary}));
  EXPECT_EQ(sums[CollectiveKind::kReduceScatter],
            (Traffic{std::int64_t{3} * (4 * 4 + 1), 3 * (4 * kLayers + 1) * kBoundary}));
  const double statistics = 4 * 3 * kSequence * kMicroBatch;
  EXPECT_EQ(sums[CollectiveKind::kAllReduce],
            (Traffic{3 * 3 + 1,
                     3 * (kBoundary + statistics) + 4 * (6 * kHidden * kLayers + 2 * kHidden)}));
}

// Beside the products that read them run two gathers of a layer forward, and two backward; as many
// as ever.
TEST(SequenceParallel, RunsProductsBesideCollectivesIfTheFrameworkDoes) {
  Strategy s = strategy(2, 1, 1, 1);
  s.sequence_parallel = true;
  const Program apart = lowered(gpt(), s);
  s.framework.value.overlap_tensor_products = true;
  const Program beside = lowered(gpt(), s);
  const auto waiting = [](const Program& program, std::string_view block) {
    int count = 0;
    for (const program::Block& one : program.blocks) {
      if (one.name != block) continue;
      for (const program::Task& task : one.tasks) {
        const auto* kernel = std::get_if<Kernel>(&task.body);
        if (kernel == nullptr || !std::holds_alternative<Gemm>(*kernel)) continue;
        for (const std::int32_t t : task.after) {
          const auto* what =
              std::get_if<program::Communication>(&one.tasks[static_cast<std::size_t>(t)].body);
          if (what != nullptr && what->kind == CollectiveKind::kAllGather) ++count;
        }
      }
    }
    return count;
  };
  EXPECT_EQ(waiting(apart, "layer.forward"), 2);
  EXPECT_EQ(waiting(beside, "layer.forward"), 0);
  EXPECT_GT(waiting(apart, "layer.backward"), waiting(beside, "layer.backward"));
  EXPECT_EQ(traffic(apart, 0, Purpose::kTensor), traffic(beside, 0, Purpose::kTensor));
}

// Rajbhandari et al. 2020. P parameters, fp32 gradients, two replicas, two micro-batches; units of
// reduction are the embedding, each layer, the head.
TEST(DataParallel, MovesWhatItsZeroStageSays) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  constexpr std::int64_t kUnits = 4 + 2;
  using Sums = std::map<CollectiveKind, Traffic>;
  const auto sums = [](const Strategy& s) { return traffic(lowered(gpt(), s), 0, Purpose::kData); };
  Strategy s = strategy(1, 1, 2, 2);
  Framework& framework = s.framework.value;

  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kAllReduce, {kUnits, 4 * p}}}));
  framework.gradient_reduction = GradientReduction::kAfterBackward;
  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kAllReduce, {1, 4 * p}}}));
  framework.gradient_dtype = DType::kBf16;
  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kAllReduce, {1, 2 * p}}}));
  framework = {};
  framework.vocabulary_multiple = 1;

  s.zero_stage = 1;
  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kReduceScatter, {kUnits, 4 * p}},
                           {CollectiveKind::kAllGather, {1, 2 * p}}}));
  framework.overlap_parameter_gather = true;
  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kReduceScatter, {kUnits, 4 * p}},
                           {CollectiveKind::kAllGather, {kUnits, 2 * p}}}));
  s.zero_stage = 2;  // every micro-batch's gradients at once
  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kReduceScatter, {2 * kUnits, 2 * 4 * p}},
                           {CollectiveKind::kAllGather, {kUnits, 2 * p}}}));
  // Parameters for every forward and every backward pass, but for the head, which stays whole
  // between the two.
  s.zero_stage = 3;
  const Traffic gathered{4 * kUnits - 2, 4 * 2 * p - 2 * 2 * kHeadElements};
  EXPECT_EQ(sums(s), (Sums{{CollectiveKind::kReduceScatter, {2 * kUnits, 2 * 4 * p}},
                           {CollectiveKind::kAllGather, gathered}}));
  framework.shards = {.forward_prefetch = Prefetch::kNone, .backward_prefetch = Prefetch::kNone};
  EXPECT_EQ(sums(s)[CollectiveKind::kAllGather], gathered);
  s = strategy(1, 1, 1, 2);
  s.zero_stage = 3;
  EXPECT_EQ(sums(s), Sums{});
}

// Two sets of shards on two ranks each: what a set does is that of two replicas; a rank's half of
// the gradients is then summed with that of the other set. Zhao et al. 2023, section 3.2.2.
TEST(DataParallel, SetsOfShardsReduceWithinThemAndThenAmongThem) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  constexpr std::int64_t kUnits = 4 + 2;
  using Sums = std::map<CollectiveKind, Traffic>;
  Strategy s = strategy(1, 1, 4, 2);
  s.shard_replicas = 2;
  s.framework.value.overlap_parameter_gather = true;
  const auto sums = [&] { return traffic(lowered(gpt(), s), 0, Purpose::kData); };
  s.zero_stage = 1;
  EXPECT_EQ(sums(), (Sums{{CollectiveKind::kReduceScatter, {kUnits, 4 * p}},
                          {CollectiveKind::kAllReduce, {kUnits, 4 * p / 2}},
                          {CollectiveKind::kAllGather, {kUnits, 2 * p}}}));
  s.zero_stage = 3;
  EXPECT_EQ(
      sums(),
      (Sums{{CollectiveKind::kReduceScatter, {2 * kUnits, 2 * 4 * p}},
            {CollectiveKind::kAllReduce, {2 * kUnits, 2 * 4 * p / 2}},
            {CollectiveKind::kAllGather, {4 * kUnits - 2, 4 * 2 * p - 2 * 2 * kHeadElements}}}));
  const Program program = lowered(gpt(), s);
  const auto memory = [&](program::MemoryKind kind) {
    for (const program::StaticMemory& one : program.roles[0].memory)
      if (one.kind == kind) return one.bytes.in_base();
    return 0.0;
  };
  EXPECT_EQ(memory(program::MemoryKind::kParameters), 2 * p / 2);
  EXPECT_EQ(memory(program::MemoryKind::kOptimizer), 12 * p / 2);
}

// Bytes of the kernels of role 0 that `wanted` picks by block and task, and how many there are.
Traffic kernels(const Program& program, std::string_view block, std::string_view task) {
  Traffic sum;
  for (const program::Call& call : program.roles[0].calls) {
    const program::Block& of = program.blocks[call.block.index()];
    if (of.name.find(block) == std::string::npos) continue;
    for (const program::Task& one : of.tasks) {
      const auto* kernel = std::get_if<Kernel>(&one.body);
      if (kernel == nullptr || one.name != task) continue;
      sum.operations += call.repeat;
      sum.bytes += call.repeat * bytes_of(*kernel).in_base();
    }
  }
  return sum;
}

// With FSDP2 what ranks gathered is copied into the parameters ahead of each of the four passes of
// two micro-batches: once for every parameter, and never where nothing is gathered for a pass.
TEST(DataParallel, GatheredParametersAreCopiedOutAheadOfEachPass) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  constexpr std::int64_t kUnits = 4 + 2;
  Strategy s = strategy(1, 1, 2, 2);
  s.framework.value.shards.copied_out = true;
  s.zero_stage = 2;
  EXPECT_EQ(kernels(lowered(gpt(), s), "", "copy_out"), (Traffic{0, 0}));
  s.zero_stage = 3;
  EXPECT_EQ(kernels(lowered(gpt(), s), "", "copy_out"), (Traffic{4 * kUnits, 4 * (2 + 2) * p}));
  s.framework.value.shards.copied_out = false;
  EXPECT_EQ(kernels(lowered(gpt(), s), "", "copy_out"), (Traffic{0, 0}));
}

// Eight operations of Adam in fp32 move 8 + 12 + 8 + 12 + 8 + 8 + 8 + 16 bytes an element; fused,
// 28 and the working copy's 2.
TEST(Optimizer, InALoopMovesEightyBytesAnElement) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  Strategy s = strategy(1, 1, 1, 1);
  EXPECT_EQ(kernels(lowered(gpt(), s), "optimizer", "adam"), (Traffic{1, 30 * p}));
  s.framework.value.optimizer = OptimizerKernels::kLoop;
  EXPECT_EQ(kernels(lowered(gpt(), s), "optimizer", "adam"), (Traffic{8, 80 * p}));
}

// Two replicas: each holds P / 2 parameters in fp32, which are the optimizer's master copy, so that
// its state is the two moments alone. Each of the 6 units is cast forward and backward before it is
// gathered, the head once: 4 bytes read and 2 written for each element of the shard.
TEST(Shards, InFp32AreTheMasterCopyAndAreCastBeforeEachGather) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  Strategy s = strategy(1, 1, 2, 1);
  s.zero_stage = 3;
  const auto bytes = [](const Program& program) {
    std::map<program::MemoryKind, double> sums;
    for (const auto& part : program.roles[0].memory) sums[part.kind] += part.bytes.in_base();
    return sums;
  };
  Program program = lowered(gpt(), s);
  EXPECT_EQ(bytes(program)[program::MemoryKind::kParameters], 2 * p / 2);
  EXPECT_EQ(bytes(program)[program::MemoryKind::kOptimizer], 12 * p / 2);
  EXPECT_EQ(kernels(program, "gather", "cast"), Traffic{});

  s.framework.value.shards.fp32 = true;
  program = lowered(gpt(), s);
  EXPECT_EQ(bytes(program)[program::MemoryKind::kParameters], 4 * p / 2);
  EXPECT_EQ(bytes(program)[program::MemoryKind::kOptimizer], 8 * p / 2);
  EXPECT_EQ(kernels(program, "gather", "cast"), (Traffic{11, 6 * (2 * p - kHeadElements) / 2}));
  s.zero_stage = 2;  // whole on each rank
  EXPECT_EQ(kernels(lowered(gpt(), s), "gather", "cast"), Traffic{});
}

// The calls of the backward pass over the four layers, in the order in which the host issues them.
// "pre" asks for the next layer before a pass, "post" between a pass and its reduction; both wait
// only for the pass before that, "none" for the pass itself.
TEST(Shards, ArePrefetchedAsTheFrameworkSays) {
  Strategy s = strategy(1, 1, 2, 1);
  s.zero_stage = 3;
  const auto order = [&](Prefetch when) {
    s.framework.value.shards.backward_prefetch = when;
    const Program program = lowered(gpt(), s);
    std::string text;
    for (const program::Call& call : program.roles[0].calls) {
      const std::string& name = program.blocks[call.block.index()].name;
      if (name == "layer.gather") text += 'g';
      if (name == "layer.backward") text += 'B';
      if (name == "layer.reduce") text += 'r';
    }
    return text.substr(text.find('B') - (when == Prefetch::kPre ? 2 : 1));
  };
  EXPECT_EQ(order(Prefetch::kPre), "ggBrgBrgBrBr");
  EXPECT_EQ(order(Prefetch::kPost), "gBgrBgrBgrBr");
  EXPECT_EQ(order(Prefetch::kNone), "gBrgBrgBrgBr");
}

// Gradients are added where the framework keeps them: in bf16 the sum is read and written in bf16.
TEST(GradientAccumulation, IsInTheGradientsDtype) {
  Strategy s = strategy(1, 1, 1, 1);
  s.framework.value.fused_gradient_accumulation = false;
  const auto matrix = kHidden * 4 * kHidden;
  EXPECT_EQ(kernels(lowered(gpt(), s), "layer.backward", "accumulate.d.mlp_up.weight"),
            (Traffic{4, 4 * 10 * matrix}));
  s.framework.value.gradient_dtype = DType::kBf16;
  EXPECT_EQ(kernels(lowered(gpt(), s), "layer.backward", "accumulate.d.mlp_up.weight"),
            (Traffic{4, 4 * 6 * matrix}));
}

// Parameters of more elements than the hidden size go one by one, each followed by a wait of the
// host, and once more where activations are computed again; the smaller ones (norms, biases of the
// hidden size) are never gathered.
TEST(DataParallel, GathersParametersOneByOneIfTheFrameworkDoes) {
  Strategy s = strategy(1, 1, 2, 1);
  s.zero_stage = 3;
  s.framework.value.shards = {.forward_prefetch = Prefetch::kNone,
                              .backward_prefetch = Prefetch::kNone};
  const auto gathered = [&] {
    return traffic(lowered(gpt(), s), 0, Purpose::kData)[CollectiveKind::kAllGather];
  };
  const Traffic together = gathered();
  s.framework.value.shards.gather_each = static_cast<std::int64_t>(kHidden);
  const auto blocks = value_of(lower_blocks(gpt(), s));
  std::int64_t count = 0;
  double bytes = 0;
  const auto add = [&](const LoweredBlock& block, double times) {
    for (const std::int64_t size : block.parameter_sizes) {
      if (static_cast<double>(size) <= kHidden) continue;
      count += static_cast<std::int64_t>(times);
      bytes += times * 2 * static_cast<double>(size);
    }
  };
  add(blocks.embedding, 2);
  add(blocks.layers.front(), 2 * kLayers);
  add(blocks.head, 1);
  EXPECT_EQ(gathered(), (Traffic{count, bytes}));
  EXPECT_LT(bytes, together.bytes);
  EXPECT_GT(count, together.operations);
  s.recompute = Recompute::kFull;
  add(blocks.layers.front(), kLayers);
  EXPECT_EQ(gathered(), (Traffic{count, bytes}));
}

// Bytes that the accumulation of one parameter's gradients moves per element: 2 + 2 + 2 in fp16;
// with an fp32 sum 2 + 4 + 4 in one pass; cast first, (2 + 4) + (4 + 4 + 4).
TEST(Gradients, AreAccumulatedAsTheFrameworkDoes) {
  struct Moved {
    double bytes_of_element = 0;
    double passes = 0;
  };
  const auto moved = [](const Strategy& s) {
    const auto blocks = value_of(lower_blocks(gpt(), s));
    Moved sum;
    double elements = 0;
    for (const program::Task& task : only_block(blocks.layers.front().backward).tasks) {
      const bool sums = task.name.starts_with("accumulate.");
      if (!sums && !task.name.starts_with("cast.d.")) continue;
      const auto& pass = std::get<Pass>(std::get<Kernel>(task.body));
      sum.bytes_of_element += bytes_of(Kernel(pass)).in_base();
      ++sum.passes;
      if (sums) elements += static_cast<double>(pass.rows * pass.columns);
    }
    sum.bytes_of_element /= elements;
    return sum;
  };
  Strategy s = strategy(1, 1, 1, 1);
  s.framework.value.fused_gradient_accumulation = false;
  const auto one_pass = moved(s);
  EXPECT_DOUBLE_EQ(one_pass.bytes_of_element, 10);
  s.framework.value.accumulation_casts = true;
  const auto two_passes = moved(s);
  // The temporary is of summands over the replicas, as the gradient: nothing reduces it.
  EXPECT_EQ(traffic(lowered(gpt(), strategy(1, 1, 2, 2)), 0, Purpose::kData), [&] {
    Strategy replicated = strategy(1, 1, 2, 2);
    replicated.framework = s.framework;
    return traffic(lowered(gpt(), replicated), 0, Purpose::kData);
  }());
  EXPECT_DOUBLE_EQ(two_passes.bytes_of_element, 18);
  EXPECT_DOUBLE_EQ(two_passes.passes, 2 * one_pass.passes);
  s.precision = DType::kFp16;
  s.framework.value.fp16_gradient_dtype = DType::kFp16;
  EXPECT_DOUBLE_EQ(moved(s).bytes_of_element, 6);
}

// A tied embedding is one parameter where one rank has both of its uses.
TEST(DataParallel, ReducesATiedEmbeddingOnce) {
  Model tied = gpt();
  tied.tied_embeddings = true;
  Strategy s = strategy(1, 1, 2, 2);
  s.zero_stage = 1;
  s.framework.value.overlap_parameter_gather = true;
  const auto p = static_cast<double>(parameter_count(tied));
  auto sums = traffic(lowered(tied, s), 0, Purpose::kData);
  EXPECT_EQ(sums[CollectiveKind::kReduceScatter].bytes, 4 * p);
  EXPECT_EQ(sums[CollectiveKind::kAllGather].bytes, 2 * p);

  // First and last stage each have one and add up the gradients of 12 x 8 / 2 fp32 elements.
  s = strategy(2, 3, 1, 2);
  s.layers_per_stage = {2, 1, 1};
  const Program pipeline = lowered(tied, s);
  const Traffic sum{1, 4 * 12 * 8 / 2.0};
  EXPECT_EQ(traffic(pipeline, 0, Purpose::kPipeline)[CollectiveKind::kAllReduce], sum);
  EXPECT_EQ(traffic(pipeline, 2, Purpose::kPipeline)[CollectiveKind::kAllReduce], sum);
  EXPECT_EQ(traffic(pipeline, 1, Purpose::kPipeline).count(CollectiveKind::kAllReduce), 0u);
}

// Every micro-batch crosses each boundary once each way; a middle stage has two boundaries.
TEST(Pipeline, SendsABoundaryPerMicroBatch) {
  Strategy s = strategy(2, 3, 1, 5);
  s.layers_per_stage = {2, 0, 2};
  const Traffic once{5, 5 * kBoundary};
  const Traffic twice{10, 10 * kBoundary};
  const Program program = lowered(gpt(), s);
  EXPECT_EQ(traffic(program, 0, Purpose::kPipeline)[CollectiveKind::kSend], once);
  EXPECT_EQ(traffic(program, 0, Purpose::kPipeline)[CollectiveKind::kReceive], once);
  EXPECT_EQ(traffic(program, 1, Purpose::kPipeline)[CollectiveKind::kSend], twice);
  EXPECT_EQ(traffic(program, 2, Purpose::kPipeline)[CollectiveKind::kReceive], once);

  // In pieces, put together again by an all-gather.
  s.framework.value.pipeline_scatter_gather = true;
  const Program pieces = lowered(gpt(), s);
  EXPECT_EQ(traffic(pieces, 1, Purpose::kPipeline)[CollectiveKind::kSend],
            (Traffic{10, 5 * kBoundary}));
  EXPECT_EQ(traffic(pieces, 1, Purpose::kTensor)[CollectiveKind::kAllGather], twice);

  // What lies in pieces anyway is sent so.
  s.sequence_parallel = true;
  s.framework.value.pipeline_scatter_gather = false;
  EXPECT_EQ(traffic(lowered(gpt(), s), 1, Purpose::kPipeline)[CollectiveKind::kSend],
            (Traffic{10, 5 * kBoundary}));
}

// Two chunks: a middle stage sends each micro-batch on twice each way, the last one wraps round.
TEST(Pipeline, InterleavedSendsPerChunk) {
  Strategy s = strategy(1, 2, 1, 4);
  s.schedule = "interleaved";
  s.virtual_stages = 2;
  const Program program = lowered(gpt(), s);
  for (const std::size_t stage : {0u, 1u}) {
    // Of the three boundaries between four pieces, 0-1 and 2-3 leave stage 0 forward.
    const std::int64_t forward = stage == 0 ? 2 : 1;
    const std::int64_t backward = stage == 0 ? 1 : 2;
    const std::int64_t operations = 4 * (forward + backward);
    EXPECT_EQ(traffic(program, stage, Purpose::kPipeline)[CollectiveKind::kSend],
              (Traffic{operations, static_cast<double>(operations) * kBoundary}));
  }
}

// Gradients leave once a layer's last backward pass is done: GPipe's last is micro-batch 0.
TEST(DataParallel, OverlapsTheLastBackwardPassOnly) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    SCOPED_TRACE(schedule);
    Strategy s = strategy(1, 2, 2, 3);
    s.schedule = schedule;
    const Program program = lowered(gpt(), s);
    const program::Role& role = program.roles[0];
    std::int32_t reduced = -1;
    for (const program::Call& call : role.calls) {
      const std::string& name = program.blocks[call.block.index()].name;
      if (name == "layer.reduce") {
        reduced = call.micro_batch;
      } else if (reduced >= 0 && name == "layer.backward") {
        EXPECT_EQ(call.micro_batch, reduced);
      }
    }
    EXPECT_EQ(reduced, std::string(schedule) == "gpipe" ? 0 : 2);
  }
}

// Bytes per parameter: 2 + 4 + 12 with fp32 gradients, 2 + 2 + 12 = 16 without (Rajbhandari et al.
// 2020, K = 12), 4 + 4 + 8 in fp32. ZeRO 1, 2, 3 divide the last, the last two, all.
TEST(StaticMemory, IsSixteenToTwentyBytesPerParameter) {
  const auto p = static_cast<double>(parameter_count(gpt()));
  const auto held = [](const Strategy& s) {
    std::vector<double> bytes;
    const Program program = lowered(gpt(), s);
    for (const program::StaticMemory& memory : program.roles[0].memory)
      bytes.push_back(memory.bytes.in_base());
    return bytes;
  };
  using Held = std::vector<double>;
  Strategy s = strategy(1, 1, 4, 1);
  EXPECT_EQ(held(s), (Held{2 * p, 4 * p, 12 * p}));
  s.zero_stage = 1;
  EXPECT_EQ(held(s), (Held{2 * p, 4 * p, 3 * p}));
  s.zero_stage = 2;
  EXPECT_EQ(held(s), (Held{2 * p, p, 3 * p}));
  s.zero_stage = 3;
  EXPECT_EQ(held(s), (Held{p / 2, p, 3 * p}));
  s.zero_stage = 0;
  s.framework.value.gradient_dtype = DType::kBf16;
  EXPECT_EQ(held(s), (Held{2 * p, 2 * p, 12 * p}));
  s.precision = DType::kFp32;
  s.framework.value.gradient_dtype = DType::kFp32;
  EXPECT_EQ(held(s), (Held{4 * p, 4 * p, 8 * p}));
}

// Korthikanti et al. 2022, table 2: activation bytes per layer, of s b h (34 + 5 a s/h).
class SavedActivations : public testing::Test {
 protected:
  static constexpr double kS = 64, kB = 2, kH = 32, kA = 4, kT = 2;
  Model model_ =
      written_model("name: layer, layers: 1, hidden: 32, heads: 4, vocabulary: 16, sequence: 64");
  Strategy strategy_ = strategy(1, 1, 1, 1);
  SavedActivations() { strategy_.framework.value.attention = AttentionImplementation::kUnfused; }

  double saved() const {
    const auto blocks = value_of(lower_blocks(model_, strategy_));
    return blocks.layers.front().saved.in_base() / (kS * kB * kH);
  }
};

TEST_F(SavedActivations, AreThoseOfTheTable) {
  EXPECT_DOUBLE_EQ(saved(), 34 + 5 * kA * kS / kH);
  strategy_.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(saved(), 34);
  strategy_.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(saved(), 2);

  strategy_.tensor_parallel = 2;
  strategy_.recompute = Recompute::kNone;
  EXPECT_DOUBLE_EQ(saved(), 10 + 24 / kT + 5 * kA * kS / (kH * kT));
  strategy_.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(saved(), 10 + 24 / kT);
  strategy_.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(saved(), 2);

  strategy_.sequence_parallel = true;
  strategy_.recompute = Recompute::kNone;
  EXPECT_DOUBLE_EQ(saved(), 34 / kT + 5 * kA * kS / (kH * kT));
  strategy_.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(saved(), 34 / kT);
  // The table has 2: it keeps the whole input. Here it lies in pieces, as it does in Megatron-LM
  // with sequence parallelism.
  strategy_.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(saved(), 2 / kT);
}

// Fused attention keeps four bytes per row and head instead of the scores.
TEST_F(SavedActivations, OfFusedAttention) {
  strategy_.framework.value.attention = AttentionImplementation::kFused;
  EXPECT_DOUBLE_EQ(saved(), 34 + 4 * kA / kH);
  // Those are computed again; the result stays, for the gradient of the next product's weight.
  strategy_.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(saved(), 34);
}

TEST(Lower, SaysWhatAScheduleCannotDo) {
  Strategy s = strategy(1, 2, 1, 3);
  s.schedule = "interleaved";
  s.virtual_stages = 2;
  const auto program = lower(gpt(), s, {});
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message.find("must be a multiple of the stages (2)"), std::string::npos)
      << program.error().message;
}

TEST(Lower, CarriesTotalsAndLaunchTime) {
  const Program program = lowered(gpt(), strategy(1, 2, 2, 3));
  EXPECT_EQ(program.totals.samples, 12);
  EXPECT_EQ(program.totals.tokens, 12 * kSequence);
  EXPECT_EQ(program.totals.model_flops, model_flops(gpt(), 12));
  EXPECT_EQ(program.launch_time, 5_us);
  EXPECT_EQ(program.roles.size(), 2u);
}

// What the framework does for a kernel comes on top of the host's own launch.
TEST(Lower, AddsTheFrameworksHostTimeToTheLaunch) {
  Strategy eager = strategy(1, 2, 2, 3);
  eager.framework.value.host_time = 30_us;
  EXPECT_EQ(lowered(gpt(), eager).launch_time, 35_us);
}

}  // namespace foreshard::lower::lower_test
