// Times of copies between devices and hosts, and lower bounds of the times of a layout's parts,
// from which the bounds of steps are made.
#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

#include "sim/search/internal/layout.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::search {

Result<Seconds> StrategyLayout::copy(program::CollectiveKind kind, Bytes bytes) {
  return times_.slower_end(kind, bytes, search::RankGroups(mesh_, {}), strategy_.devices());
}

Result<Seconds> StrategyLayout::gradient_copy(std::int64_t count, const std::vector<Axis>& over) {
  return copy(program::CollectiveKind::kToHost,
              size_of(DType::kFp32) * static_cast<double>(reduced_elements(count, over)));
}

// Time to copy from the host the shard that a rank holds of the parameters of a gather.
Result<Seconds> StrategyLayout::shards_from_host(const TimedAction& action) {
  const lower::LoweredBlock& of = *blocks().all()[static_cast<std::size_t>(action.block)];
  const plan::ParameterGroup group = cut(of.parameters).at(static_cast<std::size_t>(action.other));
  const Bytes element = lower::element_bytes(strategy_).parameter;
  const std::int64_t held =
      element == size_of(strategy_.precision)
          ? lower::gathered_elements(strategy_, group.elements, group.quantized)
          : group.elements;
  return copy(program::CollectiveKind::kFromHost,
              element * static_cast<double>(shard_of(held, group)));
}

// Whether, in the first group of a gather, some rank receives over a link that its host also sends
// over.
bool StrategyLayout::gathers_use_host_links() {
  std::set<std::vector<Axis>> gathered;
  for (const lower::LoweredBlock* const block : blocks().all())
    for (const plan::ParameterGroup& group : cut(block->parameters)) gathered.insert(group.over);
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

using program::Block;

Result<LeastTime> StrategyLayout::least_of(const TimedAction& action, const Stage* stage) {
  using Kind = TimedAction::Kind;
  const auto place = static_cast<std::size_t>(action.other);
  const auto of = [&](const Block& block) { return chain_least(block, mesh_, times_); };
  if (action.kind == Kind::kReduce || action.kind == Kind::kReduceAll)
    return of(reduction(action, stage));
  if (action.kind == Kind::kGatherAll) return of(gathering(updated(stage->groups_, action.other)));
  FORESHARD_CHECK(action.kind == Kind::kGather);
  if (!states_.cuts_parameters)
    return of(gathering(updated(own_groups(action.block), action.other)));
  if (strategy_.framework->shards.gather_each) return LeastTime{};
  return of(
      gathering(cut(blocks().all()[static_cast<std::size_t>(action.block)]->parameters).at(place)));
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
