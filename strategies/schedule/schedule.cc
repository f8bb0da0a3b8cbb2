#include "strategies/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>

#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

constexpr std::array kSchedules{
    Schedule{.name = "1f1b",
             .summary = "One forward, one backward in turn, with a flush (PipeDream-flush).",
             .table = one_f_one_b,
             .pairs_up_to = 1,
             .may_block = true},
    Schedule{.name = "breadth-first",
             .summary = "All micro-batches through one of several chunks, then through the next.",
             .table = breadth_first,
             .fewest_chunks = 2,
             .most_chunks = kAnyNumber,
             .fewest_stages = 2},
    Schedule{.name = kCustom,
             .summary = "As schedule_actions or schedule_file say.",
             .table = custom,
             .most_chunks = kAnyNumber,
             .pairs_up_to = kAnyNumber},
    Schedule{.name = "dualpipe-v",
             .summary = "Forward through one of two chunks in a V, backward through the other.",
             .table = dualpipe_v,
             .fewest_chunks = 2,
             .most_chunks = 2,
             .fewest_stages = 2,
             .placement = StagePlacement::kV,
             .splits = true,
             .pairs_up_to = kAnyNumber},
    Schedule{.name = "gpipe",
             .summary = "All micro-batches forward, then all backward.",
             .table = gpipe,
             .may_block = true},
    Schedule{.name = "interleaved",
             .summary = "1F1B over several chunks per stage (Megatron-LM).",
             .table = interleaved_one_f_one_b,
             .fewest_chunks = 2,
             .most_chunks = kAnyNumber,
             .fewest_stages = 2,
             .pairs_up_to = kAnyNumber,
             .may_block = true},
    Schedule{.name = "v-half",
             .summary = "Two chunks in a V, half the activations of 1f1b.",
             .table = v_half,
             .fewest_chunks = 2,
             .most_chunks = 2,
             .fewest_stages = 2,
             .placement = StagePlacement::kV,
             .splits = true,
             .goes_by_times = true},
    Schedule{.name = "v-min",
             .summary = "Two chunks in a V, a third of the activations of 1f1b.",
             .table = v_min,
             .fewest_chunks = 2,
             .most_chunks = 2,
             .fewest_stages = 2,
             .placement = StagePlacement::kV,
             .splits = true,
             .goes_by_times = true},
    Schedule{.name = "zb-1p",
             .summary = "1F1B with weight gradients where stages would wait, its activations.",
             .table = zb_1p,
             .fewest_stages = 2,
             .splits = true,
             .goes_by_times = true},
    Schedule{.name = "zb-2p",
             .summary = "The same with more to warm up, and twice the activations.",
             .table = zb_2p,
             .fewest_stages = 2,
             .splits = true,
             .goes_by_times = true},
    Schedule{.name = "zb-h1",
             .summary = "1F1B with weight gradients apart, in a handmade order; its activations.",
             .table = zb_h1,
             .fewest_stages = 2,
             .splits = true},
    Schedule{.name = "zb-h2",
             .summary = "The same with more to warm up, and twice the activations.",
             .table = zb_h2,
             .fewest_stages = 2,
             .splits = true},
    Schedule{.name = "zb-v",
             .summary = "Two chunks in a V without bubbles, the activations of 1f1b.",
             .table = zb_v,
             .fewest_chunks = 2,
             .most_chunks = 2,
             .fewest_stages = 2,
             .placement = StagePlacement::kV,
             .splits = true},
};

// Limit that keeps counts of passes well within 32 bits.
constexpr std::int64_t kMaxPasses = std::int64_t{1} << 24;

std::string names() {
  std::string list;
  for (const Schedule& schedule : kSchedules)
    list += (list.empty() ? "" : ", ") + std::string(schedule.name);
  return list;
}

Error invalid(const std::string& why, std::string_view schedule = "schedule") {
  return {Error::Code::kInvalidInput, fmt::format("{}: {}", schedule, why)};
}

Status size_fault(const Schedule& of, const PipelineShape& shape) {
  if (shape.chunks > of.most_chunks)
    return invalid(
        of.most_chunks == 1
            ? fmt::format("has one chunk per stage, got {}; use interleaved for more", shape.chunks)
            : fmt::format("has {} chunks per stage, got {}; use interleaved for more",
                          of.most_chunks, shape.chunks),
        of.name);
  if (shape.chunks < of.fewest_chunks)
    return invalid(fmt::format("needs {}{} chunks per stage, got {}; use 1f1b for one",
                               of.most_chunks == of.fewest_chunks ? "" : "at least ",
                               of.fewest_chunks, shape.chunks),
                   of.name);
  if (shape.stages < of.fewest_stages)
    return invalid(fmt::format("needs at least {} stages, got {}; use 1f1b for one",
                               of.fewest_stages, shape.stages),
                   of.name);
  return {};
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

Result<Table> table_of(std::string_view name, const PipelineShape& shape) {
  const Schedule* schedule = find_schedule(name);
  if (!schedule)
    return invalid("no schedule is called '" + std::string(name) + "'; there are " + names());
  if (shape.stages < 1)
    return invalid("needs at least 1 stage, got " + std::to_string(shape.stages));
  if (shape.chunks < 1)
    return invalid("needs at least 1 chunk, got " + std::to_string(shape.chunks));
  if (shape.micro_batches < 1)
    return invalid("needs at least 1 micro-batch, got " + std::to_string(shape.micro_batches));
  if (std::int64_t{shape.micro_batches} * shape.chunks > kMaxPasses ||
      std::int64_t{shape.stages} * shape.chunks > kMaxPasses)
    return invalid("too many passes: the limit is " + std::to_string(kMaxPasses) +
                   " micro-batches x chunks, and stages x chunks");
  FORESHARD_TRY(size_fault(*schedule, shape));
  return schedule->table(shape);
}

}  // namespace foreshard::schedule
