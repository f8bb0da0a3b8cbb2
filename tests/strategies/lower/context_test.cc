// Context parallelism: what moves, what is attended to and what lies where, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "strategies/program/lower/lower.h"

namespace foreshard::lower {
namespace {

using program::CollectiveKind;
using program::Program;
using program::Purpose;
using testing::ElementsAre;
using testing::Pair;

constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kKeyHeads = 4;
constexpr std::int64_t kWidth = 2;  // of a head
constexpr std::int64_t kHidden = kHeads * kWidth;
constexpr std::int64_t kSequence = 32;
constexpr std::int64_t kBatch = 2;

Model model() {
  return {.name = "tiny",
          .layers = kLayers,
          .hidden = kHidden,
          .heads = kHeads,
          .kv_heads = kKeyHeads,
          .vocabulary = 12,
          .sequence = kSequence,
          .bias = false,
          .tied_embeddings = false,
          .dropout = false,
          .source = ""};
}

// One micro-batch of two sequences.
Strategy strategy(std::int64_t tp, std::int64_t cp, ContextExchange how) {
  Strategy s;
  s.tensor_parallel = tp;
  s.context_parallel = cp;
  s.context_exchange = how;
  s.sequence_parallel = tp > 1;
  s.micro_batch = kBatch;
  s.global_batch = kBatch;
  s.framework.value.vocabulary_multiple = 1;
  return s;
}

Program lowered(const Strategy& of) {
  EXPECT_THAT(faults_in(of, model(), of.devices()), testing::IsEmpty());
  auto program = lower(model(), of, {.launch_time = 5_us});
  EXPECT_TRUE(program) << program.error().message;
  return *std::move(program);
}

// Bytes by kind of collective, of one rank's layers.
std::map<CollectiveKind, double> bytes_of_layers(const Program& program) {
  std::map<CollectiveKind, double> sums;
  for (const program::Call& call : program.roles[0].calls) {
    for (const program::Task& task : program.blocks[call.block.index()].tasks) {
      const auto* what = std::get_if<program::Communication>(&task.body);
      if (what != nullptr && what->purpose == Purpose::kContext)
        sums[what->kind] += call.repeat * what->bytes.in_base();
    }
  }
  return sums;
}

const program::Block& block(const Program& program, const std::string& name) {
  const auto it = std::ranges::find(program.blocks, name, &program::Block::name);
  EXPECT_NE(it, program.blocks.end()) << name;
  return *it;
}

std::vector<Attention> attention(const Program& program, const std::string& name) {
  std::vector<Attention> found;
  for (const program::Task& task : block(program, name).tasks)
    if (const auto* kernel = std::get_if<Kernel>(&task.body))
      if (const auto* one = std::get_if<Attention>(kernel)) found.push_back(*one);
  return found;
}

// Keys and values of a sequence in bf16, of all key heads.
constexpr double kKeysAndValues = 2.0 * kBatch * kSequence * 2 * kKeyHeads * kWidth;

// Gathered forward and again backward; gradients are summed to the ranks of their tokens. With two
// tensor-parallel ranks each has half of the heads.
TEST(ContextParallel, GathersKeysAndValues) {
  for (const ContextExchange how :
       {ContextExchange::kAllGather, ContextExchange::kOverlappedAllGather}) {
    for (const std::int64_t tp : {1, 2}) {
      const double one = kLayers * kKeysAndValues / static_cast<double>(tp);
      EXPECT_THAT(bytes_of_layers(lowered(strategy(tp, 4, how))),
                  ElementsAre(Pair(CollectiveKind::kAllGather, 2 * one),
                              Pair(CollectiveKind::kReduceScatter, one)));
    }
  }
}

// Queries, keys and values go to the ranks of their heads, results come back; backward likewise.
TEST(ContextParallel, ExchangesTokensForHeads) {
  const double token = 2.0 * kWidth * (2 * kHeads + 2 * kKeyHeads);  // there and back, in bf16
  const double tokens = kBatch * kSequence / 4;                      // of a rank
  EXPECT_THAT(bytes_of_layers(lowered(strategy(1, 4, ContextExchange::kAllToAll))),
              ElementsAre(Pair(CollectiveKind::kAllToAll, 2 * kLayers * tokens * token)));
}

// A rank's queries see half of all keys, in one kernel or rank by rank.
TEST(ContextParallel, BalancesTheHalvesOfACausalMask) {
  const double whole = flops_of(Attention{.batch = kBatch,
                                          .query_heads = kHeads,
                                          .kv_heads = kKeyHeads,
                                          .query_length = kSequence,
                                          .key_length = kSequence,
                                          .head_dim = kWidth})
                           .in_base();
  for (const ContextExchange how :
       {ContextExchange::kAllGather, ContextExchange::kOverlappedAllGather,
        ContextExchange::kAllToAll}) {
    const auto program = lowered(strategy(1, 4, how));
    for (const auto& [pass, factor] :
         {std::pair("layer.forward", 1.0), std::pair("layer.backward", 2.5)}) {
      double sum = 0;
      for (const Attention& kernel : attention(program, pass)) sum += flops_of(kernel).in_base();
      EXPECT_DOUBLE_EQ(sum, factor * whole / 4);
    }
  }
  const auto parts =
      attention(lowered(strategy(1, 4, ContextExchange::kOverlappedAllGather)), "layer.forward");
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_TRUE(parts[0].causal);
  EXPECT_EQ(parts[0].key_length, kSequence / 4);
  EXPECT_FALSE(parts[1].causal);
  EXPECT_EQ(parts[1].query_length, kSequence / 4);
  EXPECT_EQ(parts[1].key_length, kSequence / 8);
}

// The first kernel, of the rank's own tokens, runs beside the gather; the second one waits for it.
TEST(ContextParallel, HidesTheGatherBehindOwnTokens) {
  const auto program = lowered(strategy(1, 2, ContextExchange::kOverlappedAllGather));
  for (const std::string name : {"layer.forward", "layer.backward"}) {
    const auto& tasks = block(program, name).tasks;
    const auto gather = std::ranges::find_if(tasks, [](const program::Task& task) {
      const auto* what = std::get_if<program::Communication>(&task.body);
      return what != nullptr && what->kind == CollectiveKind::kAllGather;
    });
    ASSERT_NE(gather, tasks.end());
    const auto index = static_cast<std::int32_t>(gather - tasks.begin());
    std::vector<bool> waits;
    for (const program::Task& task : tasks) {
      const auto* kernel = std::get_if<Kernel>(&task.body);
      if (kernel != nullptr && std::holds_alternative<Attention>(*kernel))
        waits.push_back(std::ranges::find(task.after, index) != task.after.end());
    }
    EXPECT_THAT(waits, ElementsAre(false, true)) << name;
  }
}

// Gradients are summed over context, then what is left over data; ZeRO cuts states over both, and
// parameters are gathered from both at once.
TEST(ContextParallel, SharesStatesAsDataParallelRanksDo) {
  Strategy s = strategy(1, 2, ContextExchange::kAllGather);
  s.data_parallel = 2;
  s.global_batch = 2 * kBatch;
  s.zero_stage = 1;
  const auto program = lowered(s);
  std::map<std::string, double> reduced;
  std::map<std::string, double> gathered;
  for (const program::Call& call : program.roles[0].calls) {
    for (const program::Task& task : program.blocks[call.block.index()].tasks) {
      const auto* what = std::get_if<program::Communication>(&task.body);
      if (what == nullptr || what->purpose != Purpose::kData || what->tag == "gradient_norm")
        continue;
      (what->kind == CollectiveKind::kReduceScatter ? reduced : gathered)[what->tag] +=
          call.repeat * (what->bytes / size_of(what->dtype));
    }
  }
  const auto all = static_cast<double>(parameter_count(model()));
  EXPECT_THAT(reduced, ElementsAre(Pair("context", all), Pair("data", all / 2)));
  EXPECT_THAT(gathered, ElementsAre(Pair("context+data", all)));
  EXPECT_EQ(s.shards(), 4);
  EXPECT_EQ(s.devices(), 4);
}

}  // namespace
}  // namespace foreshard::lower
