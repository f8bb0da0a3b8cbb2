// Faults of encoders, alone or before a decoder: ways of dividing them among ranks that are not
// supported.
#include <fmt/format.h>

#include "base/grouped.h"

#include "strategies/parallelism/internal/faults.h"

namespace foreshard {

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
