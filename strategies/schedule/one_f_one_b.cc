#include <algorithm>
#include <string>

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {

Result<std::vector<Slot>> one_f_one_b_order(const Shape& shape) {
  if (shape.chunks != 1)
    return Error{Error::Code::kInvalidInput, "1f1b: has one chunk per stage, got " +
                                                 std::to_string(shape.chunks) +
                                                 "; use interleaved for more"};
  const std::int32_t warm_up = std::min(shape.stages - 1 - shape.stage, shape.micro_batches);
  std::vector<Slot> slots;
  slots.reserve(2 * static_cast<std::size_t>(shape.micro_batches));
  for (std::int32_t m = 0; m < warm_up; ++m) slots.push_back({Direction::kForward, 0, m});
  for (std::int32_t m = 0; m < shape.micro_batches; ++m) {
    if (warm_up + m < shape.micro_batches) slots.push_back({Direction::kForward, 0, warm_up + m});
    slots.push_back({Direction::kBackward, 0, m});
  }
  return slots;
}

}  // namespace foreshard::schedule
