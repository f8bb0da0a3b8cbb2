#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {

Result<Table> breadth_first(const PipelineShape& shape) {
  return each_stage(shape, [&](std::int32_t, Passes& passes) {
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk)
      passes.forward(chunk, shape.micro_batches);
    for (std::int32_t chunk = shape.chunks; chunk-- > 0;)
      for (std::int32_t m = 0; m < shape.micro_batches; ++m) passes.backward(chunk);
  });
}

}  // namespace foreshard::schedule
