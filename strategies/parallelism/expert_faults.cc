#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/grouped.h"

#include "strategies/parallelism/internal/faults.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/schedule/actions.h"

namespace foreshard {

static void load_faults(const Strategy& strategy, const Model& model,
                        std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"expert_load", std::move(message), std::move(help)});
  };
  const ExpertLoad& load = strategy.expert_load;
  const std::int64_t layers = layers_with_experts(model);
  if (!load.is_balanced() && strategy.capacity_factor > 1)
    fault(fmt::format("with capacity_factor {:.6g} all experts have as many slots, whoever chooses "
                      "them",
                      strategy.capacity_factor),
          "leave out one of the two");
  if (load.layers.size() > 1 && std::ssize(load.layers) != layers)
    fault(fmt::format("shares are given of {} layers, and {} have experts", load.layers.size(),
                      layers),
          fmt::format("give {} lists, or one for all", layers));
  for (const auto& shares : load.layers) {
    if (std::ssize(shares) == model.experts) continue;
    fault(fmt::format("a list has {} shares, and a layer {} experts", shares.size(), model.experts),
          fmt::format("give {} shares in each list", model.experts));
    break;
  }
}

static void dispatcher_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  if (strategy.token_dispatcher == TokenDispatcher::kAllToAll) return;
  const std::string name(yaml::name_of(strategy.token_dispatcher));
  if (strategy.expert_parallel == 1)
    faults.push_back({"token_dispatcher", "without expert_parallel no tokens are exchanged",
                      "leave it out, or set expert_parallel"});
  else if (strategy.capacity_factor > 1)
    faults.push_back(
        {"token_dispatcher",
         fmt::format("'{}' sends the tokens that there are, and capacity_factor {:.6g} "
                     "pads them",
                     name, strategy.capacity_factor),
         "leave out one of the two"});
}

// Checks overlap_experts: exchanges overlap passes of other micro-batches only where the schedule
// pairs them.
static void overlap_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  if (!strategy.overlap_experts) return;
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"overlap_experts", std::move(message), std::move(help)});
  };
  const schedule::Schedule* known = schedule::find_schedule(strategy.schedule);
  if (known == nullptr) return;  // the study says so
  const bool has_pairs =
      known->name != schedule::kCustom || schedule::pairs(strategy.schedule_actions);
  if (strategy.expert_parallel == 1)
    fault("without expert_parallel no tokens are exchanged", "leave it out");
  else if (strategy.mode == Mode::kForward)
    fault("needs backward passes, and mode: forward has none", "leave it out");
  else if (strategy.pipeline_parallel > known->pairs_up_to)
    fault(fmt::format("schedule '{}' has no forward pass that can run beside a backward pass",
                      known->name),
          strategy.pipeline_parallel == 1 ? "set schedule: 1f1b"
                                          : "set schedule: interleaved or dualpipe-v");
  else if (!has_pairs)
    fault("no two actions of the schedule overlap",
          "write (0F1;3B0)OVERLAP_F_B for a forward and a backward pass side by side");
  else if (strategy.zero_stage == 3 && strategy.copies() > 1)
    fault("a layer's parameters that are gathered for one pass while another runs are not modelled",
          "set zero_stage: 2 or lower");
}

// A group of expert ranks, and the first group of the other axes that it straddles: neither size
// divides the other, so the group would begin within one axis group and end within another.
struct StraddlingGroup {
  std::int64_t group = 0;
  std::int64_t axes = 0;
};
static std::optional<StraddlingGroup> straddled(const Strategy& strategy) {
  const std::int64_t tensor = strategy.tensor_parallel;
  for (const std::int64_t group : {expert_tensor_ways(strategy), expert_ranks(strategy)})
    for (const std::int64_t axes :
         {tensor, tensor * strategy.context_heads, tensor * strategy.context_parallel})
      if (group % axes != 0 && axes % group != 0) return StraddlingGroup{group, axes};
  return std::nullopt;
}

// Checks the division of experts among the flattened tensor-, context- and data-parallel ranks.
static void division_faults(const Strategy& strategy, const Model& model,
                            std::vector<StrategyFault>& faults) {
  const std::int64_t ep = strategy.expert_parallel;
  const std::int64_t tp = strategy.tensor_parallel;
  const std::int64_t etp = expert_tensor_ways(strategy);
  const std::int64_t group = expert_ranks(strategy);
  const std::int64_t ranks = tp * strategy.shards();
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  if (etp < tp && !strategy.sequence_parallel)
    return fault("expert_tensor_parallel",
                 "tensor-parallel ranks that share no expert route tokens of their own, but "
                 "without sequence_parallel all have the same",
                 "set sequence_parallel: true");
  if (model.experts % ep != 0)
    return fault("expert_parallel",
                 fmt::format("{} experts cannot be shared {} ways", model.experts, ep),
                 fmt::format("use a divisor of {}", model.experts));
  const std::string of_set = strategy.shard_replicas > 1 ? " of a set of shards" : "";
  if (ranks % group != 0)
    return fault(
        "expert_parallel",
        fmt::format("tensor {} x context {} x data {} = {} ranks{} do not divide into "
                    "groups of {}{} that hold all experts",
                    tp, strategy.context_parallel, strategy.data_parallel / strategy.shard_replicas,
                    ranks, of_set, etp > 1 ? fmt::format("{} x {} = ", ep, etp) : "", group),
        fmt::format("set data_parallel so that the ranks are a multiple of {}, or "
                    "expert_parallel lower",
                    group));
  if (const auto found = straddled(strategy))
    fault(found->group == etp ? "expert_tensor_parallel" : "expert_parallel",
          fmt::format("groups of {} ranks that {} straddle groups of {} tensor- and "
                      "context-parallel ranks, which is not modelled",
                      found->group, found->group == etp ? "share an expert" : "hold all experts",
                      found->axes),
          fmt::format("let one of {} and {} divide the other", found->group, found->axes));
}

void expert_faults(const Strategy& strategy, const Model& model,
                   std::vector<StrategyFault>& faults) {
  const std::int64_t ep = strategy.expert_parallel;
  const std::int64_t tp = strategy.tensor_parallel;
  const std::int64_t etp = strategy.expert_tensor_parallel;
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  if (model.experts == 0) {
    for (const auto& [key, is_set] :
         {std::pair("expert_parallel", ep > 1), std::pair("expert_tensor_parallel", etp > 0),
          std::pair("capacity_factor", strategy.capacity_factor > 1),
          std::pair("expert_load", !strategy.expert_load.is_balanced()),
          std::pair("token_dispatcher", strategy.token_dispatcher != TokenDispatcher::kAllToAll),
          std::pair("overlap_experts", strategy.overlap_experts)})
      if (is_set)
        fault(key, fmt::format("model '{}' has no experts", model.name),
              "leave it out, or give the model experts");
    return;
  }
  load_faults(strategy, model, faults);
  dispatcher_faults(strategy, faults);
  overlap_faults(strategy, faults);
  division_faults(strategy, model, faults);
  if (model.expert_width() % expert_tensor_ways(strategy) != 0)
    fault("expert_tensor_parallel",
          fmt::format("an expert's width {} cannot be split {} ways", grouped(model.expert_width()),
                      expert_tensor_ways(strategy)),
          "set expert_tensor_parallel: 1");
  if (model.shared_ffn % tp != 0)
    fault("tensor_parallel",
          fmt::format("the width {} of the shared experts cannot be split {} ways",
                      grouped(model.shared_ffn), tp),
          tensor_sizes(strategy, model));
  if (strategy.zero_stage == 3 && ep > 1 && strategy.framework->shards.gather_each)
    fault("expert_parallel",
          fmt::format("experts of their own, beside parameters that are gathered one by one, are "
                      "not modelled (framework '{}': gather_each)",
                      strategy.framework->name),
          "set expert_parallel: 1, or zero_stage: 2");
}

}  // namespace foreshard
