// Names of devices and links for the messages of this folder (names.h).
#include "sim/disturbance/internal/names.h"

#include <fmt/format.h>

namespace foreshard::disturbance::internal {

std::string name_of(const ClusterView& cluster, DeviceId device) {
  return cluster.vertices()[cluster.devices()[device.index()].vertex.index()].name;
}

std::string name_of(const ClusterView& cluster, LinkId link) {
  const Link& what = cluster.links()[link.index()];
  return cluster.vertices()[what.from.index()].name + " -> " +
         cluster.vertices()[what.to.index()].name;
}

std::string percent(double part) {
  return fmt::format("{:.4g} %", 100 * part);
}

}  // namespace foreshard::disturbance::internal
