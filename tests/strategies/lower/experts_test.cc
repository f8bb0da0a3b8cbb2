// Layers with experts: what moves, what is multiplied and what lies where, by hand.
#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/parallelism/parameters.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::experts_test {

using program::CollectiveKind;
using program::Program;
using program::Purpose;
using testing::Pair;

constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kHidden = 8;
constexpr std::int64_t kSequence = 16;
constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kChosen = 2;
constexpr std::int64_t kWidth = 12;
constexpr std::int64_t kBatch = 2;

Model model() {
  return written_model(
      "name: tiny mixture, layers: " + std::to_string(kLayers) +
      ", hidden: " + std::to_string(kHidden) +
      ", heads: 4, vocabulary: 12, sequence: " + std::to_string(kSequence) +
      ", activation: swiglu, bias: false, tied_embeddings: false, dropout: false, experts: " +
      std::to_string(kExperts) + ", experts_per_token: " + std::to_string(kChosen) +
      ", expert_ffn: " + std::to_string(kWidth));
}

// One micro-batch of two sequences.
Strategy strategy(std::int64_t tp, std::int64_t dp, std::int64_t ep, std::int64_t etp = 0) {
  Strategy s = degrees(tp, 1, dp, kBatch);
  s.expert_parallel = ep;
  s.expert_tensor_parallel = etp;
  s.sequence_parallel = tp > 1;
  return s;
}

Program lowered(const Strategy& of, const Model& that = model()) {
  EXPECT_THAT(faults_in(of, that, of.devices()), IsEmpty());
  return value_of(lower(that, of, {.launch_time = 5_us}));
}

using Key = std::pair<CollectiveKind, std::string>;  // and its axes

std::map<Key, Traffic> traffic(const Program& program, Purpose purpose) {
  std::map<Key, Traffic> sums;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr || what->purpose != purpose || what->tag == "gradient_norm") return;
    Traffic& sum = sums[{what->kind, what->tag}];
    ++sum.operations;
    sum.bytes += what->bytes.in_base();
  });
  return sums;
}

std::vector<Gemm> products(const Program& program, const std::string& block,
                           const std::string& task) {
  std::vector<Gemm> found;
  for (const program::Block& one : program.blocks)
    for (const program::Task& its : one.tasks)
      if (one.name == block && its.name == task)
        found.push_back(std::get<Gemm>(std::get<Kernel>(its.body)));
  return found;
}

// Kernels whose name begins so, in one block.
std::int64_t kernels_of(const Program& program, const std::string& block, const std::string& name) {
  std::int64_t count = 0;
  for (const program::Block& one : program.blocks)
    for (const program::Task& task : one.tasks)
      if (one.name == block && std::holds_alternative<Kernel>(task.body) &&
          (task.name == name || task.name.starts_with(name + ".")))
        ++count;
  return count;
}

// As PyTorch's profiler counts them on a GPU (configs/measurements/h200/host.csv): 9 and 3 kernels
// to the order of experts, 11 and 12 back, of which one and two are for the gradient of weights.
TEST(Experts, EagerPermutationsAreManyKernels) {
  Strategy of = strategy(1, 4, 4);
  EXPECT_EQ(kernels_of(lowered(of), "expert_layer.forward", "dispatch"), 1);
  of.framework.value.pointwise.permutation = OtherKernels::kEager;
  const Program program = lowered(of);
  EXPECT_EQ(kernels_of(program, "expert_layer.forward", "dispatch"), 9);
  EXPECT_EQ(kernels_of(program, "expert_layer.forward", "combine"), 11);
  EXPECT_EQ(kernels_of(program, "expert_layer.backward", "d.dispatch"), 3);
  EXPECT_EQ(kernels_of(program, "expert_layer.backward", "d.combine"), 10);
}

// Megatron's _apply_bias: two kernels an expert and two for all; back seven and two. Of a fused
// bias, the product takes the one, and the gradient is a sum of rows.
TEST(Experts, EagerBiasesAreKernelsOfEachExpert) {
  Model biased = model();
  biased.mlp_bias = true;
  Strategy of = strategy(1, 4, 4);
  of.framework.value.weights_at_activation = true;
  EXPECT_EQ(kernels_of(lowered(of, biased), "expert_layer.forward", "experts_down_bias"), 0);
  EXPECT_EQ(kernels_of(lowered(of, biased), "expert_layer.backward", "d.experts_down.bias"), 1);
  of.framework.value.pointwise.expert_bias = OtherKernels::kEager;
  const Program program = lowered(of, biased);
  const std::int64_t experts = kExperts / 4;
  EXPECT_EQ(kernels_of(program, "expert_layer.forward", "experts_down_bias"), 2 * experts + 2);
  EXPECT_EQ(kernels_of(program, "expert_layer.backward", "d.experts_down_bias"), 7 * experts + 2);
  EXPECT_EQ(kernels_of(program, "expert_layer.backward", "d.experts_down.bias"), 0);
  // Biases that nobody trains have no gradients.
  biased.adapters = Adapters{.rank = 4};
  EXPECT_EQ(kernels_of(lowered(of, biased), "expert_layer.backward", "d.experts_down_bias"),
            3 * experts + 2);
  biased.adapters.reset();
  // Where tensor ranks share experts, what they give are summands: the product keeps the bias.
  Strategy shared = strategy(2, 2, 2, 2);
  shared.framework = of.framework;
  EXPECT_EQ(kernels_of(lowered(shared, biased), "expert_layer.forward", "experts_down_bias"), 0);
}

// fused_bias_geglu.py: two clamps, put side by side, before the activation; back alike. They keep
// what they read, beside what they give: two tensors as wide as what the products give.
TEST(Experts, ClampsAreKernelsOfTheirOwn) {
  const auto of = [](OtherKernels clamp) {
    Model clamped = model();
    clamped.clamped_activation = true;
    Strategy one = strategy(1, 4, 4);
    one.framework.value.pointwise.clamp = clamp;
    return lowered(one, clamped);
  };
  const Program fused = of(OtherKernels::kFused);
  const Program eager = of(OtherKernels::kEager);
  EXPECT_EQ(kernels_of(fused, "expert_layer.forward", "experts_activation_clamp"), 0);
  EXPECT_EQ(kernels_of(eager, "expert_layer.forward", "experts_activation_clamp"), 3);
  EXPECT_EQ(kernels_of(eager, "expert_layer.backward", "d.experts_activation_clamp"), 3);
  const auto kept = [](const Program& program) {
    Bytes bytes;
    for (const program::Block& block : program.blocks)
      for (const program::Task& task : block.tasks)
        if (const auto* made = std::get_if<program::Allocate>(&task.body))
          if (block.name == "expert_layer.forward" &&
              made->kind == program::MemoryKind::kActivations)
            bytes += made->bytes;
    return bytes;
  };
  const double rows = static_cast<double>(kBatch * kSequence * kChosen);
  EXPECT_EQ(kept(eager) - kept(fused), rows * 2 * kWidth * 2_B);
}

// The router's graph ends with the choice: what brings tokens to experts is launched by the host.
TEST(Experts, ACudaGraphLaunchesTheRouter) {
  Strategy of = strategy(1, 4, 4);
  of.cuda_graphs = {Capture::kRouter};
  const Program program = lowered(of);
  std::map<std::string, double> launches;
  for (const program::Block& block : program.blocks)
    if (block.name == "expert_layer.forward")
      for (const program::Task& task : block.tasks) launches[task.name] = task.launches;
  EXPECT_EQ(launches.at("mlp_norm"), 1);
  EXPECT_EQ(launches.at("router"), 0);
  EXPECT_EQ(launches.at("top_k"), 0);
  EXPECT_EQ(launches.at("dispatch"), 1);
  EXPECT_EQ(launches.at("experts_up"), 1);
}

// Each token of a rank goes to the ranks of its experts and comes back, forward and backward, in
// bf16. The ring or pairwise algorithm moves (ep - 1) / ep of that over links.
TEST(ExpertParallel, ExchangesTokensFourTimesALayer) {
  const double sent = 2.0 * kBatch * kSequence * kChosen * kHidden;
  EXPECT_THAT(traffic(lowered(strategy(1, 4, 4)), Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "expert"),
                               Traffic{4 * kLayers, 4 * kLayers * sent})));
  // Slots beyond an even share travel, too.
  Strategy roomy = strategy(1, 4, 4);
  roomy.capacity_factor = 1.5;
  EXPECT_THAT(traffic(lowered(roomy), Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "expert"),
                               Traffic{4 * kLayers, 4 * kLayers * 1.5 * sent})));
  EXPECT_THAT(traffic(lowered(strategy(1, 4, 1)), Purpose::kExpert), IsEmpty());
}

// In fp8 gradients travel in bf16 like all else; with a dispatch that quantizes, tokens have one
// byte an element on the way to their experts, and nothing else changes.
TEST(ExpertParallel, MaySendTokensQuantized) {
  Strategy fp8 = strategy(1, 4, 4);
  fp8.quantization = Quantization::kFp8Block;
  const double sent = 2.0 * kBatch * kSequence * kChosen * kHidden;
  EXPECT_THAT(traffic(lowered(fp8), Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "expert"),
                               Traffic{4 * kLayers, 4 * kLayers * sent})));
  fp8.framework.value.quantized_dispatch = true;
  EXPECT_THAT(traffic(lowered(fp8), Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "expert"),
                               Traffic{4 * kLayers, 3.5 * kLayers * sent})));
}

// What a layer keeps of the experts' first product: two bytes of both its halves for each slot, and
// half of that in fp8.
TEST(ExpertParallel, MayKeepWhatActivationsReadQuantized) {
  Strategy fp8 = strategy(1, 4, 4);
  fp8.quantization = Quantization::kFp8Block;
  fp8.recompute = Recompute::kSelective;
  fp8.recompute_parts = {LayerPart::kExpertActivation};
  const auto kept = [](const Strategy& of) {
    double bytes = 0;
    for (const program::Block& block : lowered(of).blocks) {
      if (block.name != "expert_layer.forward") continue;
      for (const program::Task& task : block.tasks) {
        const auto* buffer = std::get_if<program::Allocate>(&task.body);
        if (buffer != nullptr && buffer->kind == program::MemoryKind::kActivations)
          bytes += buffer->bytes.in_base();
      }
    }
    return bytes;
  };
  Strategy quantized = fp8;
  quantized.framework.value.quantized_expert_inputs = true;
  const double slots = 1.0 * kBatch * kSequence * kChosen;
  EXPECT_EQ(kept(fp8) - kept(quantized), slots * 2 * kWidth);
}

// Forward and an input's gradient in blocks, a weight's gradient in vectors; of other recipes,
// none.
TEST(ExpertParallel, NamesTheScalesOfItsProducts) {
  Strategy fp8 = strategy(1, 4, 4);
  const auto scales = [&](const std::string& block, const std::string& task) {
    return products(lowered(fp8), block, task).at(0).scales;
  };
  fp8.quantization = Quantization::kFp8Block;
  EXPECT_EQ(scales("expert_layer.forward", "experts_up"), Scales::kBlocks);
  EXPECT_EQ(scales("expert_layer.forward", "attention_out"), Scales::kBlocks);
  EXPECT_EQ(scales("expert_layer.backward", "d.experts_up.data"), Scales::kBlocks);
  EXPECT_EQ(scales("expert_layer.backward", "d.experts_up.weight"), Scales::kVectors);
  fp8.quantization = Quantization::kFp8Current;
  EXPECT_EQ(scales("expert_layer.backward", "d.experts_up.weight"), Scales::kTensor);
}

// Two of eight experts lie on 4 ranks of 2 each: on 4 (1 - C(6,2) / C(8,2)) = 13/7 of them, and a
// rank is sent one copy; chosen from one group of 4, on 2 (1 - C(2,2) / C(4,2)) = 5/3.
TEST(ExpertParallel, SendsDeepEpOneCopyToEachRank) {
  Strategy once = strategy(1, 4, 4);
  once.token_dispatcher = TokenDispatcher::kDeepEp;
  const double token = 2.0 * kBatch * kSequence * kHidden;
  const auto sent = [&](const Model& of) {
    const auto found = traffic(lowered(once, of), Purpose::kExpert);
    EXPECT_EQ(found.size(), 1u);
    EXPECT_EQ(found.begin()->first, Key(CollectiveKind::kTokenExchange, "expert"));
    EXPECT_EQ(found.begin()->second.operations, 4 * kLayers);
    return found.begin()->second.bytes;
  };
  EXPECT_NEAR(sent(model()), 4 * kLayers * token * 13 / 7, 1e-6);
  Model grouped = model();
  grouped.expert_groups = 2;
  EXPECT_NEAR(sent(grouped), 4 * kLayers * token * 5 / 3, 1e-6);
}

// Experts on 2 tensor-parallel ranks of each of 2 replicas: all four exchange tokens at once, by
// whichever operation. Each has half of the tokens, sent to 2 experts, or to 13/7 ranks.
TEST(ExpertParallel, ExchangesAmongAllRanksOfItsExpertsAtOnce) {
  Strategy folded = strategy(2, 2, 4, 1);
  const double token = 2.0 * kBatch * kSequence / 2 * kHidden;
  EXPECT_THAT(traffic(lowered(folded), Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "tensor_experts+expert"),
                               Traffic{4 * kLayers, 4 * kLayers * token * kChosen})));
  folded.token_dispatcher = TokenDispatcher::kDeepEp;
  const auto found = traffic(lowered(folded), Purpose::kExpert);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->first, Key(CollectiveKind::kTokenExchange, "tensor_experts+expert"));
  EXPECT_EQ(found.begin()->second.operations, 4 * kLayers);
  EXPECT_NEAR(found.begin()->second.bytes, 4 * kLayers * token * 13 / 7, 1e-6);
}

// All-to-alls bring slots by sender: ranks of two experts put them in order, there and back, and
// their gradients; ranks of one expert, and DeepEP, need not.
TEST(ExpertParallel, PutsWhatArrivesInOrderOfExperts) {
  const auto passes = [](const Strategy& of, PassKind kind) {
    std::vector<std::int64_t> elements;
    for (const auto& block : lowered(of).blocks)
      for (const auto& task : block.tasks)
        if (const auto* kernel = std::get_if<Kernel>(&task.body))
          if (const auto* pass = std::get_if<Pass>(kernel); pass != nullptr && pass->kind == kind)
            elements.push_back(pass->rows * pass->columns);
    return elements;
  };
  const std::int64_t slots = kBatch * kSequence * kChosen * kHidden;
  EXPECT_THAT(passes(strategy(1, 4, 4), PassKind::kTranspose),
              ElementsAre(slots, slots, slots, slots));
  EXPECT_THAT(passes(strategy(1, 8, 8), PassKind::kTranspose), IsEmpty());
  Strategy deepep = strategy(1, 4, 4);
  deepep.token_dispatcher = TokenDispatcher::kDeepEp;
  EXPECT_THAT(passes(deepep, PassKind::kTranspose), IsEmpty());
}

// The host waits once in a forward pass, behind the choice and before tokens move.
TEST(ExpertParallel, WaitsForCountsOnTheHost) {
  Strategy waiting = strategy(1, 4, 4);
  waiting.framework.value.counts_tokens_on_host = true;
  const Program program = lowered(waiting);
  for (const auto& block : program.blocks) {
    std::vector<std::string> before;
    for (std::size_t i = 0; i < block.tasks.size(); ++i) {
      if (!std::holds_alternative<program::Sync>(block.tasks[i].body)) continue;
      if (block.tasks[i].name != "token_counts") continue;
      before.push_back(block.tasks[i - 1].name + " " + block.tasks[i + 1].name);
      EXPECT_EQ(block.tasks[i].after, std::vector{static_cast<std::int32_t>(i) - 1});
    }
    if (block.name == "expert_layer.forward")
      EXPECT_THAT(before, ElementsAre("top_k dispatch"));
    else
      EXPECT_THAT(before, IsEmpty()) << block.name;
  }
}

// In an interleaved pipeline whose passes wait for transfers, a host that waits for counts has
// posted the receives that the stages around it wait for.
TEST(ExpertParallel, StagesThatWaitForCountsDoNotWaitForEachOther) {
  for (const std::int64_t stages : {2, 4}) {
    for (const std::int64_t rounds : {1, 3}) {
      Strategy ring = degrees(1, stages, 2, 2 * stages * rounds);
      ring.micro_batch = 1;
      ring.expert_parallel = 2;
      ring.schedule = "interleaved";
      ring.virtual_stages = 4 / stages + 1;
      ring.framework.value.counts_tokens_on_host = true;
      ring.framework.value.pipeline_transfers = PipelineTransfers::kBlocking;
      Model deep = model();
      deep.layers = stages * ring.virtual_stages;
      for (const bool hosts_wait : {false, true}) {
        ring.framework.value.pipeline_host_sync = hosts_wait;
        EXPECT_EQ(message_of(program::verify(lowered(ring, deep))), "accepted")
            << stages << " stages, " << rounds << " rounds, hosts wait: " << hosts_wait;
      }
    }
  }
}

// A rank's two experts: each of the three products of both matrices is two launches, which keep the
// host for 2 x 9 us; without the time, one kernel has both.
TEST(ExpertParallel, LaunchesTheProductOfEachExpert) {
  Strategy apart = strategy(1, 4, 4);
  const auto hosting = [](const Strategy& of, const std::string& product) {
    for (const auto& block : lowered(of).blocks) {
      for (std::size_t i = 0; i + 1 < block.tasks.size(); ++i) {
        if (block.tasks[i].name != product) continue;
        const auto& gemm = std::get<Gemm>(std::get<Kernel>(block.tasks[i].body));
        const auto* work = std::get_if<program::HostWork>(&block.tasks[i + 1].body);
        EXPECT_EQ(gemm.apart, work != nullptr) << product;
        EXPECT_EQ(gemm.batch, 2) << product;
        return work == nullptr ? Seconds{} : work->time;
      }
    }
    ADD_FAILURE() << product;
    return Seconds{};
  };
  for (const std::string product :
       {"experts_up", "experts_down", "d.experts_up.data", "d.experts_up.weight",
        "d.experts_down.data", "d.experts_down.weight"}) {
    EXPECT_EQ(hosting(apart, product), 0_us) << product;
    apart.framework.value.expert_product_time = 9_us;
    EXPECT_EQ(hosting(apart, product), 18_us) << product;
    apart.framework.value.expert_product_time.reset();
  }
}

// Four ranks of two experts each, of which one rank's are chosen by half of all: twice its even
// share, in rows of products and in bytes.
TEST(ExpertParallel, WaitsForTheBusiestRank) {
  Strategy uneven = strategy(1, 4, 4);
  uneven.expert_load.layers = {{0.1, 0.1, 0.25, 0.25, 0.1, 0.1, 0.05, 0.05}};
  const auto flops = [](const Strategy& of) {
    return flops_of(products(lowered(of), "expert_layer.forward", "experts_up").at(0)).in_base();
  };
  EXPECT_DOUBLE_EQ(flops(uneven), 2 * flops(strategy(1, 4, 4)));
  const double sent = 2.0 * kBatch * kSequence * kChosen * kHidden;
  EXPECT_THAT(traffic(lowered(uneven), Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "expert"),
                               Traffic{4 * kLayers, 4 * kLayers * 2 * sent})));
}

// Megatron-LM with sequence parallelism: a tensor rank routes its half of the tokens; where experts
// are split, the ranks of an expert gather theirs behind the exchange and scatter sums before the
// one back. The width of an expert is halved, its rows are those of both.
TEST(ExpertParallel, SplitsExpertsAsAllElse) {
  const Program program = lowered(strategy(2, 4, 4));
  const double sent = 1.0 * kBatch * kSequence * kChosen * kHidden;
  EXPECT_THAT(traffic(program, Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "expert"),
                               Traffic{4 * kLayers, 4 * kLayers * sent})));
  const std::int64_t rows = 4 * kBatch * kSequence * kChosen / kExperts;  // of one expert
  EXPECT_THAT(products(program, "expert_layer.forward", "experts_up"),
              ElementsAre(Gemm{.batch = kExperts / 4,
                               .m = rows,
                               .n = 2 * kWidth / 2,
                               .k = kHidden,
                               .dtype = DType::kBf16}));
}

// Whole experts, one on each of tensor x expert ranks: both exchange tokens, none gathers.
TEST(ExpertParallel, SharesWholeExpertsAmongTensorRanks) {
  const Program program = lowered(strategy(2, 4, 8, 1));
  const double sent = 1.0 * kBatch * kSequence * kChosen * kHidden;
  EXPECT_THAT(traffic(program, Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "tensor_experts+expert"),
                               Traffic{4 * kLayers, 4 * kLayers * sent})));
  const std::int64_t rows = 4 * kBatch * kSequence * kChosen / kExperts;
  EXPECT_THAT(products(program, "expert_layer.forward", "experts_up"),
              ElementsAre(Gemm{
                  .batch = 1, .m = rows, .n = 2 * kWidth, .k = kHidden, .dtype = DType::kBf16}));
}

// Experts over four context-parallel ranks, split as all else is: each of two tensor-parallel ranks
// sends its own half of a context rank's tokens, and what they gather is the other's.
TEST(ExpertParallel, SendsTheTokensOfEachTensorRankOnce) {
  Strategy s = strategy(2, 1, 4);
  s.context_parallel = 4;
  Model longer = model();  // each expert has a token of each sample
  longer.sequence = 4 * kSequence;
  const Program program = lowered(s, longer);
  const double sent = 2.0 * kBatch * kSequence / 2 * kChosen * kHidden;
  EXPECT_THAT(traffic(program, Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "context_experts"),
                               Traffic{4 * kLayers, 4 * kLayers * sent})));
  for (const auto& [key, sum] : traffic(program, Purpose::kContext))
    EXPECT_NE(key.first, CollectiveKind::kAllToAll);
}

// Whole experts over both tensor-parallel ranks and half of the context-parallel ones, twice: one
// exchange among four, and copies on the other two context-parallel ranks of each.
TEST(ExpertParallel, ReachesOverAPartOfTheContext) {
  Strategy s = strategy(2, 1, 4, 1);
  s.context_parallel = 4;
  Model longer = model();  // each expert has a token of each sample
  longer.sequence = 4 * kSequence;
  const Program program = lowered(s, longer);
  const double sent = 2.0 * kBatch * kSequence / 2 * kChosen * kHidden;
  EXPECT_THAT(traffic(program, Purpose::kExpert),
              ElementsAre(Pair(Key(CollectiveKind::kAllToAll, "tensor_experts+context_experts"),
                               Traffic{4 * kLayers, 4 * kLayers * sent})));
  const double own = 4.0 * kLayers * kExperts / 4 * 3 * kHidden * kWidth;
  const auto sums = traffic(program, Purpose::kData);
  EXPECT_EQ(sums.at({CollectiveKind::kAllReduce, "context"}).bytes, own);
  EXPECT_TRUE(sums.contains({CollectiveKind::kAllReduce, "context_experts+context"}));
}

// Where a group ends within an axis, it divides the axis; and it never straddles one.
TEST(ExpertParallel, NamesDivisionsThatItCannotMake) {
  const auto only = [](const Strategy& of) {
    const auto faults = faults_in(of, model(), of.devices());
    EXPECT_EQ(faults.size(), 1u);
    return faults.empty() ? "" : faults[0].key + ": " + faults[0].message + " | " + faults[0].help;
  };
  Strategy s = strategy(1, 2, 4);
  EXPECT_EQ(only(s),
            "expert_parallel: tensor 1 x context 1 x data 2 = 2 ranks do not divide into groups of "
            "4 that hold all experts | set data_parallel so that the ranks are a multiple of 4, or "
            "expert_parallel lower");
  s = strategy(4, 1, 1, 1);
  s.sequence_parallel = false;
  EXPECT_EQ(only(s),
            "expert_tensor_parallel: tensor-parallel ranks that share no expert route tokens of "
            "their own, but without sequence_parallel all have the same | set sequence_parallel: "
            "true");
  EXPECT_EQ(only(strategy(4, 3, 1, 6)),
            "expert_tensor_parallel: groups of 6 ranks that share an expert straddle groups of 4 "
            "tensor- and context-parallel ranks, which is not modelled | let one of 6 and 4 divide "
            "the other");
  Model of_six = model();
  of_six.experts = 6;
  s = strategy(4, 3, 6, 1);
  const auto faults = faults_in(s, of_six, s.devices());
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].message,
            "groups of 6 ranks that hold all experts straddle groups of 4 tensor- and "
            "context-parallel ranks, which is not modelled");
}

// The norm of gradients that one data-parallel rank shares with context-parallel ones.
TEST(ExpertParallel, BooksTheNormAsDataParallel) {
  Strategy s = strategy(2, 1, 4);
  s.context_parallel = 4;
  s.zero_stage = 1;
  for (const program::Block& block : lowered(s).blocks)
    for (const program::Task& task : block.tasks)
      if (const auto* what = std::get_if<program::Communication>(&task.body);
          what != nullptr && what->tag == "gradient_norm") {
        EXPECT_EQ(what->purpose, Purpose::kData);
      }
}

// ZeRO 1 over four data-parallel ranks of which pairs hold other experts: gradients and parameters
// of experts move within the two ranks that hold the same, all else among all four.
TEST(ExpertParallel, ReducesExpertsAmongTheirCopiesAlone) {
  Strategy s = strategy(1, 4, 2);
  s.zero_stage = 1;
  const Program program = lowered(s);
  const auto total = static_cast<double>(parameter_count(model()));
  const double routed = double{kLayers} * kExperts * 3 * kHidden * kWidth;
  const double own = routed / 2;
  const auto sums = traffic(program, Purpose::kData);
  const auto bytes = [&](CollectiveKind kind, const std::string& axes) {
    const auto found = sums.find({kind, axes});
    return found == sums.end() ? 0 : found->second.bytes;
  };
  EXPECT_EQ(bytes(CollectiveKind::kAllGather, "data"), 2 * own);
  EXPECT_EQ(bytes(CollectiveKind::kAllGather, "expert+data"), 2 * (total - routed));
  EXPECT_EQ(bytes(CollectiveKind::kReduceScatter, "data"), 4 * own);
  EXPECT_EQ(bytes(CollectiveKind::kReduceScatter, "expert+data"), 4 * (total - routed));
  // fp32 copy and two moments of a half of the own experts, and of a quarter of all else.
  double optimizer = 0;
  for (const program::StaticMemory& memory : program.roles[0].memory)
    optimizer += memory.kind == program::MemoryKind::kOptimizer ? memory.bytes.in_base() : 0;
  EXPECT_EQ(optimizer, 12 * (own / 2 + (total - routed) / 4));
}

// ZeRO 3 by a framework that cuts no experts: the two ranks that hold the same ones keep them
// whole, with their gradients and the optimizer's states, and add gradients up in place.
TEST(ExpertParallel, KeepsExpertsWholeWhereTheFrameworkDoes) {
  Strategy s = strategy(1, 4, 2);
  s.zero_stage = 3;
  s.framework.value.shards.experts = false;
  const Program program = lowered(s);
  const auto total = static_cast<double>(parameter_count(model()));
  const double routed = double{kLayers} * kExperts * 3 * kHidden * kWidth;
  const double own = routed / 2;
  const auto sums = traffic(program, Purpose::kData);
  std::map<CollectiveKind, double> of_experts;
  for (const auto& [key, sum] : sums)
    if (key.second == "data") of_experts[key.first] += sum.bytes;
  EXPECT_EQ(of_experts, (std::map<CollectiveKind, double>{{CollectiveKind::kAllReduce, 4 * own}}));
  EXPECT_EQ(sums.at({CollectiveKind::kReduceScatter, "expert+data"}).bytes, 4 * (total - routed));
  std::map<program::MemoryKind, double> kept;
  for (const program::StaticMemory& memory : program.roles[0].memory)
    kept[memory.kind] += memory.bytes.in_base();
  const double shard = (total - routed) / 4;
  EXPECT_EQ(kept[program::MemoryKind::kParameters], 2 * (own + shard));
  EXPECT_EQ(kept[program::MemoryKind::kGradients], 4 * (own + shard));
  EXPECT_EQ(kept[program::MemoryKind::kOptimizer], 12 * (own + shard));
  for (const program::Block& block : program.blocks)
    for (const program::Task& task : block.tasks) {
      const auto* taken = std::get_if<program::Allocate>(&task.body);
      if (taken == nullptr) continue;
      EXPECT_EQ(taken->buffer.find("whole_experts"), std::string::npos) << taken->buffer;
    }
  // Of experts that all ranks share, ZeRO cuts all else.
  s.expert_parallel = 1;
  EXPECT_FALSE(traffic(lowered(s), Purpose::kData).contains({CollectiveKind::kAllReduce, "data"}));
}

// The layout that a checkpoint is resharded by.
TEST(ExpertParallel, CutsExpertsAlongTheirCopiesOnly) {
  Strategy s = strategy(1, 4, 2);
  s.zero_stage = 3;
  for (const PlacedTensor& tensor : parameters_of(model(), s)) {
    if (tensor.name != "layers.0.experts_up.weight") continue;
    EXPECT_EQ(tensor.shape, (Shape{kExperts, kHidden, 2, kWidth}));
    EXPECT_EQ(ways(tensor.layout.attribute.dims[0], tensor.layout.mesh.axes), 4);
  }
  s.framework.value.shards.experts = false;
  for (const PlacedTensor& tensor : parameters_of(model(), s)) {
    if (tensor.name != "layers.0.experts_up.weight") continue;
    EXPECT_EQ(ways(tensor.layout.attribute.dims[0], tensor.layout.mesh.axes), 2);
  }
}

// Every second layer has experts.
TEST(ExpertLayers, StandBesideDenseOnes) {
  Model mixed = model();
  mixed.expert_interval = 2;
  mixed.ffn = 20;
  const Program program = lowered(strategy(1, 2, 2), mixed);
  std::map<std::string, std::int64_t> passes;
  for (const program::Call& call : program.roles[0].calls)
    passes[program.blocks[call.block.index()].name] += call.repeat;
  EXPECT_EQ(passes["layer.forward"], kLayers / 2);
  EXPECT_EQ(passes["expert_layer.forward"], kLayers / 2);
  EXPECT_EQ(passes["expert_layer.backward"], kLayers / 2);
}

}  // namespace foreshard::lower::experts_test
