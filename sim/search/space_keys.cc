// The keys of a search's space.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/search/space.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::search {
namespace {

// What is wrong with the values of a list; empty if nothing is.
std::string fault_of(const SearchSpace& space, std::vector<std::int64_t> SearchSpace::*list) {
  const SizeLimits limits = limits_of(list);
  for (const std::int64_t value : space.*list)
    if (value < limits.least || value > limits.most)
      return fmt::format("{} is not between {} and {}", value, limits.least, limits.most);
  return {};
}

}  // namespace

std::span<const SpaceSize> sizes_of_space() {
  static constexpr std::array<SpaceSize, 10> kSizes{{
      {"tp", "tensor_parallel", &SearchSpace::tensor_parallel, &Strategy::tensor_parallel},
      {"pp", "pipeline_parallel", &SearchSpace::pipeline_parallel, &Strategy::pipeline_parallel},
      {"dp", "data_parallel", &SearchSpace::data_parallel, &Strategy::data_parallel},
      {"cp", "context_parallel", &SearchSpace::context_parallel, &Strategy::context_parallel},
      {"ep", "expert_parallel", &SearchSpace::expert_parallel, &Strategy::expert_parallel},
      {"etp", "expert_tensor_parallel", &SearchSpace::expert_tensor_parallel,
       &Strategy::expert_tensor_parallel},
      {"mb", "micro_batch", &SearchSpace::micro_batch, &Strategy::micro_batch},
      {"v", "virtual_stages", &SearchSpace::virtual_stages, &Strategy::virtual_stages},
      {"zero", "zero_stage", &SearchSpace::zero_stage, &Strategy::zero_stage},
      {"hsdp", "shard_replicas", &SearchSpace::shard_replicas, &Strategy::shard_replicas},
  }};
  return kSizes;
}

Status keep_value(SearchSpace& space, const Strategy& strategy, std::string_view key) {
  const auto fault = [&](std::string_view why) {
    return Error{Error::Code::kInvalidInput, fmt::format("strategy.{}: {}", key, why)};
  };
  bool is_free = true;
  const auto keep = [&](auto& values, const auto& value) {
    is_free = values.empty();
    values = {value};
  };
  const auto keep_one = [&](std::optional<bool>& named, bool value) {
    is_free = !named;
    named = value;
  };
  const auto size = std::ranges::find(sizes_of_space(), key, &SpaceSize::key);
  if (size != sizes_of_space().end()) {
    keep(space.*size->values, strategy.*size->value);
  } else if (key == "recompute") {
    keep(space.recompute, strategy.recompute);
  } else if (key == "schedule") {
    keep(space.schedule, strategy.schedule);
  } else if (key == "token_dispatcher") {
    keep(space.token_dispatcher, strategy.token_dispatcher);
  } else if (key == "rank_order") {
    keep(space.rank_order, strategy.rank_order);
  } else if (key == "sequence_parallel") {
    keep_one(space.sequence_parallel, strategy.sequence_parallel);
  } else if (key == "overlap_experts") {
    keep_one(space.overlap_experts, strategy.overlap_experts);
  } else if (key == "layers_per_stage") {
    is_free = space.layers_per_stage.empty();
    space.layers_per_stage = strategy.layers_per_stage;
  } else if (key == "recompute_parts" && space.recompute != std::vector{Recompute::kSelective}) {
    return fault("a search varies it; set strategy.recompute=selective too, which keeps it");
  } else if (key == "recompute_layers" || key == "batch_shares" || key == "schedule_actions" ||
             key == "schedule_file" || key == "pass_times" || key == "granularity") {
    return fault("a search decides it itself; leave it out, or simulate the strategy by itself");
  }
  if (!is_free) return fault("the space names other values of it; leave one of them out");
  return {};
}

SizeLimits limits_of(std::vector<std::int64_t> SearchSpace::*list) {
  if (list == &SearchSpace::zero_stage) return {.least = 0, .most = 3};
  SizeLimits limits;
  if (list == &SearchSpace::expert_tensor_parallel || list == &SearchSpace::layers_per_stage)
    limits.least = 0;
  return limits;
}

const yaml::Table<SearchSpace>& yaml_table(const SearchSpace*) {
  const auto sizes = [](std::vector<std::int64_t> SearchSpace::*list) {
    return [list](const SearchSpace& of) { return fault_of(of, list); };
  };
  static const auto table =
      yaml::Table<SearchSpace>("search", "Which strategies a search tries (default: all).")
          .optional(
              "level", &SearchSpace::level,
              "How much is tried: 0 (little) to 3 (everything: also all that can be recomputed "
              "of any number of layers).",
              yaml::between(0, 3))
          .optional("tensor_parallel", &SearchSpace::tensor_parallel,
                    "The sizes to try (default: all that divide).")
          .optional("pipeline_parallel", &SearchSpace::pipeline_parallel,
                    "The sizes to try (default: all that divide).")
          .optional("data_parallel", &SearchSpace::data_parallel,
                    "The sizes to try (default: the largest that there are devices for, and that "
                    "1, 2, 4, ... nodes have).")
          .optional("context_parallel", &SearchSpace::context_parallel,
                    "The sizes to try (default: powers of two that leave each rank 8,192 tokens).")
          .optional("expert_parallel", &SearchSpace::expert_parallel,
                    "The sizes to try (default: all that divide the experts).")
          .optional("expert_tensor_parallel", &SearchSpace::expert_tensor_parallel,
                    "The sizes to try (default: as tensor_parallel, and 1).")
          .optional("micro_batch", &SearchSpace::micro_batch, "The sizes to try.")
          .optional("virtual_stages", &SearchSpace::virtual_stages, "The counts to try.")
          .optional("zero_stage", &SearchSpace::zero_stage, "The stages to try.")
          .optional("recompute", &SearchSpace::recompute, "The kinds to try.")
          .optional("sequence_parallel", &SearchSpace::sequence_parallel,
                    "Always or never, where tensor_parallel > 1.")
          .optional("shard_replicas", &SearchSpace::shard_replicas,
                    "Sets of ZeRO shards to try (default: one, and with ZeRO 3 one for each node).")
          .optional("schedule", &SearchSpace::schedule,
                    "Pipeline schedules to try, where they have the chunks (default: 1f1b, "
                    "interleaved).")
          .optional("token_dispatcher", &SearchSpace::token_dispatcher,
                    "Where layers have experts: how tokens reach them (default: as the study).")
          .optional("overlap_experts", &SearchSpace::overlap_experts,
                    "Where the schedule pairs passes: always or never exchange tokens beside "
                    "others' passes (default: never, and as the study).")
          .optional("layers_per_stage", &SearchSpace::layers_per_stage,
                    "The layers of each piece, where pipelines have so many (default: as they "
                    "divide, and as their times suggest).")
          .optional("uneven", &SearchSpace::uneven,
                    "Whether stages may have unequal numbers of layers, from level 1 on, and "
                    "data-parallel ranks unequal shares of the batch where it does not divide "
                    "evenly or their devices have several speeds.")
          .optional("unequal_shares", &SearchSpace::unequal_shares,
                    "Whether uneven allows unequal shares of the batch, beside unequal stages.")
          .optional("rank_order", &SearchSpace::rank_order,
                    "Orders of the axes tensor, data and pipeline to try, the one that varies "
                    "fastest first.")
          .optional("idle", &SearchSpace::idle,
                    "Whether devices may be left over where the sizes do not divide.")
          .optional("any_framework", &SearchSpace::any_framework,
                    "Whether strategies are tried that the study's framework has no options for "
                    "(default: those that it can run, and what this file names).")
          .optional("offload", &SearchSpace::offload,
                    "Whether the fastest strategies that need too much memory are tried with the "
                    "least on their hosts that makes them fit (default: where nothing fits "
                    "without). The memory of hosts is not counted.")
          .check("tensor_parallel", sizes(&SearchSpace::tensor_parallel))
          .check("pipeline_parallel", sizes(&SearchSpace::pipeline_parallel))
          .check("data_parallel", sizes(&SearchSpace::data_parallel))
          .check("context_parallel", sizes(&SearchSpace::context_parallel))
          .check("expert_parallel", sizes(&SearchSpace::expert_parallel))
          .check("expert_tensor_parallel", sizes(&SearchSpace::expert_tensor_parallel))
          .check("micro_batch", sizes(&SearchSpace::micro_batch))
          .check("virtual_stages", sizes(&SearchSpace::virtual_stages))
          .check("zero_stage", sizes(&SearchSpace::zero_stage))
          .check("shard_replicas", sizes(&SearchSpace::shard_replicas))
          .check("layers_per_stage", sizes(&SearchSpace::layers_per_stage))
          .check("schedule",
                 [](const SearchSpace& of) -> std::string {
                   for (const std::string& name : of.schedule)
                     if (name == schedule::kCustom || schedule::find_schedule(name) == nullptr)
                       return fmt::format(
                           "'{}' cannot be searched; `foreshard catalog schedules` "
                           "lists the others",
                           name);
                   return {};
                 })
          .check("rank_order", [](const SearchSpace& of) -> std::string {
            for (std::vector<std::string> order : of.rank_order) {
              std::ranges::sort(order);
              if (order != std::vector<std::string>{"data", "pipeline", "tensor"})
                return "each order names each of tensor, data and pipeline once: [[tensor, data, "
                       "pipeline]]";
            }
            return {};
          });
  return table;
}

}  // namespace foreshard::search
