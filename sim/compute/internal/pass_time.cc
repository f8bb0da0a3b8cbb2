#include "sim/compute/internal/pass_time.h"

#include <string>

namespace foreshard::compute {

OperatorTime pass_time(const Pass& pass, const DeviceType& device) {
  const PassEfficiency& efficiency = device.efficiency->passes;
  const auto own = efficiency.of.find(std::string(traffic_of(pass.kind).name));
  const double share = own == efficiency.of.end() ? *efficiency.streaming : *own->second;
  Bytes bytes = bytes_of(pass);
  if (pass.kind == PassKind::kQuantizeTranspose && reads_fp8_either_way(device))
    bytes -=
        static_cast<double>(pass.rows) * static_cast<double>(pass.columns) * size_of(DType::kFp8);
  return {.compute = flops_of(pass) / *device.vector_peak,
          .memory = bytes / (*device.memory_bandwidth * share),
          .floor = static_cast<double>(pass.launches) * *efficiency.floor};
}

}  // namespace foreshard::compute
