// Serial = sharded for random strategies of random models: all knobs of both, on up to 16 ranks.
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/lower/random_strategy.h"

namespace foreshard::execute {
namespace {

TEST(SerialIsSharded, ForRandomStrategies) {
  constexpr std::uint32_t kSeed = 20'211;
  constexpr int kStrategies = 300;
  std::mt19937 random(kSeed);
  Summary summary;
  for (int i = 0; i < kStrategies; ++i) {
    const Training training = random_training(random, 16);
    expect_serial_is_sharded(training.model, training.strategy, summary);
    ASSERT_FALSE(HasFailure()) << "seed " << kSeed << ", strategy " << i << ": "
                               << foreshard::describe(training);
  }
  print(summary);
}

}  // namespace
}  // namespace foreshard::execute
