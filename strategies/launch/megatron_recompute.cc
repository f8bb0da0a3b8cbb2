// What Megatron's options of recomputation mean together, read and written (internal/megatron.h),
// for megatron_family.cc. Counts are layers of a stage or chunk.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "base/text.h"

#include "strategies/launch/abilities.h"
#include "strategies/launch/internal/megatron.h"

// Source: NVIDIA/Megatron-LM 000c4ac24, megatron/training/arguments.py, and 002526d81,
// megatron/core/transformer/transformer_config.py (recompute_method, recompute_num_layers,
// recompute_modules) and transformer_block.py ("block": the first layers of each chunk).
namespace foreshard::launch::internal {
namespace {

// The layers of the longest chunk; 0 where the file does not say how many layers there are.
std::int64_t layers_of_longest_stage(const Draft& draft) {
  if (draft.has("strategy.layers_per_stage")) {
    std::int64_t most = 0;
    for (const std::string& word : draft.at("strategy.layers_per_stage").words) {
      std::int64_t layers = 0;
      std::from_chars(word.data(), word.data() + word.size(), layers);
      most = std::max(most, layers);
    }
    return most;
  }
  const std::int64_t stages =
      product({std::max<std::int64_t>(1, draft.count("strategy.pipeline_parallel")),
               std::max<std::int64_t>(1, draft.count("strategy.virtual_stages"))});
  return (draft.count("model.layers", 0) + stages - 1) / stages;
}

std::vector<std::string> names_of_modules() {
  std::vector<std::string> names;
  for (const RecomputeModule& module : recompute_modules()) names.emplace_back(module.name);
  return names;
}

}  // namespace

Status finish_megatron_recomputation(Draft& draft) {
  const std::string granularity = draft.word("note.granularity");
  const std::string from = draft.from("note.granularity");
  const std::string place = draft.place("note.granularity");
  const auto unsupported = [&](std::string_view key, std::string_view why) {
    return fault(draft.place(key), draft.from(key), why, "", Error::Code::kUnsupported);
  };
  if (granularity.empty() || granularity == "none") return {};
  if (granularity == "selective") {
    draft.set("strategy.recompute", "selective", from);
    if (!draft.has("note.recompute_modules")) return {};
    const auto parts = parts_of_modules(draft.at("note.recompute_modules").words);
    if (!parts)
      return unsupported("note.recompute_modules",
                         fmt::format("only {} are modelled", join(names_of_modules(), ", ")));
    if (*parts == usual_recompute_parts()) return {};
    Value value{.list = true, .from = draft.from("note.recompute_modules")};
    for (const LayerPart part : *parts) value.words.emplace_back(yaml::name_of(part));
    draft.set("strategy.recompute_parts", std::move(value));
    return {};
  }
  const std::string method = draft.word("note.method");
  const std::int64_t number = draft.count("note.recompute_layers");
  if (method.empty())
    return fault(place, from, "whole layers are recomputed by a method, which is not given",
                 "give the method uniform or block");
  if (method == "uniform" && number != 1)
    return unsupported("note.recompute_layers",
                       "units of several layers between kept inputs are not modelled");
  if (method == "block") {
    if (number < 1)
      return fault(draft.place("note.recompute_layers"), draft.from("note.recompute_layers"),
                   "at least one layer of a stage is recomputed", "leave recomputation out");
    const std::int64_t most = layers_of_longest_stage(draft);
    if (most < 1 || number < most)
      draft.set("strategy.recompute_layers", number, draft.from("note.recompute_layers"));
  }
  draft.set("strategy.recompute", "full", from);
  return {};
}

namespace {

// The modules of selective recomputation, unless they are core attention only.
void spread_parts(Draft& draft, const Strategy& strategy) {
  const std::string ours = "strategy.recompute_parts";
  if (strategy.recompute_layers > 0)
    draft.forbid("strategy.recompute_layers", "modules are recomputed in all layers");
  if (strategy.recompute_parts == usual_recompute_parts()) return;
  auto modules = modules_of_parts(strategy.recompute_parts);
  if (!modules)
    return draft.forbid(ours, "modules are recomputed: " + join(names_of_modules(), ", "));
  draft.set("note.recompute_modules",
            Value{.words = *std::move(modules), .list = true, .from = ours});
  draft.drop(ours);
}

}  // namespace

void spread_megatron_recomputation(Draft& draft, const Strategy& strategy) {
  const std::string ours = "strategy.recompute";
  if (strategy.recompute == Recompute::kSelective) {
    draft.set("note.granularity", "selective", ours);
    spread_parts(draft, strategy);
  } else if (strategy.recompute == Recompute::kFull) {
    const bool some = strategy.recompute_layers > 0;
    draft.set("note.granularity", "full", ours);
    draft.set("note.method", some ? "block" : "uniform", ours);
    draft.set("note.recompute_layers", std::to_string(some ? strategy.recompute_layers : 1), ours);
    draft.drop("strategy.recompute_layers");
  } else if (strategy.recompute != Recompute::kNone) {
    return;
  }
  draft.drop(ours);
}

}  // namespace foreshard::launch::internal
