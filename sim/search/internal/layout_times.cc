// Times of a layout's actions other than passes, from the tasks of the blocks that lowering makes
// for them, and lower bounds of these times.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

#include "sim/search/internal/layout.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {

bool is_ahead(plan::ActionKind kind, const program::Task& task) {
  if (kind == plan::ActionKind::kGather)
    return task.stream == lower::stream(lower::kFromHostStream);
  return kind == plan::ActionKind::kOptimizer &&
         (std::holds_alternative<program::Sync>(task.body) ||
          task.stream == lower::stream(lower::kTensorStream));
}

StrategyLayout::KnownTimes& StrategyLayout::known_of(const TimedAction& action, Stage* stage) {
  std::vector<KnownTimes>& known = stage == nullptr ? known_ : stage->known_;
  TimedAction of = action;
  of.role = -1;  // `stage` stands for it
  const auto it = std::ranges::find(known, of, &KnownTimes::action);
  return it != known.end() ? *it : known.emplace_back(KnownTimes{.action = of});
}

Result<Seconds> StrategyLayout::time_of(const TimedAction& action, Stage* stage) {
  if (const auto& known = known_of(action, stage).time) return *known;
  FORESHARD_ASSIGN(const Seconds time, computed_time(action, stage));
  return *(known_of(action, stage).time = time);
}

Result<LeastTime> StrategyLayout::least_of(const TimedAction& action, Stage* stage) {
  // Where parameters are gathered one by one, the host's waits between them are not bounded.
  if (action.kind == plan::ActionKind::kGather && states_.cuts_parameters &&
      strategy_.framework->shards.gather_each)
    return LeastTime{};
  if (const auto& known = known_of(action, stage).least) return *known;
  FORESHARD_ASSIGN(const LeastTime least, chain_least(actions_.make(subject_of(action, stage)),
                                                      lower::kDataStream, mesh_, times_));
  return *(known_of(action, stage).least = least);
}

lower::Subject StrategyLayout::subject_of(const TimedAction& action, const Stage* stage) {
  lower::Subject subject{.kind = action.kind, .direction = action.direction};
  if (action.block >= 0) subject.block = blocks().all()[static_cast<std::size_t>(action.block)];
  switch (target_of(action.kind)) {
    case plan::Target::kBucket:
      subject.bucket = bucket_of(action, stage);
      break;
    case plan::Target::kCopies:
      subject.copies = copies_of(action, stage);
      break;
    case plan::Target::kCrossing:
      if (boundaries_.empty())
        boundaries_ = lower::planned_blocks(blocks(), strategy_).boundaries.front();
      subject.boundaries = &boundaries_;
      break;
    case plan::Target::kRole:
      return step_of(*stage);
    case plan::Target::kUnits:
    case plan::Target::kNone:
      break;
  }
  return subject;
}

// The bucket of a unit or, with a stage, of all its units. What is gathered once in a step is what
// the optimizer has updated.
plan::Bucket StrategyLayout::bucket_of(const TimedAction& action, const Stage* stage) {
  const auto place = static_cast<std::size_t>(action.other);
  const auto block = static_cast<std::size_t>(action.block);
  const ParameterGroups own = stage != nullptr
                                  ? plan::by_axes(stage->groups_)
                                  : lower::own_groups(strategy_, model_, blocks(), block);
  if (action.kind != plan::ActionKind::kGather)
    return {.over = own.at(place).over, .elements = own.at(place).trained()};
  const bool whole = states_.cuts_parameters;
  const plan::ParameterGroup group =
      plan::cut_groups(whole ? blocks().all()[block]->parameters : own, mesh_).at(place);
  const ParameterGroups moved = whole ? ParameterGroups{group} : plan::trained_alone({group});
  if (moved.empty()) return {.over = group.over};
  return {
      .over = group.over, .elements = moved.front().elements, .quantized = moved.front().quantized};
}

plan::GradientCopies StrategyLayout::copies_of(const TimedAction& action, const Stage* stage) {
  if (stage == nullptr)  // a table of the first and the last stage
    return {.roles = {0, static_cast<std::int32_t>(devices_of_stages_.size()) - 1},
            .elements = blocks().head.largest_parameter};
  std::map<std::vector<Axis>, std::int64_t> partial;
  const auto all = blocks().all();
  for (std::size_t block = 0; block < all.size(); ++block)
    for (const plan::ParameterGroup& group : all[block]->parameters)
      if (const std::int64_t units = stage->holds_.units.at(block);
          units > 0 && !group.also_partial.empty())
        partial[group.also_partial] += units * group.elements;
  FORESHARD_CHECK(action.other < std::ssize(partial));
  const auto& [axes, count] = *std::next(partial.begin(), action.other);
  return {.roles = {0}, .axes = axes, .elements = count};
}

// The optimizer's step of a stage. Where the host takes it, gradients were copied there bucket by
// bucket.
lower::Subject StrategyLayout::step_of(const Stage& stage) const {
  lower::Subject step{.kind = plan::ActionKind::kOptimizer,
                      .parameters = plan::by_shards(stage.groups_, mesh_)};
  if (strategy_.offload_optimizer != OptimizerOffload::kCpu) return step;
  for (const plan::ParameterGroup& group : stage.groups_)
    if (ways(group.over, mesh_) > 1)
      step.copied += actions_.reduced_elements(group.trained(), group.over);
  return step;
}

// The tasks of an action's block, one after another, on the slowest kind of device.
Result<Seconds> StrategyLayout::computed_time(const TimedAction& action, const Stage* stage) {
  const bool is_ahead_alone = action.segment == Segment::kAhead;
  const Kinds& kinds = stage != nullptr ? places_.set(stage->holds_.devices) : kinds_;
  const Seconds launch = stage != nullptr ? launching(stage->holds_.devices) : launch_;
  Seconds sum;
  for (const program::Task& task : actions_.make(subject_of(action, stage)).tasks) {
    if (action.segment != Segment::kAll && is_ahead(action.kind, task) != is_ahead_alone) continue;
    sum += (task.launches - 1) * launch;  // the host's other work
    if (std::holds_alternative<program::Sync>(task.body)) sum += launch_;
    if (const auto* kernel = std::get_if<Kernel>(&task.body))
      sum += times_.kernel(*kernel, kinds).slowest;
    if (const auto* what = std::get_if<program::Communication>(&task.body)) {
      FORESHARD_ASSIGN(const Seconds time, time_of(*what, action));
      sum += time;
    }
  }
  return sum;
}

Result<Seconds> StrategyLayout::time_of(const program::Communication& what,
                                        const TimedAction& action) {
  const std::int64_t ranks = strategy_.devices();
  const auto* const group = std::get_if<program::AxisGroup>(&what.group);
  if (group == nullptr) {
    constexpr auto kSend = program::CollectiveKind::kSend;
    const Transfer& transfer = transfers_.at(static_cast<std::size_t>(action.other));
    FORESHARD_ASSIGN(const Seconds time, times_.transfer(what.bytes, transfer.kind));
    FORESHARD_ASSIGN(const Seconds shared, times_.sharing(kSend, what.bytes, transfer.concurrent));
    return time + shared;
  }
  if (!group->coordinates.empty())
    return times_.ends(what.kind, what.bytes, strided_axis(mesh_, group->axes.front()), ranks);
  return times_.slower_end(what.kind, what.bytes, RankGroups(mesh_, group->axes), ranks);
}

const TimeRange& StrategyLayout::optimizer_kernels(Stage& stage) {
  if (stage.optimizer_) return *stage.optimizer_;
  TimeRange sum;
  for (const program::Task& task : actions_.make(step_of(stage)).tasks) {
    const auto* const kernel = std::get_if<Kernel>(&task.body);
    if (kernel == nullptr) continue;
    const TimeRange one = times_.kernel(*kernel, places_.set(stage.holds_.devices));
    sum.slowest += one.slowest;
    sum.fastest += one.fastest;
  }
  return stage.optimizer_.emplace(sum);
}

// The bytes of the residual stream that one rank sends to the next stage.
Bytes StrategyLayout::bytes_sent() {
  const TimedAction transfer{.kind = plan::ActionKind::kReceive};
  const auto tasks = actions_.make(subject_of(transfer, nullptr)).tasks;
  return std::get<program::Communication>(tasks.front().body).bytes;
}

// Whether, in the first group of a gather, some rank receives over a link that its host also sends
// over.
bool StrategyLayout::gathers_use_host_links() {
  std::set<std::vector<Axis>> gathered;
  for (const lower::LoweredBlock* const block : blocks().all())
    for (const plan::ParameterGroup& group : plan::cut_groups(block->parameters, mesh_))
      gathered.insert(group.over);
  for (const auto& over : gathered) {
    const search::RankGroups groups(mesh_, over);
    for (std::int64_t i = 0; i < groups.size(); ++i) {
      const DeviceId to = places_.device(groups.rank(0, i));
      const DeviceId from = places_.device(groups.rank(0, (i + 1) % groups.size()));
      const auto sent = places_.cluster().route(from, to);
      const auto copied = places_.cluster().host_route(to, HostWay::kFromHost);
      if (!sent || !copied) continue;  // the function that needs their time reports it
      for (const RoutedLink& one : sent->links)
        if (std::ranges::find(copied->links, one.link, &RoutedLink::link) != copied->links.end())
          return true;
    }
  }
  return false;
}

// Times between the first ranks of the stages. Zero where devices differ, or where hashes choose
// paths: other ranks may then have faster transfers.
Result<const std::vector<Seconds>*> StrategyLayout::least_round_trips() {
  if (!least_round_trips_.empty()) return &least_round_trips_;
  const auto stages = static_cast<std::int32_t>(devices_of_stages_.size());
  std::vector<Seconds> round_trips(static_cast<std::size_t>(stages));
  const bool is_known =
      places_.kinds().size() == 1 && places_.cluster().routing() != Routing::kEcmpHash;
  const Bytes bytes = bytes_sent();
  for (std::int32_t stage = 1; stage < stages && is_known; ++stage) {
    Seconds round_trip = round_trips[static_cast<std::size_t>(stage - 1)];
    for (const auto& [from, to] : {std::pair(stage - 1, stage), std::pair(stage, stage - 1)}) {
      const auto kind = static_cast<std::size_t>(transfer_kind(from, to));
      FORESHARD_ASSIGN(const auto time, times_.transfer(bytes, transfers_[kind].kind));
      round_trip += time;
    }
    round_trips[static_cast<std::size_t>(stage)] = round_trip;
  }
  least_round_trips_ = std::move(round_trips);
  return &least_round_trips_;
}

}  // namespace foreshard::search
