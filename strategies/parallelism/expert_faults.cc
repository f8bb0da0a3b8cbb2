#include <fmt/format.h>
#include <iterator>
#include <string>
#include <utility>

#include "base/grouped.h"

#include "strategies/parallelism/internal/faults.h"
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
  else if (strategy.expert_ways() == 1)
    faults.push_back({"token_dispatcher",
                      fmt::format("'{}' over tensor- or context-parallel ranks that hold other "
                                  "experts, and no data-parallel ones, is not modelled",
                                  name),
                      "leave it out, or let data-parallel ranks alone, or these too, share the "
                      "experts"});
  else if (strategy.capacity_factor > 1)
    faults.push_back(
        {"token_dispatcher",
         fmt::format("'{}' sends the tokens that there are, and capacity_factor {:.6g} "
                     "pads them",
                     name, strategy.capacity_factor),
         "leave out one of the two"});
}

// Exchanges run beside passes of other micro-batches, where the schedule pairs them.
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
  else if (strategy.expert_ways() == 1)
    fault(
        "an exchange over tensor- or context-parallel ranks that hold other experts, and no "
        "data-parallel ones, beside other passes, is not modelled",
        "leave it out, or let data-parallel ranks alone, or these too, share the experts");
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
  const std::int64_t data = strategy.data_parallel / strategy.shard_replicas;
  if (etp > 1 && etp != tp) {
    fault("expert_tensor_parallel",
          fmt::format("experts are whole (1) or split as all else is (tensor_parallel {}), not {} "
                      "ways",
                      tp, etp),
          fmt::format("set expert_tensor_parallel: 1 or {}", tp));
  } else if (strategy.experts_over_tensor() && ep % tp != 0) {
    fault("expert_parallel",
          fmt::format("whole experts are shared among tensor-parallel ranks first: {} ways are not "
                      "a multiple of tensor_parallel {}",
                      ep, tp),
          fmt::format("set expert_parallel: {}, or expert_tensor_parallel: {}",
                      (ep + tp - 1) / tp * tp, tp));
  } else if (strategy.experts_over_tensor() && !strategy.sequence_parallel) {
    fault("expert_tensor_parallel",
          "tensor-parallel ranks that hold other experts route tokens of their own, but without "
          "sequence_parallel all have the same",
          "set sequence_parallel: true");
  } else if (model.experts % ep != 0) {
    fault("expert_parallel", fmt::format("{} experts cannot be shared {} ways", model.experts, ep),
          fmt::format("use a divisor of {}", model.experts));
  } else if (ep % strategy.expert_ways_in_replica() != 0) {
    fault("expert_parallel",
          fmt::format("experts are shared among context-parallel ranks before data-parallel ones: "
                      "{} ways are not a multiple of {}",
                      ep, strategy.expert_ways_in_replica()),
          fmt::format(
              "set expert_parallel: {}, or context_parallel lower",
              (ep / strategy.expert_ways_in_replica() + 1) * strategy.expert_ways_in_replica()));
  } else if (data % strategy.expert_ways() != 0) {
    fault("expert_parallel",
          fmt::format("{} data-parallel ranks{} do not divide into {} that hold other experts",
                      data, strategy.shard_replicas > 1 ? " of a set of shards" : "",
                      strategy.expert_ways()),
          fmt::format("set data_parallel to a multiple of {}, or expert_parallel lower",
                      strategy.expert_ways()));
  }
  if (etp != 1 && model.expert_width() % tp != 0)
    fault("expert_tensor_parallel",
          fmt::format("an expert's width {} cannot be split {} ways", grouped(model.expert_width()),
                      tp),
          "set expert_tensor_parallel: 1");
  if (model.shared_ffn % tp != 0)
    fault("tensor_parallel",
          fmt::format("the width {} of the shared experts cannot be split {} ways",
                      grouped(model.shared_ffn), tp),
          tensor_sizes(strategy, model));
  if (strategy.zero_stage == 3 && strategy.expert_ways() > 1 &&
      strategy.framework->shards.gather_each)
    fault("expert_parallel",
          fmt::format("experts of their own, beside parameters that are gathered one by one, are "
                      "not modelled (framework '{}': gather_each)",
                      strategy.framework->name),
          "set expert_parallel: 1, or zero_stage: 2");
}

}  // namespace foreshard
