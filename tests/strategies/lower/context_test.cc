// Context parallelism: what moves, what is attended to and what lies where, by hand.
#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::lower::context_test {

using program::CollectiveKind;
using program::Program;
using program::Purpose;
using testing::Pair;

constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kKeyHeads = 4;
constexpr std::int64_t kWidth = 2;  // of a head
constexpr std::int64_t kHidden = kHeads * kWidth;
constexpr std::int64_t kSequence = 32;
constexpr std::int64_t kBatch = 2;

Model model() {
  return written_model(
      "name: tiny, layers: " + std::to_string(kLayers) + ", hidden: " + std::to_string(kHidden) +
      ", heads: " + std::to_string(kHeads) + ", kv_heads: " + std::to_string(kKeyHeads) +
      ", vocabulary: 12, sequence: " + std::to_string(kSequence) +
      ", bias: false, tied_embeddings: false, dropout: false");
}

// One micro-batch of two sequences.
Strategy strategy(std::int64_t tp, std::int64_t cp, ContextExchange how) {
  Strategy s = degrees(tp, 1, 1, kBatch);
  s.context_parallel = cp;
  s.context_exchange = how;
  s.sequence_parallel = tp > 1;
  return s;
}

Program lowered(const Strategy& of) {
  EXPECT_THAT(faults_in(of, model(), of.devices()), IsEmpty());
  return value_of(lower(model(), of, {.launch_time = 5_us}));
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
       {ContextExchange::kAllGather, ContextExchange::kOverlappedAllGather, ContextExchange::kRing,
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

// Of each transfer of a ring in a block, the bytes that a rank sends.
std::vector<double> shifts(const Program& program, const std::string& name) {
  std::vector<double> bytes;
  for (const program::Task& task : block(program, name).tasks) {
    const auto* what = std::get_if<program::Communication>(&task.body);
    if (what == nullptr || what->kind != CollectiveKind::kShift) continue;
    EXPECT_EQ(what->purpose, Purpose::kContext);
    bytes.push_back(what->bytes.in_base());
  }
  return bytes;
}

// By hand: p-1 times what a rank has of keys and values forward. Backward p times: first keys
// alone, then with the gradients of the step before, last gradients alone. Nothing is gathered or
// reduced.
TEST(ContextRing, SendsKeysAndThenTheirGradientsRound) {
  for (const std::int64_t tp : {1, 2}) {
    for (const std::int64_t cp : {2, 4, 8}) {
      const auto program = lowered(strategy(tp, cp, ContextExchange::kRing));
      const double own = kKeysAndValues / static_cast<double>(tp * cp);
      std::vector<double> forward(static_cast<std::size_t>(cp - 1), own);
      std::vector<double> backward(static_cast<std::size_t>(cp), 2 * own);
      backward.front() = backward.back() = own;
      EXPECT_EQ(shifts(program, "layer.forward"), forward) << cp;
      EXPECT_EQ(shifts(program, "layer.backward"), backward) << cp;
      EXPECT_THAT(bytes_of_layers(program), ElementsAre(Pair(CollectiveKind::kShift, testing::_)));
    }
  }
}

std::string word_of(const program::Task& task) {
  const auto* kernel = std::get_if<Kernel>(&task.body);
  if (kernel == nullptr) return "T";
  const auto* attention = std::get_if<Attention>(kernel);
  if (attention == nullptr) return "S";
  return attention->causal ? "A own" : "A";
}

// "2 A < 1 0": the tasks of the ring in a block, numbered among them, with those that they wait
// for.
std::string ring_text(const Program& program, const std::string& name) {
  const auto& tasks = block(program, name).tasks;
  const auto is_ring = [](const program::Task& task) {
    return task.name.starts_with("shift.") || task.name.starts_with("attention") ||
           task.name.starts_with("d.attention");
  };
  const auto is_of_it = [&](const program::Task& task) {
    return is_ring(task) && task.name.find("attention_") == std::string::npos;
  };
  std::map<std::int32_t, int> number;
  std::string text;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (!is_of_it(tasks[t])) continue;
    const int n = static_cast<int>(number.size());
    number[static_cast<std::int32_t>(t)] = n;
    text += std::to_string(n) + " " + word_of(tasks[t]);
    for (const std::int32_t after : tasks[t].after)
      text += " < " + (number.contains(after) ? std::to_string(number.at(after)) : "before");
    text += "\n";
  }
  return text;
}

// A step's kernel waits for the transfer of the step before alone, so the next one is under way
// beside it; gradients are added up when they arrive, and go on when that is done.
TEST(ContextRing, EachStepWaitsForItsOwnTransfer) {
  const auto program = lowered(strategy(1, 4, ContextExchange::kRing));
  EXPECT_EQ(ring_text(program, "layer.forward"),
            "0 T < before\n"
            "1 A own\n"
            "2 T < 0\n"
            "3 A < 0\n"
            "4 T < 2\n"
            "5 A < 2\n"
            "6 A < 4\n"
            "7 S\n8 S\n9 S\n10 S\n");
  EXPECT_EQ(ring_text(program, "layer.backward"),
            "0 S\n"
            "1 T < 0\n"
            "2 A\n"
            "3 S < 1\n"
            "4 T < 3\n"
            "5 A < 1\n"
            "6 S < 4\n"
            "7 T < 6\n"
            "8 A < 4\n"
            "9 S < 7\n"
            "10 T < 9\n"
            "11 A own < 7\n"
            "12 S < 10\n");
}

// Rank r of p has chunks r and 2p-1-r of 2p. In step k it has the keys of rank r-k: with its own
// all pairs that causality leaves; of an earlier rank all queries see the first chunk, of a later
// one the second chunk of queries sees all. Each causal pair is covered once, and each rank has as
// many.
TEST(ContextRing, CoversEachCausalPairOnce) {
  const auto kernels = attention(lowered(strategy(1, 4, ContextExchange::kRing)), "layer.forward");
  constexpr std::int64_t kRanks = 4;
  constexpr std::int64_t kChunk = kSequence / (2 * kRanks);
  ASSERT_EQ(std::ssize(kernels), kRanks);
  const auto tokens_of = [](std::int64_t rank, bool first, bool second) {
    std::vector<std::int64_t> tokens;
    for (std::int64_t t = 0; t < kChunk && first; ++t) tokens.push_back(rank * kChunk + t);
    for (std::int64_t t = 0; t < kChunk && second; ++t)
      tokens.push_back((2 * kRanks - 1 - rank) * kChunk + t);
    return tokens;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    std::int64_t pairs = 0;
    for (std::int64_t step = 0; step < kRanks; ++step) {
      const bool earlier = step <= rank;
      const auto queries = tokens_of(rank, earlier, true);
      const auto keys = tokens_of((rank - step + kRanks) % kRanks, true, step == 0 || !earlier);
      const Attention& kernel = kernels[static_cast<std::size_t>(step)];
      EXPECT_EQ(kernel.causal, step == 0);
      EXPECT_EQ(kernel.query_length * kernel.key_length, std::ssize(queries) * std::ssize(keys));
      for (const std::int64_t q : queries)
        for (const std::int64_t k : keys) {
          if (kernel.causal && k > q) continue;
          EXPECT_LE(k, q);
          ++seen[{q, k}];
          ++pairs;
        }
    }
    EXPECT_EQ(pairs, kSequence * (kSequence + 1) / 2 / kRanks) << rank;
  }
  EXPECT_EQ(std::ssize(seen), kSequence * (kSequence + 1) / 2);
  for (const auto& [pair, times] : seen) EXPECT_EQ(times, 1);
}

// Pairs of ranks exchange tokens for heads, so that each has half of the heads of twice as many
// tokens: a ring of half as many steps with as many bytes each.
TEST(ContextRing, GoesRoundGroupsThatExchangeHeads) {
  Strategy s = strategy(1, 4, ContextExchange::kRing);
  s.context_heads = 2;
  const auto program = lowered(s);
  const double token = 2.0 * kWidth * (2 * kHeads + 2 * kKeyHeads);
  const double tokens = kBatch * kSequence / 4;
  EXPECT_THAT(bytes_of_layers(program),
              ElementsAre(Pair(CollectiveKind::kAllToAll, 2 * kLayers * tokens * token),
                          Pair(CollectiveKind::kShift, kLayers * 3 * kKeysAndValues / 4)));
  EXPECT_EQ(shifts(program, "layer.forward"), std::vector{kKeysAndValues / 4});
  const auto kernels = attention(program, "layer.forward");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].query_heads, kHeads / 2);
  EXPECT_EQ(kernels[0].kv_heads, kKeyHeads / 2);
  EXPECT_EQ(kernels[0].query_length, kSequence / 2);
  EXPECT_EQ(kernels[1].key_length, kSequence / 4);
}

// Gradients are summed over context and data at once; ZeRO cuts states over both, and parameters
// are gathered likewise.
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
  EXPECT_THAT(reduced, ElementsAre(Pair("context+data", all)));
  EXPECT_THAT(gathered, ElementsAre(Pair("context+data", all)));
  EXPECT_EQ(s.shards(), 4);
  EXPECT_EQ(s.devices(), 4);
}

}  // namespace foreshard::lower::context_test
