#include "strategies/parallelism/reserve.h"

namespace foreshard {

Bytes reserve_of(const Strategy& strategy) {
  const Framework& framework = *strategy.framework;
  Bytes reserve = framework.context;
  for (const std::int64_t ranks :
       {strategy.tensor_parallel, strategy.context_heads,
        strategy.context_parallel / strategy.context_heads, strategy.shards(),
        strategy.shard_replicas, strategy.pipeline_parallel})
    if (ranks > 1) reserve += framework.communicator;
  return reserve;
}

}  // namespace foreshard
