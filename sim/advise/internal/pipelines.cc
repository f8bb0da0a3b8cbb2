// Ideas about how a pipeline runs: micro-batches, schedules, cuts (ideas.h).
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/advise/internal/ideas.h"
#include "sim/search/cuts.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::advise {
namespace {

constexpr std::int64_t kMostChunks = 16;  // per stage; as a search tries at its usual level

// The numbers of chunks per stage that a schedule can have, where the pieces are equal.
std::vector<std::int64_t> chunks_of(const schedule::Schedule& schedule, std::int64_t stages,
                                    std::int64_t units) {
  std::vector<std::int64_t> chunks;
  const std::int64_t most = std::min<std::int64_t>(schedule.most_chunks, kMostChunks);
  for (std::int64_t count = schedule.fewest_chunks; count <= most; ++count)
    if (count == schedule.fewest_chunks || units % (stages * count) == 0) chunks.push_back(count);
  return chunks;
}

}  // namespace

// The next smaller and the next larger size over which a replica's part of the batch divides.
void propose_micro_batches(Proposals& proposals) {
  const Strategy& now = proposals.start().strategy();
  const std::int64_t share = now.global_batch / now.data_parallel;
  const auto propose = [&](std::int64_t step) {
    std::int64_t size = now.micro_batch + step;
    while (size > 0 && size <= share && share % size != 0) size += step;
    if (size > 0 && size <= share)
      proposals.strategy([&](Strategy& strategy) { strategy.micro_batch = size; });
  };
  propose(1);
  propose(-1);
}

void propose_schedules(Proposals& proposals) {
  const Start& start = proposals.start();
  const Strategy& now = start.strategy();
  if (now.pipeline_parallel == 1 || !now.schedule_file.empty()) return;
  for (const schedule::Schedule& schedule : schedule::schedules()) {
    if (schedule.name == schedule::kCustom) continue;
    for (const std::int64_t chunks : chunks_of(schedule, now.pipeline_parallel, start.units()))
      proposals.strategy([&](Strategy& strategy) {
        strategy.schedule = schedule.name;
        strategy.virtual_stages = chunks;
        strategy.schedule_actions.clear();
        if (!schedule.goes_by_times) strategy.pass_times.clear();
        if (schedule.pairs_up_to == 0) strategy.overlap_experts = false;
      });
  }
}

// Equal numbers of layers, one layer less at both ends, and the cuts that the times of layers
// suggest.
void propose_cuts(Proposals& proposals) {
  const Start& start = proposals.start();
  const Strategy& now = start.strategy();
  if (now.pipeline_parallel == 1) return;
  if (start.units() % now.stages() == 0)
    proposals.strategy([](Strategy& strategy) { strategy.layers_per_stage.clear(); });
  const auto cut_as = [&](std::vector<std::int64_t> layers) {
    if (layers != layers_of_stages(now, start.units()))
      proposals.strategy([&](Strategy& strategy) { strategy.layers_per_stage = layers; });
  };
  cut_as(even_split(start.units(), now.stages()));
  if (!start.study().graph) cut_as(uneven_split(start.units(), now.stages()));
  if (start.estimator() == nullptr) return;
  search::Cutter cutter(start.model(), *start.estimator());
  for (const Strategy& cut : cutter.with_cuts(now, start.study().pool.size()))
    if (!cut.layers_per_stage.empty()) cut_as(cut.layers_per_stage);
}

}  // namespace foreshard::advise
