#include "sim/compute/internal/pass_time.h"

#include <string>

namespace foreshard::compute {

namespace {

// Whether matrix units take fp8 operands in either layout: from Blackwell's data-centre devices on.
// Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/utils.py,
// is_non_tn_fp8_gemm_supported.
bool reads_either_layout(const DeviceType& device) {
  const std::int64_t capability = *device.compute_capability;
  return (capability >= 100 && capability < 120) || capability >= 130;
}

}  // namespace

OperatorTime pass_time(const Pass& pass, const DeviceType& device) {
  const PassEfficiency& efficiency = device.efficiency->passes;
  const auto own = efficiency.of.find(std::string(traffic_of(pass.kind).name));
  const double share = own == efficiency.of.end() ? *efficiency.streaming : *own->second;
  Bytes bytes = bytes_of(pass);
  if (pass.kind == PassKind::kQuantizeTranspose && reads_either_layout(device))
    bytes -=
        static_cast<double>(pass.rows) * static_cast<double>(pass.columns) * size_of(DType::kFp8);
  return {.compute = flops_of(pass) / *device.vector_peak,
          .memory = bytes / (*device.memory_bandwidth * share),
          .floor = *efficiency.floor};
}

}  // namespace foreshard::compute
