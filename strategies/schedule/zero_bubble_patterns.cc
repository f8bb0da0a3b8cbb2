#include <algorithm>
#include <array>

#include "strategies/schedule/internal/fill.h"
#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

// The times at which stage s of p runs micro-batch 0, in units of passes through a chunk: forward
// through chunks 0 and 1, input gradients of chunks 1 and 0. Each further micro-batch follows six
// units later; a period has two forward passes and two of input gradients, and room for two of
// weight gradients.
using Pattern = std::array<std::int32_t, 4>;
constexpr std::int32_t kPeriod = 6;

Pattern half(std::int32_t p, std::int32_t s) {
  const std::int32_t gap = p % 2 == 0 ? 3 : 0;
  return {2 * s, 3 * p - s - 2, 3 * p + gap + 2 * s - 1, 6 * p + gap - s - 2};
}

Pattern min(std::int32_t p, std::int32_t s) {
  const std::int32_t gap = p % 3 == 0 ? 2 : 0;
  return {s, 2 * p - s - 1, 2 * p + gap + s, 4 * p + gap - s - 1};
}

struct TimedSlot {
  std::int32_t when = 0;
  Slot slot{};
};

std::vector<TimedSlot> repeated(const Pattern& pattern, std::int32_t micro_batches) {
  constexpr std::array kChunks{0, 1, 1, 0};
  std::vector<TimedSlot> passes;
  for (std::int32_t m = 0; m < micro_batches; ++m)
    for (std::size_t i = 0; i < pattern.size(); ++i)
      passes.push_back({pattern[i] + kPeriod * m,
                        i < 2 ? Slot{Direction::kForward, kChunks[i], m}
                              : Slot{Direction::kBackward, kChunks[i], m, PassPart::kInput}});
  std::ranges::sort(passes, {}, &TimedSlot::when);
  return passes;
}

// The most passes in flight on a stage that runs weight gradients whenever it is otherwise idle.
std::int32_t in_flight(const std::vector<TimedSlot>& passes) {
  std::int32_t now = 0;
  std::int32_t most = 0;
  std::int32_t pending = 0;
  std::int32_t time = 0;
  for (const TimedSlot& pass : passes) {
    const std::int32_t done = std::min(pass.when - time, pending);
    now -= done;
    pending -= done;
    time = pass.when + 1;
    if (pass.slot.direction == Direction::kForward)
      most = std::max(most, ++now);
    else
      ++pending;
  }
  return most;
}

Table patterned(const PipelineShape& shape, Pattern (*pattern)(std::int32_t, std::int32_t)) {
  std::int32_t most = 0;
  const Table passes = each_stage(shape, [&](std::int32_t stage, Passes& of_stage) {
    const auto timed = repeated(pattern(shape.stages, stage), shape.micro_batches);
    most = std::max(most, in_flight(timed));
    for (const TimedSlot& pass : timed) of_stage.slots.push_back(pass.slot);
  });
  return with_weight_gradients(passes, shape, StagePlacement::kV, most);
}

}  // namespace

Result<Table> v_half(const PipelineShape& shape) {
  return patterned(shape, half);
}

Result<Table> v_min(const PipelineShape& shape) {
  return patterned(shape, min);
}

}  // namespace foreshard::schedule
