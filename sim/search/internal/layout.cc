// Bytes and passes of the parts of a step, kept for all strategies with one layout (layout.h), for
// the Estimator and forms.cc. Times of all other actions are in layout_times.cc.
#include "sim/search/internal/layout.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::search {
namespace {

// block -> bytes of one of its units.
std::array<BlockBytes, kBlocks> bytes_of(const Strategy& strategy, const Model& model,
                                         const lower::LoweredModel& blocks) {
  const StateSharding states = state_sharding(strategy);
  const Bytes gradient = size_of(strategy.framework->gradients_of(strategy.precision));
  std::array<BlockBytes, kBlocks> result;
  const auto parts = blocks.all();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    BlockBytes& bytes = result.at(i) = bytes_of_passes(*parts[i]);
    if (states.cuts_parameters)
      for (const plan::ParameterGroup& group : plan::cut_groups(parts[i]->parameters, blocks.mesh))
        bytes.whole += lower::whole_parameters(strategy, group.elements, group.quantized);
    if (!states.cuts_gradients) continue;
    const auto own = lower::own_groups(strategy, model, blocks, i);
    for (std::size_t place = 0; place < own.size(); ++place)
      bytes.gradient.at(place) = gradient * static_cast<double>(own[place].trained());
  }
  return result;
}

// The distinct sets of axes along which the blocks' tasks communicate.
std::set<std::vector<Axis>> axes_of(const lower::LoweredModel& blocks) {
  std::set<std::vector<Axis>> axes;
  const auto add = [&](const lower::Pieces& pass) {
    for (const program::Task& task : lower::only_block(pass).tasks)
      if (const auto* what = std::get_if<program::Communication>(&task.body))
        if (const auto* group = std::get_if<program::AxisGroup>(&what->group))
          axes.insert(group->axes);
  };
  for (const lower::LoweredBlock* block : blocks.all()) {
    add(block->forward);
    add(block->backward);
    if (!block->split) continue;
    add(block->split->input);
    add(block->split->weight);
  }
  return axes;
}

}  // namespace

BlockBytes bytes_of_passes(const lower::LoweredBlock& block) {
  const auto has_tail = [](const lower::Pieces& pass) {
    const auto& tasks = lower::only_block(pass).tasks;
    return !tasks.empty() && tasks.back().stream != lower::stream(lower::kComputeStream);
  };
  BlockBytes bytes{.kept = block.saved};
  bytes.work = {block.transient_forward, block.transient_backward, {}, {}};
  bytes.has_tail = {has_tail(block.forward), has_tail(block.backward), false, false};
  if (!block.split) return bytes;
  bytes.held = block.split->kept_for_weight + block.split->held;
  bytes.work[2] = block.split->transient_input + block.split->held;
  bytes.work[3] = block.split->transient_weight;
  bytes.has_tail[2] = has_tail(block.split->input);
  bytes.has_tail[3] = has_tail(block.split->weight);
  return bytes;
}

BlockTimes by_block(const ModelTimes& times) {
  BlockTimes result{};
  for (std::size_t block = 0; block < times.size(); ++block) result.at(block) = &times[block];
  return result;
}

StrategyLayout::StrategyLayout(const Strategy& strategy, const Model& model, SplitBlocks& split,
                               RankDevices& places, CostCache& times)
    : strategy_(strategy),
      model_(model),
      split_(split),
      places_(places),
      times_(times),
      mesh_(mesh_of(strategy)),
      states_(state_sharding(strategy)),
      actions_(strategy_, states_, mesh_, lower::split_over(mesh_)),
      devices_of_stages_(places.of_stages(mesh_)),
      bytes_(bytes_of(strategy, model, blocks())) {
  std::set<std::int32_t> kinds;
  for (const std::int32_t devices : devices_of_stages_) {
    launch_ = std::max(launch_, launching(devices));
    kinds.insert(places.set(devices).begin(), places.set(devices).end());
  }
  kinds_.assign(kinds.begin(), kinds.end());
  find_like_blocks();
  tell_stages_apart();
  copies_ahead_ = strategy.offload_parameters && !gathers_use_host_links();
}

// Finds the blocks of layers that differ only in their recomputation.
void StrategyLayout::find_like_blocks() {
  const auto all = blocks().all();
  const std::size_t behind = 1 + split_.blocks.layers.size();
  for (std::size_t block = 0; block < all.size(); ++block) {
    first_like_[block] = block;
    for (std::size_t other = 1; other < block && block < behind; ++other) {
      if (all[other]->parameters != all[block]->parameters ||
          all[other]->parameter_sizes != all[block]->parameter_sizes ||
          all[other]->placeholders != all[block]->placeholders)
        continue;
      first_like_[block] = other;
      break;
    }
  }
}

// Gives stages different sets of device kinds where their groups communicate differently: groups of
// some stages may straddle nodes where others do not. Where all stages are alike, layouts with
// other groups can share forms of plans.
void StrategyLayout::tell_stages_apart() {
  const auto stages = static_cast<std::int32_t>(devices_of_stages_.size());
  if (stages == 1) return;
  std::vector<std::vector<std::int32_t>> met;
  std::vector<std::int32_t> ordinals;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    std::vector<std::int32_t> own;
    for (const auto& axes : axes_of(split_.blocks)) {
      const search::RankGroups groups(mesh_, axes);
      if (groups.stages().size == stages)
        own.push_back(times_.group_kinds(groups, strategy_.devices(), {}, stage));
    }
    const auto known = std::ranges::find(met, own);
    ordinals.push_back(static_cast<std::int32_t>(known - met.begin()));
    if (known == met.end()) met.push_back(std::move(own));
  }
  stages_differ_ = met.size() > 1;
  for (std::size_t stage = 0; stage < ordinals.size(); ++stage)
    devices_of_stages_[stage] = places_.variant(devices_of_stages_[stage], ordinals[stage]);
}

// The split's blocks on this mesh; their local shapes do not depend on the replicas and stages.
lower::LoweredModel& StrategyLayout::blocks() {
  split_.blocks.mesh = mesh_;
  // The batch is split over the replicas, so its extent is a micro-batch of every replica.
  split_.blocks.boundary_shape.front() = strategy_.micro_batch * strategy_.data_parallel;
  return split_.blocks;
}

std::int32_t StrategyLayout::transfer_kind(std::int32_t from, std::int32_t to) {
  const StridedAxis line = strided_axis(mesh_, axis_of(mesh_, "pipeline"));
  const std::int32_t kind = times_.transfer_kind(line, from, to);
  auto known = std::ranges::find(transfers_, kind, &Transfer::kind);
  if (known == transfers_.end()) known = transfers_.insert(known, {.kind = kind});
  for (const std::int32_t crowd : times_.concurrent_transfers(line, from, to, strategy_.devices()))
    if (std::ranges::find(known->concurrent, crowd) == known->concurrent.end())
      known->concurrent.push_back(crowd);
  return static_cast<std::int32_t>(known - transfers_.begin());
}

std::int32_t StrategyLayout::stage_with(std::int32_t devices) const {
  if (!stages_differ_) return kAnyStage;
  return static_cast<std::int32_t>(std::ranges::find(devices_of_stages_, devices) -
                                   devices_of_stages_.begin());
}

std::vector<std::int32_t> StrategyLayout::group_kinds(const std::vector<std::vector<Axis>>& axes,
                                                      std::int32_t devices) const {
  std::vector<std::int32_t> kinds;
  for (const std::vector<Axis>& one : axes) {
    const search::RankGroups of(mesh_, one);
    kinds.push_back(times_.group_kinds(of, strategy_.devices(), places_.set(devices),
                                       of.stages().size > 1 ? stage_with(devices) : kAnyStage));
  }
  return kinds;
}

Result<WorkTimes> StrategyLayout::work_times(const Works& works, std::int32_t devices) const {
  return search::work_times(works, mesh_, places_.set(devices), times_, stage_with(devices));
}

Result<const ModelTimes*> StrategyLayout::passes(std::int32_t devices) {
  if (const auto known = passes_.find(devices); known != passes_.end()) return known->second;
  const auto axes = axes_of(split_.blocks);
  std::pair key{group_kinds({axes.begin(), axes.end()}, devices), devices};
  auto known = split_.times.find(key);
  if (known == split_.times.end()) {
    FORESHARD_ASSIGN(auto times,
                     model_times(blocks(), places_.set(devices), times_, stage_with(devices)));
    known = split_.times.emplace(std::move(key), std::move(times)).first;
  }
  return passes_[devices] = &known->second;
}

StrategyLayout::Stage& StrategyLayout::stage(StageHolds holds, const Strategy& strategy,
                                             std::int64_t first) {
  for (std::size_t block = 0; block < kBlocks; ++block)
    if (const std::size_t other = first_like_[block]; other < block)
      holds.units[other] += std::exchange(holds.units[block], 0);
  for (Stage& known : stages_)
    if (known.holds_ == holds) return known;
  const lower::LoweredModel& all = blocks();
  Stage& stage = stages_.emplace_back();
  stage.holds_ = holds;
  for (const auto& one : lower::resident_memory(strategy, model_, all, first))
    stage.resident_ += one.bytes;
  stage.memory_ = memory_of(holds.devices, strategy);
  stage.groups_ = lower::groups_of_stage(strategy, model_, all, first);
  if (strategy.offload_optimizer != OptimizerOffload::kFetch) return stage;
  for (const program::Task& task : actions_.make(step_of(stage)).tasks)
    if (const auto* const room = std::get_if<program::Allocate>(&task.body);
        room != nullptr && room->kind == program::MemoryKind::kOptimizer)
      stage.at_step_ += room->bytes;
  return stage;
}

Bytes StrategyLayout::memory_of(std::int32_t devices, const Strategy& strategy) const {
  Bytes least = Bytes::from_base(std::numeric_limits<double>::infinity());
  for (const std::int32_t kind : places_.set(devices))
    least = std::min(least, places_.kinds()[static_cast<std::size_t>(kind)].memory);
  return least - reserve_of(strategy);
}

StrategyLayout::Room StrategyLayout::first_room(const Strategy& strategy) {
  Room room{.resident = {}, .memory = memory_of(devices_of_stages_.front(), strategy)};
  for (const auto& one : lower::resident_memory(strategy, model_, blocks(), 0))
    room.resident += one.bytes;
  return room;
}

Seconds pass_time_of(const TimedAction& action, const BlockTimes& times, const Framework& framework,
                     Seconds launch) {
  Seconds time;
  Seconds hosting;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::int64_t n = action.units[i];
    if (n == 0) continue;
    const PassTime& pass = times[i]->of(action.direction, action.part);
    if (action.beside)
      time += static_cast<double>(n) * pass.busy;
    else
      time += action.follows ? pass.next : pass.times(n);
    hosting += static_cast<double>(n) * pass.hosting(launch);
  }
  return framework.blocking_launches ? time + hosting : std::max(time, hosting);
}

}  // namespace foreshard::search
