// Whatever the strategy, the Program is sound and holds the whole model.

#include "tests/strategies/lower/models.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {
namespace {

// Elements of the stages of one tensor-parallel rank, from their static parameter memory. FSDP may
// hold them in fp32, on one rank, too.
double elements_held(const program::Program& program, const Strategy& strategy) {
  double bytes = 0;
  for (const program::Role& role : program.roles) {
    for (const program::StaticMemory& memory : role.memory) {
      if (memory.kind == program::MemoryKind::kParameters) bytes += memory.bytes.in_base();
    }
  }
  const double shards = strategy.zero_stage == 3 ? static_cast<double>(strategy.shards()) : 1;
  const bool fp32 = strategy.zero_stage == 3 && strategy.framework->shards.fp32;
  return bytes * shards / (fp32 ? 4 : size_of(strategy.precision).in_base());
}

// By hand: all parameters, the vocabulary padded, an embedding that the last stage reads once more
// where first and last stage are different ranks, divided by tensor ranks except for what they hold
// copies of: norms, learned positions, biases after the row-parallel products, routers. Experts are
// divided among their data-parallel ranks besides; ZeRO 3 cuts them over so many fewer, or not at
// all.
double elements_expected(const Model& model, const Strategy& strategy) {
  const std::int64_t tp = strategy.tensor_parallel;
  const std::int64_t multiple = strategy.framework->vocabulary_multiple * tp;
  Model padded = model;
  padded.vocabulary = (model.vocabulary + multiple - 1) / multiple * multiple;
  std::int64_t all = parameter_count(padded);
  if (model.tables_behind() > 0 && last_stage(strategy) != 0)
    all += padded.vocabulary * model.hidden;
  const int scales = (has_scale(model.norm) ? 1 : 0) + (has_shift(model.norm) ? 1 : 0);
  const std::int64_t norm = model.hidden * scales;
  const int biases = (model.has_attention_out_bias() ? 1 : 0) + (model.has_mlp_bias() ? 1 : 0);
  const int norms = model.branches == Branches::kParallelOneNorm ? 1
                    : model.norm_places == NormPlaces::kBoth     ? 4
                                                                 : 2;
  std::int64_t layer = norms * norm + biases * model.hidden;
  if (model.qk_norm == QkNorm::kPerHead)
    layer += 2 * model.head_size() * (has_shift(model.norm) ? 2 : 1);
  const std::int64_t predictions = model.multi_token_prediction;
  std::int64_t copies = (model.layers + predictions) * layer +
                        (model.embedding_norm ? 2 : 1) * norm + 3 * predictions * norm;
  if (model.positions == Positions::kLearned) copies += model.position_rows() * model.hidden;
  std::int64_t mixtures = model.kind_of_prediction().experts ? predictions : 0;
  for (std::int64_t i = 0; i < model.layers; ++i)
    mixtures += model.kind_of_layer(i).experts ? 1 : 0;
  copies += mixtures * model.hidden * model.experts;
  const std::int64_t matrices = model.activation == Activation::kSwiglu ? 3 : 2;
  const std::int64_t routed =
      mixtures * model.experts * matrices * model.hidden * model.expert_width();
  const std::int64_t divided = (all - copies - routed) / tp;
  const bool shards = strategy.zero_stage == 3 && strategy.shards() > 1;
  const std::int64_t holders = expert_ranks(strategy);
  const bool whole = shards && strategy.expert_parallel > 1 && !strategy.framework->shards.experts;
  const std::int64_t own =
      whole ? routed / holders * strategy.shards() : routed / (shards ? tp : holders);
  return static_cast<double>(divided + copies + own);
}

TEST(Lower, IsSoundForRandomStrategies) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    Training training = random_training(random, 48);
    quantize(training.strategy, seed);
    replicate_shards(training.strategy, seed);
    give_context(training, seed);
    give_experts(training, seed);
    give_adapters(training, seed);
    give_predictions(training, seed);
    part_gates(training, seed);
    recompute_parts(training, seed);
    reschedule(training, seed);
    overlap_exchanges(training, seed);
    offload(training, seed);
    fine_tune(training, seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(training));
    const auto program = value_of(lower(training.model, training.strategy, {.launch_time = 1_us}));
    ASSERT_EQ(message_of(program::verify(program)), "accepted");
    EXPECT_EQ(program.ranks(), training.strategy.devices());
    const bool is_in_4_bits =
        training.model.adapters && training.model.adapters->base == AdapterBase::kNf4;
    if (training.strategy.quantization == Quantization::kNone && !is_in_4_bits &&
        !training.strategy.offload_parameters) {
      EXPECT_DOUBLE_EQ(elements_held(program, training.strategy),
                       elements_expected(training.model, training.strategy));
    }
  }
}

// With two tensor-parallel ranks the first layer reads the sum of their parts of the embedding, and
// the gradient of the loss begins with the sums over the vocabulary: both wait for them.
TEST(Programs, LetReadersInTheNextCallWaitForSums) {
  Strategy s;
  s.tensor_parallel = 2;
  s.global_batch = 2;
  s.framework.value.vocabulary_multiple = 1;
  const auto lowered = value_of(lower(small_llama(4), s, {}));
  const program::Program& program = lowered;
  const program::Role& role = program.roles[0];
  std::map<std::string, std::int32_t> waits;  // by block and the task that it waits for
  for (const program::Call& call : role.calls) {
    for (const program::CallDependency& one : call.after) {
      const program::Call& earlier = role.calls[static_cast<std::size_t>(one.call)];
      const program::Block& block = program.blocks[earlier.block.index()];
      if (one.task >= 0)
        ++waits[program.blocks[call.block.index()].name + " < " +
                block.tasks[static_cast<std::size_t>(one.task)].name];
    }
  }
  EXPECT_EQ(waits["layer.forward < all_reduce.embedded"], 2);
  EXPECT_EQ(waits["head.backward < all_reduce.loss.partial"], 2);
  EXPECT_EQ(waits.size(), 2U);
}

}  // namespace
}  // namespace foreshard::lower
