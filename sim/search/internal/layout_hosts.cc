// Times of copies between devices and hosts.
#include <algorithm>
#include <set>

#include "sim/search/internal/layout.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::search {

Result<Seconds> Layout::copy(program::CollectiveKind kind, Bytes bytes) {
  return times_.slower_end(kind, bytes, search::Groups(mesh_, {}), strategy_.devices());
}

Result<Seconds> Layout::gradient_copy(std::int64_t count, const std::vector<Axis>& over) {
  return copy(program::CollectiveKind::kToHost,
              size_of(DType::kFp32) * static_cast<double>(reduced_elements(count, over)));
}

// Time to copy from the host the shard that a rank holds of the parameters of a gather.
Result<Seconds> Layout::shards_from_host(const Symbol& symbol) {
  const lower::LoweredBlock& of = *blocks().all()[static_cast<std::size_t>(symbol.block)];
  const plan::ParameterGroup group = cut(of.parameters).at(static_cast<std::size_t>(symbol.other));
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
bool Layout::gathers_use_host_links() {
  std::set<std::vector<Axis>> gathered;
  for (const lower::LoweredBlock* const block : blocks().all())
    for (const plan::ParameterGroup& group : cut(block->parameters)) gathered.insert(group.over);
  for (const auto& over : gathered) {
    const search::Groups groups(mesh_, over);
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

}  // namespace foreshard::search
