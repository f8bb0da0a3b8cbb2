#include "topology/clock_spread.h"

#include <boost/math/distributions/normal.hpp>
#include <vector>

#include "base/check.h"

#include "topology/cluster_view.h"
#include "topology/internal/cluster_state.h"

namespace foreshard {

double deviations_of_slowest(std::int64_t devices) {
  FORESHARD_CHECK(devices >= 1);
  const auto n = static_cast<double>(devices);
  return boost::math::quantile(boost::math::normal(), (n - 0.375) / (n + 0.25));
}

DeviceType slowest_of(DeviceType type, std::int64_t devices) {
  const double left = 1 - *type.efficiency->clock_spread * deviations_of_slowest(devices);
  own_products(type);
  DeviceEfficiency efficiency = *type.efficiency;
  efficiency.gemm.sustained *= left;
  for (auto& [dtype, sustained] : efficiency.gemm.sustained_of) sustained *= left;
  efficiency.attention.sustained *= left;
  for (auto& [implementation, attention] : efficiency.attention_of) attention.sustained *= left;
  type.efficiency = yaml::Ref<DeviceEfficiency>{std::move(efficiency), type.efficiency.name};
  return type;
}

ClusterView ClusterView::at_clocks_of_slowest() && {
  std::vector<std::int64_t> members(state_->types.size());
  for (const Device& device : state_->devices) ++members[device.type.index()];
  for (std::size_t t = 0; t < members.size(); ++t)
    if (members[t] > 1) state_->types[t] = slowest_of(std::move(state_->types[t]), members[t]);
  return std::move(*this);
}

}  // namespace foreshard
