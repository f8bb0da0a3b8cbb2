// Serial = sharded for random strategies of random models: all knobs of both, on up to 16 ranks,
// each plan carried out in two orders of its own.

#include "tests/seeds.h"
#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::execute {
namespace {

TEST(SerialIsSharded, ForRandomStrategies) {
  constexpr std::uint32_t kSeed = 20'211;
  const int strategies = seeds(40, 500);
  std::mt19937 random(kSeed);
  Summary summary;
  for (int i = 0; i < strategies; ++i) {
    Training training = random_training(random, 16);
    quantize(training.strategy, static_cast<unsigned>(i));
    replicate_shards(training.strategy, static_cast<unsigned>(i));
    give_context(training, static_cast<unsigned>(i));
    give_attention(training, static_cast<unsigned>(i));
    give_experts(training, static_cast<unsigned>(i));
    give_routers(training, static_cast<unsigned>(i));
    give_adapters(training, static_cast<unsigned>(i));
    give_predictions(training, static_cast<unsigned>(i));
    part_gates(training, static_cast<unsigned>(i));
    recompute_parts(training, static_cast<unsigned>(i));
    reschedule(training, static_cast<unsigned>(i));
    overlap_exchanges(training, static_cast<unsigned>(i));
    offload(training, static_cast<unsigned>(i));
    fine_tune(training, static_cast<unsigned>(i));
    const auto order = static_cast<std::uint64_t>(i);
    expect_serial_is_sharded(training.model, training.strategy, summary,
                             {2 * order, 2 * order + 1});
    const auto plan = value_of(lower::plan_of(training.model, training.strategy));
    EXPECT_EQ(message_of(plan::verify(plan)), "accepted");
    ASSERT_FALSE(HasFailure()) << "seed " << kSeed << ", strategy " << i << ": "
                               << foreshard::describe(training);
  }
  print(summary);
}

}  // namespace
}  // namespace foreshard::execute
