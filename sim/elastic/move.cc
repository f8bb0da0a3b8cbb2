// Plans and times the move of slices (move.h), for `foreshard reshard --from-strategy`, replan.cc
// and study_plans.cc. Slices that no device holds any more are listed as lost; it is the caller's
// to read them from a checkpoint.
#include "sim/elastic/move.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <utility>

#include "sim/simulate/cost.h"
#include "strategies/parallelism/parameters.h"

namespace foreshard::elastic {
namespace {

Bytes bytes_of(const PlacedTensor& tensor, std::int64_t elements) {
  return static_cast<double>(elements) * size_of(tensor.dtype);
}

}  // namespace

Result<PlannedMove> plan_move(const Model& model, const Side& from, const Side& to,
                              const std::vector<std::int32_t>& failed, const ClusterView& cluster) {
  conversion::Phase first{.tensors = parameters_of(model, from.strategy),
                          .device_of_rank = from.devices};
  const conversion::Phase second{.tensors = parameters_of(model, to.strategy),
                                 .device_of_rank = to.devices};
  conversion::Options how{.down = failed};
  for (const Device& device : cluster.devices()) how.node_of_device.push_back(device.node);
  FORESHARD_ASSIGN(auto plan, conversion::plan_conversion(first, second, how));
  PlannedMove move{.plan = std::move(plan), .lost = {}};
  std::map<std::string_view, const PlacedTensor*> tensors;
  if (!move.plan.lost.empty())
    for (const PlacedTensor& tensor : second.tensors) tensors[tensor.name] = &tensor;
  for (const conversion::LostRegion& loss : move.plan.lost)
    move.lost += bytes_of(*tensors.at(loss.tensor), loss.box.elements());
  return move;
}

Result<conversion::Explanation> explain_move(conversion::Conversion plan,
                                             const ClusterView& cluster,
                                             const comm::Parameters& communication) {
  const sim::SimulatedCost cost(cluster, communication);
  return conversion::explain(std::move(plan), cost, cluster);
}

Bytes checkpoint_size(const Model& model, const Strategy& strategy) {
  Bytes size;
  for (const PlacedTensor& tensor : parameters_of(model, strategy))
    size += bytes_of(tensor, whole_of(tensor.unpadded).elements());
  return size;
}

Status same_devices(const ClusterView& before, const ClusterView& after) {
  const auto both =
      static_cast<std::int32_t>(std::min(before.devices().size(), after.devices().size()));
  for (std::int32_t device = 0; device < both; ++device) {
    const std::string& old_type = before.type_of(DeviceId{device}).name;
    const std::string& new_type = after.type_of(DeviceId{device}).name;
    if (old_type != new_type)
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("device {} is {} in cluster {} and {} in {}, but devices with the same "
                      "number must be the same: describe both kinds in one cluster (groups), or "
                      "convert a checkpoint",
                      device, old_type, before.name(), new_type, after.name())};
  }
  return {};
}

}  // namespace foreshard::elastic
