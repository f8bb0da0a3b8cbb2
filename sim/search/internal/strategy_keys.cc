// The keys of the Estimator's caches (strategy_keys.h), from the fields of a strategy.
#include "sim/search/internal/strategy_keys.h"

#include <algorithm>
#include <array>

#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"

namespace foreshard::search {
namespace {

// Fields that no key has. The batch, its shares and the schedule are part of the keys of plans
// (forms.h); zero_stage and recompute_layers enter by the numbers below; all strategies of a search
// have one framework.
constexpr std::array<std::string_view, 14> kOfNoKey{
    "global_batch",     "batch_shares",
    "granularity",      "schedule",
    "schedule_actions", "schedule_file",
    "pass_times",       "virtual_stages",
    "layers_per_stage", "recompute_layers",
    "overlap_experts",  "zero_stage",
    "framework",        "offload_activation_layers",
};

template <std::size_t kCount, std::size_t kMore>
constexpr auto with(const std::array<std::string_view, kCount>& names,
                    const std::string_view (&more)[kMore]) {
  std::array<std::string_view, kCount + kMore> all;
  std::ranges::copy(names, all.begin());
  std::ranges::copy(more, all.begin() + kCount);
  return all;
}

constexpr auto kNotOfSplits = with(
    kOfNoKey, {"pipeline_parallel", "data_parallel", "offload_optimizer", "offload_parameters"});
constexpr auto kNotOfLayers = with(kNotOfSplits, {"rank_order"});

StrategyKey key_of(const Strategy& strategy, const yaml::Key<Strategy>& fields,
                   std::int64_t variants) {
  constexpr std::size_t kUsualLength = 64;
  StrategyKey key;
  key.reserve(kUsualLength);
  fields.append(strategy, key);
  key.push_back(variants);
  key.push_back(splits_backward(strategy) ? 1 : 0);
  key.push_back(leaves_experts_whole(strategy) ? 1 : 0);  // an axis of the mesh
  return key;
}

}  // namespace

StrategyKey StrategyKeys::of_layer(const Strategy& strategy) {
  static const yaml::Key<Strategy> fields(kNotOfLayers);
  return key_of(strategy, fields, forms_.variants_of(strategy));
}

StrategyKey StrategyKeys::of_split(const Strategy& strategy) {
  static const yaml::Key<Strategy> fields(kNotOfSplits);
  StrategyKey key = key_of(strategy, fields, forms_.variants_of(strategy));
  // The strides of the axes whose ranks share a layer.
  std::int64_t stride = 1;
  for (const MeshAxis& axis : mesh_of(strategy)) {
    if (axis.name.starts_with("tensor") || axis.name.starts_with("context") ||
        axis.name.starts_with("expert"))
      key.push_back(stride);
    stride *= axis.size;
  }
  return key;
}

StrategyKey StrategyKeys::of_layout(const Strategy& strategy) {
  static const yaml::Key<Strategy> fields(kOfNoKey);
  StrategyKey key = key_of(strategy, fields, forms_.variants_of(strategy));
  const StateSharding states = state_sharding(strategy);
  key.insert(key.end(),
             {states.cuts_parameters ? 1 : 0, states.cuts_gradients ? 1 : 0,
              states.cuts_optimizer ? 1 : 0, static_cast<std::int64_t>(states.gather),
              static_cast<std::int64_t>(states.reduce), last_stage(strategy) == 0 ? 1 : 0});
  return key;
}

}  // namespace foreshard::search
