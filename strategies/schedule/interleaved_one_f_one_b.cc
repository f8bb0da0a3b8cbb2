#include <algorithm>
#include <string>

#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

// The n-th pass of one direction: p micro-batches through chunk 0, the same p through chunk 1, ...,
// then the next p micro-batches. Backward passes visit the chunks from the last to the first.
Slot nth(Direction direction, std::int32_t n, const PipelineShape& shape) {
  const std::int32_t group = n / (shape.stages * shape.chunks);
  const std::int32_t in_group = n % (shape.stages * shape.chunks);
  const std::int32_t turn = in_group / shape.stages;
  return {direction, direction == Direction::kForward ? turn : shape.chunks - 1 - turn,
          group * shape.stages + in_group % shape.stages};
}

}  // namespace

Result<Table> interleaved_one_f_one_b(const PipelineShape& shape) {
  if (shape.micro_batches % shape.stages != 0)
    return fault_of("interleaved",
                    "the number of micro-batches (" + std::to_string(shape.micro_batches) +
                        ") must be a multiple of the stages (" + std::to_string(shape.stages) +
                        "); change the global or the micro-batch size, or use 1f1b");
  const std::int32_t passes = shape.micro_batches * shape.chunks;
  return each_stage(shape, [&](std::int32_t stage, Passes& of_stage) {
    std::vector<Slot>& slots = of_stage.slots;
    const std::int32_t warm_up = std::min(
        2 * (shape.stages - 1 - stage) + (shape.chunks - 1) * shape.stages + (shape.pairs ? 1 : 0),
        passes);
    for (std::int32_t n = 0; n < warm_up; ++n) slots.push_back(nth(Direction::kForward, n, shape));
    for (std::int32_t n = 0; n < passes; ++n) {
      const bool forward = warm_up + n < passes;
      if (forward) slots.push_back(nth(Direction::kForward, warm_up + n, shape));
      slots.push_back(nth(Direction::kBackward, n, shape));
      if (forward && shape.pairs) of_stage.pair();
    }
  });
}

}  // namespace foreshard::schedule
