// Families of strategies that differ in what they recompute (family.h), for the Estimator and the
// ranking of candidates.
#include "sim/search/family.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/search/internal/peaks.h"
#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/launch/abilities.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/layers.h"
#include "strategies/program/lower/recompute.h"

namespace foreshard::search {
namespace {

using Parts = std::vector<foreshard::LayerPart>;

// Only sets of a layer's first parts, up to this many, are listed: each further part doubles their
// number.
constexpr std::size_t kMostParts = 10;

// The parts of a layer, in the order in which it runs them.
Parts parts_of(const Graph& layer) {
  Parts parts;
  for (const Operator& op : layer.operators)
    if (op.part != foreshard::LayerPart::kNone && std::ranges::find(parts, op.part) == parts.end())
      parts.push_back(op.part);
  return parts;
}

// Adds the sets of parts from which no part can be left out without more being kept.
void add_sets(const Graph& layer, const Graph& gradients, std::set<Parts>& sets) {
  Parts parts = parts_of(layer);
  if (parts.size() > kMostParts) parts.resize(kMostParts);
  std::vector<std::set<TensorId>> kept;  // index: the set as bits
  for (std::size_t set = 0; set < std::size_t{1} << parts.size(); ++set) {
    Parts own;
    bool is_least = set > 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if ((set >> i & 1) != 0) own.push_back(parts[i]);
    kept.push_back(lower::kept_tensors(layer, gradients, {Recompute::kSelective, own}));
    for (std::size_t i = 0; i < parts.size() && is_least; ++i)
      if ((set >> i & 1) != 0) is_least = kept[set & ~(std::size_t{1} << i)] != kept[set];
    if (!is_least) continue;
    std::ranges::sort(own);
    sets.insert(std::move(own));
  }
}

// Whether a plan can tell apart all kinds of units if only some layers recompute.
bool may_count_layers(const Model& model, const Strategy& strategy) {
  Strategy one = strategy;
  one.pipeline_parallel = one.virtual_stages = 1;
  one.layers_per_stage.clear();
  const auto kinds = static_cast<std::int64_t>(layers_of(model, one).variants.size());
  return 2 * kinds + model.multi_token_prediction + 2 <= static_cast<std::int64_t>(kBlocks);
}

}  // namespace

Strategy on_one_device(Strategy strategy) {
  strategy.tensor_parallel = strategy.pipeline_parallel = strategy.data_parallel = 1;
  strategy.context_parallel = strategy.expert_parallel = strategy.shard_replicas = 1;
  strategy.context_heads = strategy.virtual_stages = strategy.micro_batch = 1;
  strategy.expert_tensor_parallel = strategy.recompute_layers = 0;
  strategy.sequence_parallel = false;
  strategy.schedule = "1f1b";
  strategy.layers_per_stage.clear();
  strategy.batch_shares.clear();
  strategy.recompute = Recompute::kNone;
  strategy.recompute_parts = usual_recompute_parts();
  return strategy;
}

RecomputeChoices recompute_choices(const Model& model, const Strategy& base, bool any_framework) {
  RecomputeChoices choices{.of_some_layers = may_count_layers(model, base)};
  Strategy one = on_one_device(base);
  const Framework& framework = *base.framework;
  const bool usual_alone = framework.quantized_expert_inputs || framework.shards.gather_each;
  Parts own = base.recompute_parts;
  std::ranges::sort(own);
  std::set<Parts> sets;
  const auto named = any_framework ? std::nullopt : launch::recompute_sets(framework);
  if (!named || own != usual_recompute_parts() || std::ranges::find(*named, own) != named->end())
    sets.insert(std::move(own));
  if (named && !usual_alone) sets.insert(named->begin(), named->end());
  for (const Graph& layer : graphs_of(model, one).layers) {
    const auto forward = distribute(layer, mesh_of(one), Flow::kForward, BackwardPass::kFollows);
    if (!forward || usual_alone || named) continue;
    add_sets(layer, backward_graph(*forward, backward_options(one)), sets);
  }
  for (const Parts& parts : sets) {
    one.recompute = Recompute::kSelective;
    one.recompute_parts = parts;
    const auto faults = faults_in(one, model, 1);
    if (std::ranges::find(faults, "recompute_parts", &StrategyFault::key) == faults.end())
      choices.all.push_back(one.recomputation());
  }
  choices.all.push_back({Recompute::kFull, usual_recompute_parts()});
  for (const Recomputation& choice : choices.all)
    choices.counts.push_back(any_framework || launch::can_recompute(framework, choice, true));
  return choices;
}

Family::Family(Strategy strategy, const Model& model, const RecomputeChoices& recomputed)
    : base(std::move(strategy)), choices(&recomputed) {
  if (!recomputed.of_some_layers) return;
  if (base.layers_per_stage.empty()) {
    layers = model.layers / base.stages();
    return;
  }
  for (const std::int64_t count : base.layers_per_stage) layers = std::max(layers, count);
}

Strategy Family::strategy_of(const FamilyMember& member) const {
  Strategy strategy = base;
  if (member.choice < 0) return strategy;
  const Recomputation& choice = choices->all[static_cast<std::size_t>(member.choice)];
  strategy.recompute = choice.how;
  strategy.recompute_parts = choice.parts;
  strategy.recompute_layers = member.layers;
  return strategy;
}

}  // namespace foreshard::search
