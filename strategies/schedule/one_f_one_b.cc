#include <algorithm>

#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {

Result<Table> one_f_one_b(const PipelineShape& shape) {
  return each_stage(shape, [&](std::int32_t stage, Passes& passes) {
    const std::int32_t ahead = shape.pairs ? 1 : 0;
    passes.forward(0, std::min(shape.stages - 1 - stage + ahead, shape.micro_batches));
    for (std::int32_t m = 0; m < shape.micro_batches; ++m) {
      const bool forward = passes.forwards(0) < shape.micro_batches;
      if (forward) passes.forward(0);
      passes.backward(0);
      if (forward && shape.pairs) passes.pair();
    }
  });
}

}  // namespace foreshard::schedule
