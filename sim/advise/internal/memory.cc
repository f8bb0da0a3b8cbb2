// Ideas about what is kept, sharded and overlapped (ideas.h).
#include <algorithm>
#include <cstdint>

#include "sim/advise/internal/ideas.h"
#include "sim/search/family.h"
#include "strategies/launch/abilities.h"

namespace foreshard::advise {
namespace {

void recompute(Proposals& proposals, const Recomputation& how, std::int64_t layers) {
  proposals.strategy([&](Strategy& strategy) {
    strategy.recompute = how.how;
    if (how.how == Recompute::kSelective) strategy.recompute_parts = how.parts;
    strategy.recompute_layers = layers;
  });
}

}  // namespace

// None, all that the framework can recompute of every layer, and the same of some of the layers of
// each stage.
void propose_recomputation(Proposals& proposals) {
  const Start& start = proposals.start();
  const Strategy& now = start.strategy();
  recompute(proposals, {Recompute::kNone, {}}, 0);
  if (start.study().graph) {
    recompute(proposals, {Recompute::kFull, {}}, 0);
    return;
  }
  const search::RecomputeChoices choices =
      search::recompute_choices(start.model(), now, /*any_framework=*/false);
  const auto pieces = layers_of_stages(now, start.units());
  const std::int64_t longest = *std::ranges::max_element(pieces);
  const bool names_parts = launch::recompute_sets(*now.framework).has_value();
  for (std::size_t i = 0; i < choices.all.size(); ++i) {
    const Recomputation& how = choices.all[i];
    // Where nothing says which parts a framework names, only the usual ones are.
    if (how.how == Recompute::kSelective && !names_parts && how.parts != usual_recompute_parts() &&
        how.parts != now.recompute_parts)
      continue;
    recompute(proposals, how, 0);
    if (!choices.counts_layers(i)) continue;
    for (const std::int64_t quarters : {1, 2, 3})
      if (const std::int64_t layers = longest * quarters / 4; layers > 0)
        recompute(proposals, how, layers);
  }
}

void propose_sequence(Proposals& proposals) {
  if (proposals.start().study().graph || proposals.start().strategy().tensor_parallel == 1) return;
  proposals.strategy(
      [](Strategy& strategy) { strategy.sequence_parallel = !strategy.sequence_parallel; });
}

// Other stages of ZeRO; of ZeRO 2 and 3 also one set of shards for all ranks, and one per node.
void propose_sharding(Proposals& proposals) {
  const Start& start = proposals.start();
  const Strategy& now = start.strategy();
  if (now.copies() == 1) return;
  for (const std::int64_t stage : {0, 1, 2, 3})
    proposals.strategy([&](Strategy& strategy) { strategy.zero_stage = stage; });
  if (now.zero_stage < 2) return;
  proposals.strategy([](Strategy& strategy) { strategy.shard_replicas = 1; });
  const std::int64_t within = start.study().cluster.node_groups().front().node->gpus /
                              (now.tensor_parallel * now.context_parallel);
  if (within > 1 && now.data_parallel % within == 0)
    proposals.strategy(
        [&](Strategy& strategy) { strategy.shard_replicas = now.data_parallel / within; });
}

// Communication beside computation, where an option of the framework switches it.
void propose_overlaps(Proposals& proposals) {
  const Strategy& now = proposals.start().strategy();
  const Framework& framework = *now.framework;
  const auto reduce = [](Strategy& strategy) {
    strategy.framework.value.gradient_reduction = GradientReduction::kOverlapped;
  };
  if (launch::can_overlap(framework, launch::Overlap::kGradients)) proposals.strategy(reduce);
  if (launch::can_overlap(framework, launch::Overlap::kParameters) && now.zero_stage > 0)
    proposals.strategy([&](Strategy& strategy) {
      reduce(strategy);  // which frameworks ask for first
      strategy.framework.value.overlap_parameter_gather = true;
    });
  if (now.expert_parallel > 1)
    proposals.strategy(
        [](Strategy& strategy) { strategy.overlap_experts = !strategy.overlap_experts; });
}

// The gradients of a graph that are reduced together. (Those of a transformer are reduced layer by
// layer.)
void propose_buckets(Proposals& proposals) {
  const Strategy& now = proposals.start().strategy();
  if (!proposals.start().study().graph || now.copies() == 1 ||
      now.framework->gradient_reduction != GradientReduction::kOverlapped)
    return;
  for (const double factor : {2.0, 0.5})
    proposals.strategy([&](Strategy& strategy) {
      strategy.framework.value.gradient_bucket = factor * now.framework->gradient_bucket;
    });
}

void propose_rank_orders(Proposals& proposals) {
  for (const auto& order : {std::vector<std::string>{"tensor", "data", "pipeline"},
                            std::vector<std::string>{"tensor", "pipeline", "data"}})
    proposals.strategy([&](Strategy& strategy) { strategy.rank_order = order; });
}

}  // namespace foreshard::advise
