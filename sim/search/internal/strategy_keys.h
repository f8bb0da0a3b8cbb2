/// \file
/// What strategies have in common, as keys of the estimator's caches.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/key.h"

#include "sim/search/internal/forms.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

using StrategyKey = std::vector<std::int64_t>;

/// Each key has all fields of Strategy but those that are left out here by name, and a few numbers
/// that stand for what matters of the fields that are left out. A new field of Strategy is in all
/// keys; it is left out here if estimates do not depend on it, or on less than all of it.
class StrategyKeys {
 public:
  explicit StrategyKeys(Forms& forms) : forms_(forms) {}

  /// Of the work of a layer's kernels, in whatever order the ranks are.
  StrategyKey of_layer(const Strategy& strategy);
  /// Of how a layer is split: its kernels and what its ranks send each other.
  StrategyKey of_split(const Strategy& strategy);
  /// Of the blocks of all stages, and of the states that they hold.
  StrategyKey of_layout(const Strategy& strategy);

 private:
  Forms& forms_;
};

}  // namespace foreshard::search
