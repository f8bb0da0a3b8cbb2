#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {

Result<Table> gpipe(const PipelineShape& shape) {
  return each_stage(shape, [&](std::int32_t, Passes& passes) {
    passes.forward(0, shape.micro_batches);
    for (std::int32_t m = shape.micro_batches; m-- > 0;)
      passes.slots.push_back({Direction::kBackward, 0, m});
  });
}

}  // namespace foreshard::schedule
