// Layers that differ in attention: which kernels they have, and what tensor-parallel ranks send of
// latents, by hand.
#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::attention_test {

using program::CollectiveKind;
using program::Program;

constexpr std::int64_t kSequence = 16;
constexpr std::int64_t kBatch = 2;

Model model() {
  return written_model(
      "name: tiny, layers: 4, hidden: 8, heads: 4, ffn: 12, vocabulary: 12, sequence: " +
      std::to_string(kSequence) +
      ", norm: rms-norm, activation: swiglu, positions: rotary, bias: false, tied_embeddings: "
      "false, dropout: false");
}

// Queries of 6 columns through latents of 5, of which 2 rotate; keys and values, of 3, through
// latents of 4.
Model latents() {
  Model one = model();
  one.head_dim = 6;
  one.key_value_rank = 4;
  one.query_rank = 5;
  one.rotary_dim = 2;
  one.value_dim = 3;
  return one;
}

Strategy strategy(std::int64_t tensor, bool sequence) {
  Strategy s = degrees(tensor, 1, 1, kBatch);
  s.sequence_parallel = sequence;
  return s;
}

Program lowered(const Strategy& of, const Model& that) {
  EXPECT_TRUE(checked(that));
  EXPECT_THAT(faults_in(of, that, of.devices()), IsEmpty());
  return value_of(lower(that, of, {.launch_time = 5_us}));
}

// Of forward passes, in the order of layers.
std::vector<Attention> attention_of(const Program& program) {
  std::vector<Attention> found;
  for (const program::Call& call : program.roles[0].calls)
    for (const program::Task& task : program.blocks[call.block.index()].tasks) {
      const auto* kernel = std::get_if<Kernel>(&task.body);
      const auto* attention = kernel == nullptr ? nullptr : std::get_if<Attention>(kernel);
      if (attention == nullptr || attention->direction == Direction::kBackward) continue;
      found.insert(found.end(), static_cast<std::size_t>(call.repeat), *attention);
    }
  return found;
}

const Attention kFull{.batch = kBatch,
                      .query_heads = 4,
                      .kv_heads = 4,
                      .query_length = kSequence,
                      .key_length = kSequence,
                      .head_dim = 2};

TEST(LayersOfAttention, TakeTurns) {
  Model one = model();
  one.window = 3;
  one.full_interval = 2;
  Attention window = kFull;
  window.window = 3;
  EXPECT_THAT(attention_of(lowered(strategy(1, false), one)),
              ElementsAre(window, kFull, window, kFull));
  // Chunks are sequences of their own.
  one.window = 4;
  one.window_kind = WindowKind::kChunk;
  Attention chunk = kFull;
  chunk.batch = kBatch * kSequence / 4;
  chunk.query_length = chunk.key_length = 4;
  EXPECT_THAT(attention_of(lowered(strategy(1, false), one)),
              ElementsAre(chunk, kFull, chunk, kFull));
}

// Samples of 1 and 3 tokens, as often: (1 + 9) / (2 (1 + 3)) keys, as of samples of 2.5, or 3. With
// keys in a ring of two ranks, each has half of every sequence and half of every sample.
TEST(LayersOfAttention, SeeTheirOwnPackedSamples) {
  Model one = model();
  one.samples = Samples{.lengths = {1, 3}, .shares = {0.5, 0.5}};
  Attention packed = kFull;
  packed.sample = 3;
  EXPECT_THAT(attention_of(lowered(strategy(1, false), one)),
              ElementsAre(packed, packed, packed, packed));
  Strategy ring = strategy(1, false);
  ring.context_parallel = 2;
  ring.context_exchange = ContextExchange::kRing;
  one.samples = Samples{.lengths = {4}, .shares = {1}};
  one.layers = 1;
  Attention own = kFull;
  own.query_length = own.key_length = kSequence / 2;
  own.sample = 2;
  Attention other = own;
  other.key_length = kSequence / 4;
  other.sample = 1;
  other.causal = false;
  EXPECT_THAT(attention_of(lowered(ring, one)), ElementsAre(own, other));
}

TEST(LayersOfAttention, OfLatentsHaveNarrowValues) {
  Attention half = kFull;
  half.query_heads = half.kv_heads = 2;
  half.head_dim = 6;
  half.value_dim = 3;
  EXPECT_THAT(attention_of(lowered(strategy(2, true), latents())),
              ElementsAre(half, half, half, half));
}

std::vector<double> bytes_in_layer(const Program& program, CollectiveKind kind) {
  std::vector<double> bytes;
  for (const program::Block& block : program.blocks) {
    if (block.name != "layer.forward") continue;
    for (const program::Task& task : block.tasks) {
      const auto* what = std::get_if<program::Communication>(&task.body);
      if (what != nullptr && what->kind == kind) bytes.push_back(what->bytes.in_base());
    }
  }
  return bytes;
}

// With sequences split between the parts, ranks gather the latents of queries (5 columns), those of
// keys and values (4) and the key that rotates (2), in bf16, in place of the stream of 8 columns
// that the feed-forward layer gathers.
TEST(LayersOfAttention, GatherLatentsNotTheStream) {
  constexpr double kTokens = 2.0 * kBatch * kSequence;
  EXPECT_THAT(bytes_in_layer(lowered(strategy(2, true), latents()), CollectiveKind::kAllGather),
              UnorderedElementsAre(5 * kTokens, 4 * kTokens, 2 * kTokens, 8 * kTokens));
  EXPECT_THAT(bytes_in_layer(lowered(strategy(2, false), latents()), CollectiveKind::kAllGather),
              IsEmpty());
}

}  // namespace foreshard::lower::attention_test
