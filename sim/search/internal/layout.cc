// Times and bytes of the parts of a step, kept for all strategies with one layout (layout.h), for
// the Estimator and forms.cc. Copies to hosts and lower bounds of times are in layout_times.cc.
#include "sim/search/internal/layout.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/host_blocks.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::search {
namespace {

using program::Block;

// block -> bytes of one of its units.
std::array<BlockBytes, kBlocks> bytes_of(const Strategy& strategy, const Model& model,
                                         const lower::LoweredModel& blocks) {
  const StateSharding states = state_sharding(strategy);
  const Bytes gradient = size_of(strategy.framework->gradients_of(strategy.precision));
  std::array<BlockBytes, kBlocks> result;
  const auto parts = blocks.all();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const lower::LoweredBlock& of = *parts.at(i);
    const bool shared = lower::reads_copy_of_table(strategy, model, blocks, of);
    BlockBytes& bytes = result.at(i) = bytes_of_passes(of);
    const auto over = reduced_over(of.parameters);
    for (const plan::ParameterGroup& group : of.parameters) {
      const auto place = std::ranges::find(over, group.over) - over.begin();
      const bool is_cut = ways(cut_axes(blocks.mesh, group.over), blocks.mesh) > 1;
      if (states.cuts_parameters && is_cut)
        bytes.whole += lower::whole_parameters(strategy, group.elements, group.quantized);
      if (states.cuts_gradients)
        bytes.gradient.at(static_cast<std::size_t>(place)) +=
            gradient * static_cast<double>(group.trained());
    }
    if (shared && states.cuts_gradients && !model.freezes_embedding()) {
      const auto place = std::ranges::find(over, copy_axes(blocks.mesh)) - over.begin();
      bytes.gradient.at(static_cast<std::size_t>(place)) -=
          gradient * static_cast<double>(blocks.head.largest_parameter);
    }
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
      devices_of_stages_(places.of_stages(mesh_)),
      bytes_(bytes_of(strategy, model, blocks())) {
  for (const std::int32_t devices : devices_of_stages_)
    launch_ = std::max(launch_, launching(devices));
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
  if (strategy.offload_optimizer == OptimizerOffload::kFetch)
    stage.at_step_ =
        lower::element_bytes(strategy).optimizer * static_cast<double>(updated_elements(stage));
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

Result<Seconds> StrategyLayout::time_of(const TimedAction& action, Stage* stage) {
  const auto remembered = [&](auto& known, const auto& key) -> Result<Seconds> {
    for (const auto& [of, time] : known)
      if (of == key) return time;
    FORESHARD_ASSIGN(const auto time, computed_time(action, stage));
    known.emplace_back(key, time);
    return time;
  };
  const auto kind = static_cast<std::int32_t>(action.kind);
  if (stage == nullptr) {
    const std::array key{kind, static_cast<std::int32_t>(action.direction), action.block,
                         action.other};
    return remembered(known_, key);
  }
  const std::array key{kind, static_cast<std::int32_t>(action.direction), action.other};
  return remembered(stage->times_, key);
}

Result<Seconds> StrategyLayout::computed_time(const TimedAction& action, Stage* stage) {
  using Kind = TimedAction::Kind;
  const lower::LoweredModel& all = blocks();
  switch (action.kind) {
    case Kind::kPass:
      FORESHARD_CHECK(false && "pass_time_of");
    case Kind::kGather:
      return gathering(action);
    case Kind::kFromHost:
      return shards_from_host(action);
    case Kind::kReduce:
    case Kind::kReduceAll:
      return chain_time(reduction(action, stage), mesh_, times_);
    case Kind::kOffloadGradients:
    case Kind::kOffloadAllGradients: {
      const auto [count, over] = reduced(action, stage);
      return gradient_copy(count, over);
    }
    case Kind::kOffload:
    case Kind::kFetch:
      return copy(action.kind == Kind::kOffload ? program::CollectiveKind::kToHost
                                                : program::CollectiveKind::kFromHost,
                  bytes_[static_cast<std::size_t>(action.block)].kept);
    case Kind::kGatherAll:
      return chain_time(gathering(updated(stage->groups_, action.other)), mesh_, times_);
    case Kind::kCopies:
      return copies_time(stage->groups_, action.other);
    case Kind::kTie:
      return times_.ends(
          program::CollectiveKind::kAllReduce,
          size_of(gradient_dtype()) * static_cast<double>(all.head.largest_parameter),
          strided_axis(mesh_, axis_of(mesh_, "pipeline")), strategy_.devices());
    case Kind::kTransfer:
      return transfer_time(action.other);
    case Kind::kSync:
      return launch_;
    case Kind::kNorm:
      return norm_time();
    case Kind::kOptimizer:
      break;
  }
  return update_time(*stage);
}

DType StrategyLayout::gradient_dtype() const {
  return strategy_.framework->gradients_of(strategy_.precision);
}

// The communication that converts `count` elements from one attribute to another.
Block StrategyLayout::conversion(std::int64_t count, DType dtype, const Attribute& from,
                                 const Attribute& to) const {
  Block block;
  lower::append_reshard(block, "", {count}, dtype, from, to, mesh_,
                        lower::stream(lower::kDataStream), {});
  return block;
}

Block StrategyLayout::reduction(const TimedAction& action, const Stage* stage) {
  const auto [count, over] = reduced(action, stage);
  Block block;
  lower::append_reduction(block, "", count, over, mesh_, strategy_, {});
  return block;
}

// The gradients of `groups` that are reduced over the `place`-th set of axes of `of`.
StrategyLayout::Reduced StrategyLayout::reduced(const ParameterGroups& groups,
                                                const ParameterGroups& of, std::int32_t place) {
  Reduced result{.over = reduced_over(of).at(static_cast<std::size_t>(place))};
  for (const plan::ParameterGroup& group : groups)
    if (group.over == result.over) result.count += group.trained();
  return result;
}

StrategyLayout::Reduced StrategyLayout::reduced(const TimedAction& action, const Stage* stage) {
  if (stage != nullptr) return reduced(stage->groups_, stage->groups_, action.other);
  const auto& parameters = blocks().all()[static_cast<std::size_t>(action.block)]->parameters;
  return reduced(own_groups(action.block), parameters, action.other);
}

// The elements that a reduction leaves to one rank.
std::int64_t StrategyLayout::reduced_elements(std::int64_t count,
                                              const std::vector<Axis>& over) const {
  if (!states_.cuts_optimizer) return count;
  return shard_of(count, {.over = cut_axes(mesh_, over)});
}

Block StrategyLayout::gathering(const plan::ParameterGroup& group) const {
  Attribute from = replicated(1);
  from.dims[0] = group.over;
  const std::int64_t count = lower::gathered_elements(strategy_, group.elements, group.quantized);
  return conversion(lower::padded(count, group.over, mesh_), strategy_.precision, from,
                    replicated(1));
}

// The sum of these passes on the slowest kind of device of any stage.
Seconds StrategyLayout::slowest(const std::vector<Pass>& passes) {
  Seconds slowest;
  for (const std::int32_t devices :
       std::set(devices_of_stages_.begin(), devices_of_stages_.end())) {
    Seconds time;
    for (const Pass& pass : passes) time += times_.kernel(pass, places_.set(devices)).slowest;
    slowest = std::max(slowest, time);
  }
  return slowest;
}

// Time to cast a shard of parameters that is kept in fp32.
Seconds StrategyLayout::cast_time(std::int64_t shard) {
  if (!states_.cuts_parameters ||
      lower::element_bytes(strategy_).parameter == size_of(strategy_.precision))
    return {};
  return slowest({{.kind = PassKind::kCast, .rows = shard, .dtype = strategy_.precision}});
}

// Time to gather a unit's parameters one by one.
Result<Seconds> StrategyLayout::gathering_each(const lower::LoweredBlock& block,
                                               const std::vector<Axis>& over) {
  Seconds sum;
  for (const std::int64_t count : block.parameter_sizes) {
    if (count <= *strategy_.framework->shards.gather_each) continue;
    const std::int64_t quantized = block.quantized_in(count);
    FORESHARD_ASSIGN(
        const auto time,
        chain_time(gathering({.over = over, .elements = count, .quantized = quantized}), mesh_,
                   times_));
    sum += time + launch_;
  }
  return sum;
}

// The parameter groups of a block, without a table that it shares with an earlier block of its
// stage: the table counts there.
StrategyLayout::ParameterGroups StrategyLayout::own_groups(std::int32_t block) {
  const lower::LoweredModel& all = blocks();
  const lower::LoweredBlock& of = *all.all()[static_cast<std::size_t>(block)];
  ParameterGroups groups = of.parameters;
  if (lower::reads_copy_of_table(strategy_, model_, all, of))
    groups.push_back({.over = copy_axes(mesh_),
                      .elements = -all.head.largest_parameter,
                      .frozen = model_.freezes_embedding() ? -all.head.largest_parameter : 0});
  return groups;
}

// The groups that are sharded, as in plan::PlannedModel::cut_groups.
StrategyLayout::ParameterGroups StrategyLayout::cut(const ParameterGroups& groups) const {
  ParameterGroups found = plan::by_shards(groups, mesh_);
  std::erase_if(found, [](const plan::ParameterGroup& group) { return group.over.empty(); });
  return found;
}

plan::ParameterGroup StrategyLayout::updated(const ParameterGroups& groups,
                                             std::int32_t place) const {
  plan::ParameterGroup group = cut(groups).at(static_cast<std::size_t>(place));
  const ParameterGroups trained = plan::trained_alone({group});
  group.elements = trained.empty() ? 0 : trained.front().elements;
  group.quantized = trained.empty() ? 0 : trained.front().quantized;
  return group;
}

// Time to gather a unit's parameters: for one pass or, if ranks keep them whole, after their
// update.
Result<Seconds> StrategyLayout::gathering(const TimedAction& action) {
  const auto place = static_cast<std::size_t>(action.other);
  if (!states_.cuts_parameters)
    return chain_time(gathering(updated(own_groups(action.block), action.other)), mesh_, times_);
  const lower::LoweredBlock& of = *blocks().all()[static_cast<std::size_t>(action.block)];
  const plan::ParameterGroup group = cut(of.parameters).at(place);
  const bool each = strategy_.framework->shards.gather_each.has_value();
  FORESHARD_ASSIGN(auto time, each ? gathering_each(of, group.over)
                                   : chain_time(gathering(group), mesh_, times_));
  // A backward pass with full recomputation gathers twice: for the recomputation and for the
  // gradients.
  const bool twice =
      action.direction == Direction::kBackward && each && of.recompute == Recompute::kFull;
  const std::int64_t plain =
      group.elements - (strategy_.quantized_parameters ? group.quantized : 0);
  Seconds from_host;
  if (strategy_.offload_parameters && !copies_ahead_) {
    FORESHARD_ASSIGN(from_host, shards_from_host(action));
  }
  return from_host + (twice ? 2.0 : 1.0) * time + cast_time(shard_of(plain, group)) +
         slowest(lower::weight_casts(
             strategy_,
             lower::cast_at_gather(strategy_, group.quantized, shard_of(group.quantized, group))));
}

// The bytes of the residual stream that one rank sends to the next stage.
Bytes StrategyLayout::bytes_sent() {
  const lower::LoweredModel& all = blocks();
  double count = 1;
  for (const auto extent : local_shape(all.boundary_shape, all.boundary_sent, mesh_))
    count *= static_cast<double>(extent);
  return size_of(strategy_.precision) * count;
}

// Time to send the residual stream to another stage, in pieces where the framework does that.
Result<Seconds> StrategyLayout::transfer_time(std::int32_t kind) {
  const lower::LoweredModel& all = blocks();
  const Bytes bytes = bytes_sent();
  const Transfer& transfer = transfers_.at(static_cast<std::size_t>(kind));
  FORESHARD_ASSIGN(const auto time, times_.transfer(bytes, transfer.kind));
  FORESHARD_ASSIGN(const auto shared,
                   times_.sharing(program::CollectiveKind::kSend, bytes, transfer.concurrent));
  Block block;
  lower::append_reshard(block, "", all.boundary_shape, strategy_.precision, all.boundary_sent,
                        all.boundary, mesh_, lower::stream(lower::kTensorStream), {});
  FORESHARD_ASSIGN(const auto whole, chain_time(block, mesh_, times_));
  return time + shared + whole;
}

// Time to reduce the gradients of the `place`-th group of copies.
Result<Seconds> StrategyLayout::copies_time(const ParameterGroups& groups, std::int32_t place) {
  std::map<std::vector<Axis>, std::int64_t> partial;
  for (const auto& group : groups)
    if (!group.also_partial.empty()) partial[group.also_partial] += group.trained();
  FORESHARD_CHECK(place < std::ssize(partial));
  const auto& [axes, count] = *std::next(partial.begin(), place);
  Attribute from = replicated(1);
  from.partial = sums_over(axes);
  return chain_time(conversion(count, gradient_dtype(), from, replicated(1)), mesh_, times_);
}

// Time of the norm of all gradients, which the host reads.
Result<Seconds> StrategyLayout::norm_time() {
  const std::vector<Axis> shards = shard_axes(mesh_);
  const std::vector<Axis> splits = split_axes(mesh_);
  Seconds longest;
  for (Axis axis = 0; axis < static_cast<Axis>(mesh_.size()); ++axis) {
    const bool is_cut = std::ranges::find(shards, axis) != shards.end();
    const bool is_split = std::ranges::find(splits, axis) != splits.end();
    if (!is_split && !(is_cut && states_.cuts_optimizer)) continue;
    FORESHARD_ASSIGN(const auto norm,
                     times_.slower_end(program::CollectiveKind::kAllReduce, size_of(DType::kFp32),
                                       search::RankGroups(mesh_, {axis}), strategy_.devices()));
    longest = std::max(longest, norm);
  }
  return longest + launch_;
}

// Time of the optimizer's kernels, exchanges and copies between host and device.
Result<Seconds> StrategyLayout::update_time(Stage& stage) {
  const auto groups = plan::by_shards(stage.groups_, mesh_);
  Seconds exchanges;
  for (const UpdateStep& step : lower::update_steps(strategy_, mesh_, groups)) {
    const auto* exchange = std::get_if<UpdateExchange>(&step);
    if (exchange == nullptr) continue;
    Block block;
    lower::append_exchange(block, *exchange, mesh_, {});
    FORESHARD_ASSIGN(const auto once, chain_time(block, mesh_, times_));
    exchanges += static_cast<double>(exchange->times) * once;
  }
  Seconds with_host;
  if (strategy_.offload_optimizer == OptimizerOffload::kCpu) {
    std::int64_t copied = 0;
    for (const plan::ParameterGroup& group : stage.groups_)
      if (ways(group.over, mesh_) > 1) copied += reduced_elements(group.trained(), group.over);
    const std::int64_t count = updated_elements(stage);
    Block step;
    lower::append_cpu_step(step, strategy_, count, std::max<std::int64_t>(0, count - copied));
    FORESHARD_ASSIGN(with_host, chain_time(step, mesh_, times_));
  } else if (strategy_.offload_optimizer == OptimizerOffload::kFetch) {
    FORESHARD_ASSIGN(const auto from, copy(program::CollectiveKind::kFromHost, stage.at_step_));
    FORESHARD_ASSIGN(const auto to, copy(program::CollectiveKind::kToHost, stage.at_step_));
    with_host = from + to;
  }
  const Framework& framework = *strategy_.framework;
  const Seconds host = framework.gradient_clipping
                           ? framework.step_launches * launching(stage.holds_.devices)
                           : Seconds{};
  return optimizer_kernels(stage).slowest + exchanges + with_host + host;
}

// Parameters that the optimizer updates on one rank.
std::int64_t StrategyLayout::updated_elements(const Stage& stage) const {
  std::int64_t count = 0;
  for (const auto& group : plan::by_shards(stage.groups_, mesh_))
    count += states_.cuts_optimizer ? shard_of(group.trained(), group) : group.trained();
  return count;
}

const TimeRange& StrategyLayout::optimizer_kernels(Stage& stage) {
  if (stage.optimizer_) return *stage.optimizer_;
  const auto groups = plan::by_shards(stage.groups_, mesh_);
  const std::int64_t count = updated_elements(stage);
  std::int64_t cast = 0;
  for (const auto& group : groups) cast += lower::cast_at_step_end(strategy_, group, mesh_);
  TimeRange sum;
  const auto add = [&](const Kernel& kernel, double times) {
    const TimeRange one = times_.kernel(kernel, places_.set(stage.holds_.devices));
    sum.slowest += times * one.slowest;
    sum.fastest += times * one.fastest;
  };
  const bool on_cpu = strategy_.offload_optimizer == OptimizerOffload::kCpu;
  for (const UpdateStep& step : lower::update_steps(strategy_, mesh_, groups))
    if (const auto* one = std::get_if<UpdateKernel>(&step); one != nullptr && !on_cpu)
      add(one->kernel, static_cast<double>(one->times));
  for (const lower::GradientPass& one : lower::gradient_passes(strategy_, count)) add(one.pass, 1);
  for (const Pass& pass : lower::weight_casts(strategy_, cast)) add(pass, 1);
  return stage.optimizer_.emplace(sum);
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
