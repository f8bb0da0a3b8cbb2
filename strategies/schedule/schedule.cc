#include "strategies/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <string>

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

constexpr std::array kSchedules{
    Schedule{"1f1b", "One forward, one backward in turn, with a flush (PipeDream-flush).",
             one_f_one_b_order},
    Schedule{"gpipe", "All micro-batches forward, then all backward.", gpipe_order},
    Schedule{"interleaved", "1F1B over several chunks per stage (Megatron-LM).",
             interleaved_one_f_one_b_order},
};

// Keeps counts of passes well within 32 bits.
constexpr std::int64_t kMaxPasses = std::int64_t{1} << 24;

std::string names() {
  std::string list;
  for (const Schedule& schedule : kSchedules)
    list += (list.empty() ? "" : ", ") + std::string(schedule.name);
  return list;
}

Error invalid(const std::string& why) {
  return {Error::Code::kInvalidInput, "schedule: " + why};
}

}  // namespace

std::span<const Schedule> schedules() {
  return kSchedules;
}

const Schedule* find_schedule(std::string_view name) {
  const auto found = std::find_if(kSchedules.begin(), kSchedules.end(),
                                  [&](const Schedule& schedule) { return schedule.name == name; });
  return found == kSchedules.end() ? nullptr : &*found;
}

Result<std::vector<Slot>> order(std::string_view name, const Shape& shape) {
  const Schedule* schedule = find_schedule(name);
  if (!schedule)
    return invalid("no schedule is called '" + std::string(name) + "'; there are " + names());
  if (shape.stages < 1)
    return invalid("needs at least 1 stage, got " + std::to_string(shape.stages));
  if (shape.stage < 0 || shape.stage >= shape.stages)
    return invalid("stage " + std::to_string(shape.stage) + " is not one of the " +
                   std::to_string(shape.stages) + " stages");
  if (shape.chunks < 1)
    return invalid("needs at least 1 chunk, got " + std::to_string(shape.chunks));
  if (shape.micro_batches < 1)
    return invalid("needs at least 1 micro-batch, got " + std::to_string(shape.micro_batches));
  if (std::int64_t{shape.micro_batches} * shape.chunks > kMaxPasses ||
      std::int64_t{shape.stages} * shape.chunks > kMaxPasses)
    return invalid("too many passes: the limit is " + std::to_string(kMaxPasses) +
                   " micro-batches x chunks, and stages x chunks");
  return schedule->order(shape);
}

}  // namespace foreshard::schedule
