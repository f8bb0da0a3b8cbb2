// The table of what frameworks cannot express (abilities.h), for the space of a search and for
// export.cc. A framework without a row counts as able to do everything.
#include "strategies/launch/abilities.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace foreshard::launch {
namespace {

// What the options of a family of frameworks can express.
struct Abilities {
  std::string_view name;    // Name of a framework, or common prefix of several names.
  std::string_view format;  // Format of `export --as`.
  std::int64_t lowest_zero = 0;
  std::int64_t highest_zero = 3;
  bool zero_1 = true;  // Shards of optimizer states only.
  bool pipelines = true;
  bool interleaves_more = true;  // More than two chunks per rank.
  bool uneven_stages = true;
  bool parts = true;             // Recomputation of parts of layers, by modules that it names.
  bool recomputes_some = true;   // Full recomputation of only the first layers of a stage.
  bool other_rank_order = true;  // Tensor, pipeline, data. All have tensor, data, pipeline.
  bool sequence_apart = true;    // Tensor parallelism without sequence parallelism.
  bool sequence_parallel = true;
  bool experts = true;              // Expert parallelism.
  bool overlaps_gradients = false;  // An option switches it; so does one for parameters.
  bool overlaps_parameters = false;
};

// Sources: NVIDIA/Megatron-LM 002526d81, megatron/core/transformer/transformer_config.py
// (recompute_method block, recompute_modules, pipeline_model_parallel_layout) and
// megatron/training/arguments.py. Megatron's own data parallelism shards optimizer states only;
// more is sharded by Megatron-FSDP, which runs a step in another way. Versions before the layout
// option cut a model into equal stages only. The sources of other formats are in their files in
// this folder.
constexpr auto kFamilies = std::to_array<Abilities>({
    {.name = "megatron-lm-sc21",
     .format = "megatron",
     .highest_zero = 0,
     .uneven_stages = false,
     .parts = false},
    {.name = "megatron-lm-2022",
     .format = "megatron",
     .highest_zero = 1,
     .uneven_stages = false,
     .overlaps_gradients = true,
     .overlaps_parameters = true},
    {.name = "megatron-lm",
     .format = "megatron",
     .highest_zero = 1,
     .overlaps_gradients = true,
     .overlaps_parameters = true},
    {.name = "megatron-core",
     .format = "megatron",
     .highest_zero = 1,
     .overlaps_gradients = true,
     .overlaps_parameters = true},
    {.name = "megatron-bridge",
     .format = "megatron-bridge",
     .highest_zero = 1,
     .overlaps_gradients = true,
     .overlaps_parameters = true},
    {.name = "nemo",
     .format = "megatron",
     .highest_zero = 1,
     .overlaps_gradients = true,
     .overlaps_parameters = true},
    {.name = "torchtitan",
     .format = "torchtitan",
     .zero_1 = false,
     .interleaves_more = false,
     .uneven_stages = false,
     .parts = false,
     .recomputes_some = false,
     .other_rank_order = false,
     .sequence_apart = false},
    {.name = "deepspeed",
     .format = "deepspeed",
     .pipelines = false,
     .parts = false,
     .recomputes_some = false,
     .other_rank_order = false,
     .sequence_parallel = false,
     .experts = false,
     .overlaps_gradients = true},
    {.name = "pytorch-fsdp",
     .format = "accelerate",
     .lowest_zero = 2,
     .zero_1 = false,
     .pipelines = false,
     .parts = false,
     .recomputes_some = false,
     .other_rank_order = false,
     .sequence_parallel = false,
     .experts = false},
});

const Abilities* abilities_of(const Framework& framework) {
  const auto found = std::ranges::find_if(
      kFamilies, [&](const Abilities& one) { return framework.name.starts_with(one.name); });
  return found == kFamilies.end() ? nullptr : &*found;
}

// The axes that have several ranks, beginning with the axis whose ranks are nearest to each other.
std::vector<std::string_view> axes_that_matter(const Strategy& strategy,
                                               const std::vector<std::string>& order) {
  std::vector<std::string_view> axes;
  for (const std::string& axis : order) {
    const std::int64_t size = axis == "tensor"     ? strategy.tensor_parallel
                              : axis == "pipeline" ? strategy.pipeline_parallel
                                                   : strategy.copies();
    if (size > 1) axes.push_back(axis);
  }
  return axes;
}

bool can_order(const Abilities& can, const Strategy& strategy) {
  static const std::vector<std::string> other{"tensor", "pipeline", "data"};
  return has_usual_order(strategy) ||
         (can.other_rank_order &&
          axes_that_matter(strategy, strategy.rank_order) == axes_that_matter(strategy, other));
}

bool can_recompute(const Abilities& can, const Recomputation& how, bool some_layers) {
  if (how.how == Recompute::kNone) return true;
  if (how.how == Recompute::kFull) return !some_layers || can.recomputes_some;
  return !some_layers && can.parts && modules_of_parts(how.parts).has_value();
}

std::optional<Limitation> offload_limitation(const Abilities& can, const Strategy& strategy,
                                             const Model& model) {
  if (!strategy.offloads()) return std::nullopt;
  const bool cpu = strategy.offload_optimizer == OptimizerOffload::kCpu;
  if (can.format == "torchtitan" || can.format == "accelerate") {
    const bool all = strategy.zero_stage == 3 && strategy.offload_parameters && cpu &&
                     strategy.offload_activation_layers == 0;
    if (all) return std::nullopt;
    return Limitation{"offload_optimizer",
                      "it offloads parameters, gradients and optimizer states together"};
  }
  if (strategy.offload_optimizer == OptimizerOffload::kFetch)
    return Limitation{"offload_optimizer", "the step of offloaded states is the CPU's"};
  if (can.format == "deepspeed") {
    if (strategy.offload_activation_layers == 0) return std::nullopt;
    return Limitation{"offload_activation_layers", "the program does it, or does not"};
  }
  if (strategy.offload_parameters)
    return Limitation{"offload_parameters", "it has no option for it"};
  if (strategy.offload_activation_layers == 0) return std::nullopt;
  if (strategy.pipeline_parallel > 1 || strategy.recompute != Recompute::kNone ||
      strategy.offload_activation_layers >= model.layers)
    return Limitation{"offload_activation_layers",
                      "it is for one pipeline stage, without recomputation, and leaves one layer"};
  return std::nullopt;
}

bool has(std::span<const LayerPart> parts, LayerPart part) {
  return std::ranges::find(parts, part) != parts.end();
}

bool contains_all(std::span<const LayerPart> parts, std::span<const LayerPart> others) {
  return std::ranges::all_of(others, [&](LayerPart part) { return has(parts, part); });
}

}  // namespace

bool has_usual_order(const Strategy& strategy) {
  return axes_that_matter(strategy, strategy.rank_order) ==
         axes_that_matter(strategy, Strategy{}.rank_order);
}

std::string_view format_of(const Framework& framework) {
  const Abilities* can = abilities_of(framework);
  return can == nullptr ? std::string_view() : can->format;
}

bool can_recompute(const Framework& framework, const Recomputation& how, bool some_layers) {
  const Abilities* can = abilities_of(framework);
  return can == nullptr || can_recompute(*can, how, some_layers);
}

bool can_overlap(const Framework& framework, Overlap what) {
  const Abilities* can = abilities_of(framework);
  if (can == nullptr) return false;
  return what == Overlap::kGradients ? can->overlaps_gradients : can->overlaps_parameters;
}

std::optional<std::vector<std::vector<LayerPart>>> recompute_sets(const Framework& framework) {
  const Abilities* can = abilities_of(framework);
  if (can == nullptr) return std::nullopt;
  std::vector<std::vector<LayerPart>> sets;
  if (!can->parts) return sets;
  const auto modules = recompute_modules();
  for (std::size_t set = 1; set < std::size_t{1} << modules.size(); ++set) {
    std::vector<LayerPart> parts;
    for (std::size_t i = 0; i < modules.size(); ++i)
      if ((set >> i & 1) != 0)
        parts.insert(parts.end(), modules[i].parts.begin(), modules[i].parts.end());
    std::ranges::sort(parts);
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    if (std::ranges::find(sets, parts) == sets.end()) sets.push_back(std::move(parts));
  }
  return sets;
}

std::vector<Limitation> limitations_in(const Strategy& strategy, const Model& model) {
  std::vector<Limitation> all;
  const Abilities* can = abilities_of(*strategy.framework);
  if (can == nullptr) return all;
  if (strategy.zero_stage > can->highest_zero)
    all.push_back({"zero_stage", can->highest_zero == 0
                                     ? "its data parallelism shards nothing"
                                     : "its data parallelism shards optimizer states alone"});
  if (strategy.zero_stage < can->lowest_zero)
    all.push_back({"zero_stage", "it shards gradients at least (FSDP)"});
  if (strategy.zero_stage == 1 && !can->zero_1)
    all.push_back({"zero_stage", "it shards parameters and gradients, or nothing"});
  if (strategy.zero_stage < 2 && strategy.context_parallel > 1 && !can->zero_1)
    all.push_back({"zero_stage", "it shards over the ranks of a sequence"});
  if (strategy.zero_stage > 1 && !can->zero_1 && strategy.shards() == 1)
    all.push_back({"shard_replicas", "no shards are left"});
  if (strategy.pipeline_parallel > 1 && !can->pipelines)
    all.push_back({"pipeline_parallel", "its file has no pipelines"});
  constexpr std::int64_t kTwoChunks = 2;
  if (strategy.virtual_stages > kTwoChunks && !can->interleaves_more)
    all.push_back({"virtual_stages", "its file says two stages on each rank at most"});
  const bool usual = strategy.schedule == "1f1b" || strategy.schedule == "interleaved";
  if (!usual && strategy.pipeline_parallel > 1 &&
      !(can->format == "torchtitan" && strategy.schedule == "gpipe"))
    all.push_back({"schedule", "it has no option for it"});
  if (!strategy.layers_per_stage.empty() && strategy.stages() > 1 && !can->uneven_stages)
    all.push_back({"layers_per_stage", "its stages have equal numbers of layers"});
  if (strategy.tensor_parallel > 1) {
    if (strategy.sequence_parallel && !can->sequence_parallel)
      all.push_back({"sequence_parallel", "its tensor ranks do not split sequences"});
    if (!strategy.sequence_parallel && !can->sequence_apart)
      all.push_back({"sequence_parallel", "its tensor ranks always split sequences"});
  }
  if (strategy.context_parallel > 1 && can->format == "deepspeed" &&
      strategy.context_exchange != ContextExchange::kAllToAll)
    all.push_back({"context_exchange", "its ranks exchange tokens for heads (all-to-all)"});
  if (strategy.context_parallel > 1 &&
      (can->format == "torchtitan" || can->format == "accelerate") &&
      strategy.context_exchange != ContextExchange::kOverlappedAllGather &&
      strategy.context_exchange != ContextExchange::kRing)
    all.push_back({"context_exchange",
                   "keys are gathered beside attention (overlapped-all-gather), or go round"});
  if (!can->experts && (strategy.expert_parallel > 1 || strategy.expert_tensor_parallel > 0))
    all.push_back({"expert_parallel", "its file shares no experts"});
  if (can->format == "torchtitan" && strategy.expert_parallel == 1 &&
      strategy.expert_tensor_parallel > 0)
    all.push_back({"expert_tensor_parallel", "whole experts are for ranks that share them"});
  if (!can_order(*can, strategy))
    all.push_back({"rank_order", "its ranks lie by tensor, data, pipeline"});
  if (!can_recompute(*can, strategy.recomputation(), strategy.recompute_layers > 0))
    all.push_back({strategy.recompute_layers > 0 ? "recompute_layers" : "recompute_parts",
                   "it recomputes other modules, or whole layers"});
  if (!strategy.batch_shares.empty())
    all.push_back({"batch_shares", "its data-parallel ranks take as many micro-batches each"});
  if (const auto offload = offload_limitation(*can, strategy, model)) all.push_back(*offload);
  return all;
}

std::optional<Limitation> limitation_in(const Strategy& strategy, const Model& model) {
  const auto all = limitations_in(strategy, model);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::span<const RecomputeModule> recompute_modules() {
  static const std::vector<RecomputeModule> modules{
      {"core_attn", {LayerPart::kCoreAttention}},
      {"layernorm", {LayerPart::kNorm}},
      {"mlp", {LayerPart::kMlpUp, LayerPart::kActivation, LayerPart::kMlpDown}},
      {"moe",
       {LayerPart::kRouting, LayerPart::kExpertsUp, LayerPart::kExpertActivation,
        LayerPart::kExpertsDown}},
      {"moe_act", {LayerPart::kExpertActivation}},
      {"shared_experts", {LayerPart::kSharedExperts}},
  };
  return modules;
}

std::optional<std::vector<LayerPart>> parts_of_modules(std::span<const std::string> names) {
  std::vector<LayerPart> parts;
  for (const std::string& name : names) {
    const auto known = std::ranges::find(recompute_modules(), name, &RecomputeModule::name);
    if (known == recompute_modules().end()) return std::nullopt;
    for (const LayerPart part : known->parts)
      if (!has(parts, part)) parts.push_back(part);
  }
  std::ranges::sort(parts);
  return parts;
}

std::optional<std::vector<std::string>> modules_of_parts(std::span<const LayerPart> parts) {
  std::vector<const RecomputeModule*> chosen;
  for (const RecomputeModule& module : recompute_modules())
    if (contains_all(parts, module.parts)) chosen.push_back(&module);
  // Drops modules whose parts a larger chosen module has.
  std::erase_if(chosen, [&](const RecomputeModule* one) {
    return std::ranges::any_of(chosen, [&](const RecomputeModule* other) {
      return other->parts.size() > one->parts.size() && contains_all(other->parts, one->parts);
    });
  });
  std::vector<std::string> names;
  names.reserve(chosen.size());
  for (const RecomputeModule* module : chosen) names.emplace_back(module->name);
  const auto covered = parts_of_modules(names);
  if (names.empty() || !covered || !contains_all(*covered, parts)) return std::nullopt;
  return names;
}

}  // namespace foreshard::launch
