#include "sim/compute/internal/pass_time.h"

#include <string>

namespace foreshard::compute {

OperatorTime pass_time(const Pass& pass, const DeviceType& device) {
  const PassEfficiency& efficiency = device.efficiency->passes;
  const auto own = efficiency.of.find(std::string(traffic_of(pass.kind).name));
  const double share = own == efficiency.of.end() ? *efficiency.streaming : *own->second;
  return {.compute = flops_of(pass) / *device.vector_peak,
          .memory = bytes_of(pass) / (*device.memory_bandwidth * share),
          .floor = *efficiency.floor};
}

}  // namespace foreshard::compute
