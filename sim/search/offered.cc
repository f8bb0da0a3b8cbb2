// Which strategies of a space are offered: those that the framework can run, and those that the
// space names.
#include "sim/search/space.h"
#include "strategies/launch/abilities.h"

namespace foreshard::search {

std::optional<launch::Limitation> limitation_in(const Strategy& strategy, const Model& model,
                                                const SearchSpace& space) {
  if (space.any_framework) return std::nullopt;
  const auto is_named = [&](std::string_view key) {
    if (key == "zero_stage") return !space.zero_stage.empty();
    if (key == "shard_replicas") return !space.shard_replicas.empty();
    if (key == "pipeline_parallel") return !space.pipeline_parallel.empty();
    if (key == "virtual_stages") return !space.virtual_stages.empty();
    if (key == "expert_parallel") return !space.expert_parallel.empty();
    if (key == "expert_tensor_parallel") return !space.expert_tensor_parallel.empty();
    if (key == "schedule") return !space.schedule.empty();
    if (key == "layers_per_stage") return !space.layers_per_stage.empty();
    if (key == "sequence_parallel") return space.sequence_parallel.has_value();
    if (key == "rank_order") return !space.rank_order.empty();
    if (key == "recompute_parts") return !space.recompute.empty();
    // These values are the study's own, or a few that are tried where devices are unequal or where
    // nothing fits without them. The answer says that the framework cannot run them.
    return key == "batch_shares" || key == "context_exchange" || key.starts_with("offload_");
  };
  for (const launch::Limitation& one : launch::limitations_in(strategy, model))
    if (!is_named(one.key)) return one;
  return std::nullopt;
}

}  // namespace foreshard::search
