#include <string>

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {

Result<std::vector<Slot>> gpipe_order(const Shape& shape) {
  if (shape.chunks != 1)
    return Error{Error::Code::kInvalidInput, "gpipe: has one chunk per stage, got " +
                                                 std::to_string(shape.chunks) +
                                                 "; use interleaved for more"};
  std::vector<Slot> slots;
  slots.reserve(2 * static_cast<std::size_t>(shape.micro_batches));
  for (std::int32_t m = 0; m < shape.micro_batches; ++m)
    slots.push_back({Direction::kForward, 0, m});
  for (std::int32_t m = shape.micro_batches; m-- > 0;)
    slots.push_back({Direction::kBackward, 0, m});
  return slots;
}

}  // namespace foreshard::schedule
