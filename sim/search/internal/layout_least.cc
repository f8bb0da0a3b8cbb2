// Lower bounds of the times of a layout's parts, from which the bounds of steps are made.
#include <utility>

#include "base/check.h"

#include "sim/search/internal/layout.h"

namespace foreshard::search {

using program::Block;

Result<LeastTime> Layout::least_of(const Symbol& symbol, const Stage* stage) {
  using Kind = Symbol::Kind;
  const auto place = static_cast<std::size_t>(symbol.other);
  const auto of = [&](const Block& block) { return chain_least(block, mesh_, times_); };
  if (symbol.kind == Kind::kReduce || symbol.kind == Kind::kReduceAll)
    return of(reduction(symbol, stage));
  if (symbol.kind == Kind::kGatherAll) return of(gathering(updated(stage->groups_, symbol.other)));
  FORESHARD_CHECK(symbol.kind == Kind::kGather);
  if (!states_.cuts_parameters)
    return of(gathering(updated(own_groups(symbol.block), symbol.other)));
  if (strategy_.framework->shards.gather_each) return LeastTime{};
  return of(
      gathering(cut(blocks().all()[static_cast<std::size_t>(symbol.block)]->parameters).at(place)));
}

// Times between the first ranks of the stages. Zero where devices differ, or where hashes choose
// paths: other ranks may then have faster transfers.
Result<const std::vector<Seconds>*> Layout::least_ways() {
  if (!least_ways_.empty()) return &least_ways_;
  const auto stages = static_cast<std::int32_t>(devices_of_stages_.size());
  std::vector<Seconds> ways(static_cast<std::size_t>(stages));
  const bool is_known =
      places_.kinds().size() == 1 && places_.cluster().routing() != Routing::kEcmpHash;
  const Bytes bytes = bytes_sent();
  for (std::int32_t stage = 1; stage < stages && is_known; ++stage) {
    Seconds way = ways[static_cast<std::size_t>(stage - 1)];
    for (const auto& [from, to] : {std::pair(stage - 1, stage), std::pair(stage, stage - 1)}) {
      const auto kind = static_cast<std::size_t>(transfer_kind(from, to));
      FORESHARD_ASSIGN(const auto time, times_.transfer(bytes, transfers_[kind].kind));
      way += time;
    }
    ways[static_cast<std::size_t>(stage)] = way;
  }
  least_ways_ = std::move(ways);
  return &least_ways_;
}

}  // namespace foreshard::search
