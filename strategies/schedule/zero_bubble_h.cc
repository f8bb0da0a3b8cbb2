#include <algorithm>

#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

// 1F1B with `ahead` times its warm-up. On stage s, weight gradients follow `ahead` x s
// micro-batches later. This fills the wait of the first stages before their first backward pass,
// and of the last stages after their last.
Table handmade(const PipelineShape& shape, std::int32_t ahead) {
  const std::int32_t m = shape.micro_batches;
  return each_stage(shape, [&](std::int32_t stage, Passes& passes) {
    passes.forward(0, std::min(ahead * (shape.stages - 1 - stage), m));
    while (passes.backwards(0) < m) {
      if (passes.forwards(0) < m) passes.forward(0);
      passes.input(0);
      if (passes.backwards(0) > ahead * stage) passes.weight(0);
    }
    while (passes.weights(0) < m) passes.weight(0);
  });
}

}  // namespace

Result<Table> zb_h1(const PipelineShape& shape) {
  return handmade(shape, 1);
}

Result<Table> zb_h2(const PipelineShape& shape) {
  return handmade(shape, 2);
}

}  // namespace foreshard::schedule
