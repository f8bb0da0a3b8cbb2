/// \file
/// The CPUs of a host, as far as offloading to them needs: the rate of their memory, and the link
/// between a GPU and its CPU where it is not PCIe:
///
///     cpu:
///       memory_bandwidth: 307.2 GB/s
///
/// Not modelled: where in host memory data lies (each GPU uses the memory of its nearest socket),
/// the size of that memory, and the rate that reads and writes cost each other.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard {

/// Chip to chip (NVLink-C2C): each GPU has its own link to the CPU that it shares with others.
struct CpuLinkConfig {
  yaml::Sourced<BytesPerSecond> bandwidth{};
  yaml::Sourced<double> efficiency{
      0.77,
      "nvbandwidth of a GH200 (NVIDIA/nvbandwidth, issue 23), host_to_device_memcpy_ce: 346 of 450 "
      "GB/s",
      yaml::Evidence::kTransferred};
  yaml::Sourced<Seconds> latency{0.3_us, "as a hop of NVLink", yaml::Evidence::kTransferred};
  std::int64_t gpus = 1;  ///< GPUs that share one CPU.
};

struct CpuConfig {
  std::optional<yaml::Sourced<BytesPerSecond>> memory_bandwidth{};
  yaml::Sourced<double> memory_efficiency{
      0.8, "assumed: about what STREAM leaves of the nominal rate of DDR4 and DDR5 servers",
      yaml::Evidence::kUser};
  std::optional<CpuLinkConfig> link{};
};

const yaml::Table<CpuLinkConfig>& yaml_table(const CpuLinkConfig*);
const yaml::Table<CpuConfig>& yaml_table(const CpuConfig*);

}  // namespace foreshard
