#include <algorithm>
#include <string>

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

// The n-th pass of one direction: p micro-batches through chunk 0, the same p through chunk 1, ...,
// then the next p micro-batches. Backward passes visit the chunks from the last to the first.
Slot nth(Direction direction, std::int32_t n, const Shape& shape) {
  const std::int32_t group = n / (shape.stages * shape.chunks);
  const std::int32_t in_group = n % (shape.stages * shape.chunks);
  const std::int32_t turn = in_group / shape.stages;
  return {direction, direction == Direction::kForward ? turn : shape.chunks - 1 - turn,
          group * shape.stages + in_group % shape.stages};
}

std::string fault_in(const Shape& shape) {
  const auto text = [](std::int32_t n) { return std::to_string(n); };
  if (shape.chunks < 2)
    return "needs at least 2 chunks per stage, got " + text(shape.chunks) + "; use 1f1b for one";
  if (shape.stages < 2)
    return "needs at least 2 stages, got " + text(shape.stages) + "; use 1f1b for one";
  if (shape.micro_batches % shape.stages != 0)
    return "the number of micro-batches (" + text(shape.micro_batches) +
           ") must be a multiple of the stages (" + text(shape.stages) +
           "); change the global or the micro-batch size, or use 1f1b";
  return {};
}

}  // namespace

Result<std::vector<Slot>> interleaved_one_f_one_b_order(const Shape& shape) {
  if (const std::string fault = fault_in(shape); !fault.empty())
    return Error{Error::Code::kInvalidInput, "interleaved: " + fault};
  const std::int32_t passes = shape.micro_batches * shape.chunks;
  const std::int32_t warm_up =
      std::min(2 * (shape.stages - 1 - shape.stage) + (shape.chunks - 1) * shape.stages, passes);
  std::vector<Slot> slots;
  slots.reserve(2 * static_cast<std::size_t>(passes));
  for (std::int32_t n = 0; n < warm_up; ++n) slots.push_back(nth(Direction::kForward, n, shape));
  for (std::int32_t n = 0; n < passes; ++n) {
    if (warm_up + n < passes) slots.push_back(nth(Direction::kForward, warm_up + n, shape));
    slots.push_back(nth(Direction::kBackward, n, shape));
  }
  return slots;
}

}  // namespace foreshard::schedule
