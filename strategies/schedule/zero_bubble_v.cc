#include <algorithm>

#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

// The passes of one stage for at least 2p - 1 micro-batches, which fill the pipeline.
void full(const PipelineShape& shape, std::int32_t stage, std::int32_t micro_batches,
          Passes& passes) {
  const std::int32_t behind = shape.stages - stage;
  const auto both = [&](std::int32_t chunk) {
    passes.input(chunk);
    passes.weight(chunk);
  };
  // Warm-up: down to the end of the pipeline and back.
  passes.forward(0, 2 * behind - 1);
  for (std::int32_t i = 0; i < stage; ++i) {
    passes.forward(1);
    passes.forward(0);
  }
  for (std::int32_t i = 0; i < behind; ++i) {
    passes.forward(1);
    both(1);
  }
  while (passes.forwards(1) < passes.forwards(0) || passes.forwards(0) < micro_batches) {
    if (passes.forwards(0) < micro_batches) passes.forward(0);
    both(0);
    passes.forward(1);
    both(1);
  }
  // Input gradients come first, since earlier stages wait for them.
  for (std::int32_t i = 0; i < stage; ++i) {
    passes.input(0);
    passes.input(1);
  }
  for (std::int32_t i = 0; i < behind; ++i) both(0);
  for (const std::int32_t chunk : {1, 0})
    while (passes.weights(chunk) < micro_batches) passes.weight(chunk);
}

}  // namespace

Result<Table> zb_v(const PipelineShape& shape) {
  const std::int32_t micro_batches = std::max(2 * shape.stages - 1, shape.micro_batches);
  return each_stage(shape, [&](std::int32_t stage, Passes& passes) {
    full(shape, stage, micro_batches, passes);
    std::erase_if(passes.slots,
                  [&](const Slot& slot) { return slot.micro_batch >= shape.micro_batches; });
  });
}

}  // namespace foreshard::schedule
