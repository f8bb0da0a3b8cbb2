#include "strategies/parallelism/pipeline.h"

#include "strategies/schedule/actions.h"
#include "strategies/schedule/schedules.h"

namespace foreshard {

Result<schedule::Table> table_of(const Strategy& strategy) {
  if (!strategy.granularity.empty())
    return schedule::granular_one_f_one_b(strategy.granularity,
                                          static_cast<std::int32_t>(strategy.micro_batches()));
  schedule::PipelineShape shape{
      .stages = static_cast<std::int32_t>(strategy.pipeline_parallel),
      .chunks = static_cast<std::int32_t>(strategy.virtual_stages),
      .micro_batches = static_cast<std::int32_t>(strategy.micro_batches()),
      .pairs = strategy.overlap_experts,
      .actions = strategy.schedule_actions};
  if (const auto& times = strategy.pass_times; times.size() > 2)
    shape.times = {times[0], times[1], times[2], times.size() > 3 ? times[3] : 0};
  return schedule::table_of(strategy.schedule, shape);
}

schedule::StagePlacement placement_of(const Strategy& strategy) {
  if (strategy.virtual_stages == 1) return schedule::StagePlacement::kWrap;
  if (strategy.schedule == schedule::kCustom)
    return schedule::placement_of(strategy.schedule_actions);
  const schedule::Schedule* known = schedule::find_schedule(strategy.schedule);
  return known == nullptr ? schedule::StagePlacement::kWrap : known->placement;
}

bool splits_backward(const Strategy& strategy) {
  if (strategy.mode == Mode::kForward) return false;
  if (strategy.schedule == schedule::kCustom) return schedule::splits(strategy.schedule_actions);
  const schedule::Schedule* known = schedule::find_schedule(strategy.schedule);
  return known != nullptr && known->splits;
}

namespace {

bool overlaps_transfers(const Strategy& strategy) {
  const PipelineTransfers habit = strategy.framework->pipeline_transfers;
  return habit == PipelineTransfers::kOverlapped ||
         (habit == PipelineTransfers::kOverlappedIfInterleaved && strategy.virtual_stages > 1);
}

}  // namespace

bool transfers_block(const Strategy& strategy) {
  if (overlaps_transfers(strategy)) return false;
  // A stage that waits until all parts of what it sent are read could deadlock.
  if (!strategy.granularity.empty()) return false;
  const schedule::Schedule* known = schedule::find_schedule(strategy.schedule);
  return known == nullptr || known->may_block;
}

bool hosts_wait_for_transfers(const Strategy& strategy) {
  return strategy.framework->pipeline_host_sync && !overlaps_transfers(strategy) &&
         strategy.granularity.empty() && !strategy.captures(Capture::kStep);
}

}  // namespace foreshard
