// What a layout copies to hosts and from them.
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

Block Layout::gathering(const plan::ParameterGroup& group) const {
  Attribute from = replicated(1);
  from.dims[0] = group.over;
  const std::int64_t count = lower::gathered_elements(strategy_, group.elements, group.quantized);
  return conversion(lower::padded(count, group.over, mesh_), strategy_.precision, from,
                    replicated(1));
}

// One after another on the slowest kind of device of any stage.
Seconds Layout::slowest(const std::vector<Pass>& passes) {
  Seconds slowest;
  for (const std::int32_t devices :
       std::set(devices_of_stages_.begin(), devices_of_stages_.end())) {
    Seconds time;
    for (const Pass& pass : passes) time += times_.kernel(pass, places_.set(devices)).slowest;
    slowest = std::max(slowest, time);
  }
  return slowest;
}

// Of a shard of so many parameters, where it lies in fp32.
Seconds Layout::cast_time(std::int64_t shard) {
  if (!states_.cuts_parameters ||
      lower::element_bytes(strategy_).parameter == size_of(strategy_.precision))
    return {};
  return slowest({{.kind = PassKind::kCast, .rows = shard, .dtype = strategy_.precision}});
}

// A unit's parameters, each by itself.
Result<Seconds> Layout::gathering_each(const lower::LoweredBlock& block,
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

// What a rank holds of the parameters that a gather makes whole.
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

// Whether some rank of the first group that gathers receives over a link over which its host sends.
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
      if (!sent || !copied) continue;  // who takes their time says why
      for (const RoutedLink& one : sent->links)
        if (std::ranges::find(copied->links, one.link, &RoutedLink::link) != copied->links.end())
          return true;
    }
  }
  return false;
}

}  // namespace foreshard::search
