// Faults of attention among ranks that share sequences: some kinds of attention allow only some
// exchanges.
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "base/grouped.h"

#include "strategies/parallelism/internal/faults.h"

namespace foreshard {

void context_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults) {
  const std::int64_t cp = strategy.context_parallel;
  const std::int64_t tp = strategy.tensor_parallel;
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  if (cp == 1) {
    for (const auto& [key, given] :
         {std::pair("context_exchange", strategy.context_exchange != ContextExchange::kAllGather),
          std::pair("context_heads", strategy.context_heads > 1)})
      if (given)
        fault(key, "without context_parallel each rank has whole sequences",
              "leave it out, or set context_parallel");
    return;
  }
  if (model.mamba) {
    fault("context_parallel",
          "Mamba layers of sequences that ranks share are not modelled: the state at the end of "
          "each part passes to the next",
          "set context_parallel: 1, and share the heads (tensor_parallel)");
    return;
  }
  const std::int64_t inner = strategy.context_heads;
  if (cp % inner != 0) {
    fault("context_heads",
          fmt::format("context_parallel {} does not divide into groups of {}", cp, inner),
          "use a divisor of context_parallel");
    return;
  }
  if (inner > 1 && (inner == cp || strategy.context_exchange == ContextExchange::kAllToAll)) {
    fault("context_heads", "all ranks of a sequence exchange tokens for heads",
          inner == cp ? "set context_exchange: all-to-all and leave it out"
                      : "leave it out, or set context_exchange: ring");
    return;
  }
  const std::int64_t cuts = cp * (strategy.sequence_parallel ? tp : 1);
  const std::int64_t parts = model.causal ? 2 * cp : cp;
  if (!model.image && (model.sequence % parts != 0 || model.sequence % cuts != 0))
    fault("context_parallel",
          fmt::format("a sequence of {} tokens cannot be cut into {}{} parts of equal attention{}",
                      grouped(model.sequence), model.causal ? "2 x " : "", cp,
                      strategy.sequence_parallel
                          ? fmt::format(" and shared by {} tensor-parallel ranks", tp)
                          : ""),
          fmt::format("set the sequence to a multiple of {}", std::lcm(parts, cuts)));
  const bool all = strategy.context_exchange == ContextExchange::kAllToAll;
  const std::int64_t exchange = all ? cp : inner;
  if ((all || inner > 1) && model.kv() % (tp * exchange) != 0)
    fault(all ? "context_parallel" : "context_heads",
          fmt::format("{} key/value heads cannot be exchanged among tensor_parallel {} x {} {} "
                      "ranks",
                      model.kv(), tp, all ? "context_parallel" : "context_heads", exchange),
          all ? "set context_exchange: all-gather, or context_parallel lower"
              : "set context_heads lower, or leave it out");
  if (!all && strategy.framework->attention == AttentionImplementation::kUnfused) {
    fault("context_exchange",
          fmt::format("attention without a fused kernel (framework '{}') needs whole sequences",
                      strategy.framework->name),
          "set context_exchange: all-to-all, or another framework");
  }
}

void attention_faults(const Strategy& strategy, const Model& model,
                      std::vector<StrategyFault>& faults) {
  const bool has_windows = model.window > 0;
  const std::string windows = "attention within a window";
  const std::string samples = "attention within packed samples";
  const std::string what = model.has_latents() ? "attention from latents (key_value_rank)"
                           : has_windows       ? windows
                           : model.sinks       ? "attention with sinks"
                           : model.encoder     ? "attention to an encoder"
                           : model.positions == Positions::kRelative
                               ? "attention with relative positions"
                           : model.has_packed_samples() ? samples
                                                        : "";
  if (what.empty()) return;
  if (strategy.framework->attention == AttentionImplementation::kUnfused) {
    faults.push_back({"framework",
                      fmt::format("{} without a fused kernel is not modelled (framework '{}')",
                                  what, strategy.framework->name),
                      "use another framework"});
    return;
  }
  const ContextExchange exchange = strategy.context_exchange;
  const bool ring = exchange == ContextExchange::kRing;
  const bool heads = exchange == ContextExchange::kAllToAll || strategy.context_heads > 1;
  const bool overlapped = exchange == ContextExchange::kOverlappedAllGather;
  if ((has_windows && (ring || overlapped)) || (model.has_packed_samples() && overlapped)) {
    faults.push_back({"context_exchange",
                      fmt::format("{} beside the exchange of other keys is not modelled",
                                  has_windows ? windows : samples),
                      "set context_exchange: all-gather"});
  } else if (model.sinks && ring) {
    faults.push_back({"context_exchange",
                      fmt::format("{} with keys in a ring is not modelled", what),
                      "set context_exchange: all-gather"});
  } else if ((model.has_latents() || model.sinks) && heads) {
    faults.push_back(
        {strategy.context_heads > 1 ? "context_heads" : "context_exchange",
         fmt::format("{} with heads exchanged is not modelled", what),
         strategy.context_heads > 1 ? "leave it out" : "set context_exchange: all-gather"});
  }
}

void encoder_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  const std::int64_t tp = strategy.tensor_parallel;
  if (model.encoder && strategy.pipeline_parallel > 1)
    fault("pipeline_parallel",
          "a pipeline over encoder and decoder is not modelled: both their streams would go from "
          "stage to stage",
          "set pipeline_parallel: 1, and share the layers by tensor_parallel or ZeRO 3");
  if (model.encoder && strategy.sequence_parallel && model.encoder->sequence % tp != 0)
    fault("sequence_parallel",
          fmt::format("the encoder's sequence of {} tokens cannot be split {} ways",
                      grouped(model.encoder->sequence), tp),
          "set sequence_parallel: false or another tensor_parallel");
  if (strategy.context_parallel == 1) return;
  const std::string what = model.encoder                       ? "an encoder before the decoder"
                           : model.image                       ? "images"
                           : model.pooler || model.classes > 0 ? "what is read of the first token"
                           : model.positions == Positions::kRelative ? "relative positions"
                                                                     : "";
  if (!what.empty())
    return fault("context_parallel",
                 fmt::format("parts of sequences on several ranks are not modelled for {}", what),
                 "set context_parallel: 1");
  const ContextExchange how = strategy.context_exchange;
  if (!model.causal && (how == ContextExchange::kRing || strategy.context_heads > 1 ||
                        how == ContextExchange::kOverlappedAllGather))
    fault(strategy.context_heads > 1 ? "context_heads" : "context_exchange",
          "attention without a causal mask beside the exchange of keys is not modelled",
          strategy.context_heads > 1 ? "leave it out" : "set context_exchange: all-gather");
}

}  // namespace foreshard
