#include "sim/search/graph/internal/conversion_times.h"

#include <limits>
#include <utility>

#include "strategies/reshard/within_mesh.h"

namespace foreshard::search::internal {

ConversionTimes::ConversionTimes(const CostModel& cost, reshard::Placement placement,
                                 std::vector<MeshAxis> mesh)
    : cost_(cost), placement_(std::move(placement)), mesh_(mesh_from(std::move(mesh))) {}

Seconds ConversionTimes::operator()(const reshard::TensorSpec& tensor, const Attribute& from,
                                    const Attribute& to) {
  if (from == to) return {};
  const auto [place, is_new] = known_.try_emplace({tensor.dtype, tensor.shape, from, to});
  if (is_new) place->second = priced(tensor, from, to);
  return place->second;
}

Seconds ConversionTimes::priced(const reshard::TensorSpec& tensor, const Attribute& from,
                                const Attribute& to) {
  auto& own = tensors_[{tensor.dtype, tensor.shape}];
  if (own == nullptr) own = std::make_unique<Priced>(tensor, cost_, placement_);
  const auto on_links = [&](const reshard::Step& step) { return own->price.on_links(step); };
  Seconds sum;
  for (const reshard::MeshStep& step : reshard::fastest_within(tensor, from, to, mesh_, on_links)) {
    const auto time = on_links({.primitive = step.primitive,
                                .from = {mesh_, step.from},
                                .to = {mesh_, step.to},
                                .axes = step.axes});
    if (!time) return Seconds::from_base(std::numeric_limits<double>::infinity());
    sum += *time;
  }
  return sum;
}

}  // namespace foreshard::search::internal
