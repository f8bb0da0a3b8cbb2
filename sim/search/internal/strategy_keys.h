/// \file
/// The keys of the estimator's caches.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/key.h"

#include "sim/search/internal/forms.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

using StrategyKey = std::vector<std::int64_t>;

/// A key has all fields of Strategy except those that strategy_keys.cc leaves out by name. A few
/// numbers stand for the effect of the fields that are left out. A new field of Strategy is in all
/// keys until it is left out there, so that forgetting it costs time and never gives a stale
/// result.
class StrategyKeys {
 public:
  explicit StrategyKeys(Forms& forms) : forms_(forms) {}

  /// Key of the work of a layer's kernels. It does not depend on the order of ranks.
  StrategyKey of_layer(const Strategy& strategy);
  /// Key of a split layer: its kernels and the messages between its ranks.
  StrategyKey of_split(const Strategy& strategy);
  /// Key of the blocks of all stages and of the states that the stages hold.
  StrategyKey of_layout(const Strategy& strategy);

 private:
  Forms& forms_;
};

}  // namespace foreshard::search
