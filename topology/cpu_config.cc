#include "topology/cpu_config.h"

namespace foreshard {
namespace {

/// Values beyond these limits are mistaken units, not machines.
constexpr BytesPerSecond kSlowest = 1_Mbit_s;
constexpr BytesPerSecond kFastest = 1000_TB_s;
constexpr Seconds kLongestLatency = 1_s;
constexpr double kLeastEfficiency = 0.01;

}  // namespace

const yaml::Table<CpuLinkConfig>& yaml_table(const CpuLinkConfig*) {
  using L = CpuLinkConfig;
  static const auto table =
      yaml::Table<L>("cpu_link", "What joins each GPU to its CPU beside PCIe: NVLink-C2C.")
          .required(
              "bandwidth", &L::bandwidth,
              "Nominal rate of one GPU's link in one direction: a quarter of what data sheets "
              "call the bandwidth of a superchip with two GPUs.",
              yaml::positive(), yaml::at_least(kSlowest), yaml::at_most(kFastest))
          .optional("efficiency", &L::efficiency,
                    "Payload rate of long copies, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("latency", &L::latency, "Latency of the link.", yaml::non_negative(),
                    yaml::at_most(kLongestLatency))
          .optional("gpus", &L::gpus, "GPUs that share one CPU.", yaml::at_least(1));
  return table;
}

const yaml::Table<CpuConfig>& yaml_table(const CpuConfig*) {
  using C = CpuConfig;
  static const auto table =
      yaml::Table<C>("cpu", "The CPUs, as offloading to them sees them.")
          .optional("memory_bandwidth", &C::memory_bandwidth,
                    "Nominal rate of the memory of one socket, reads and writes together. Without "
                    "it memory delays no copy, and nothing can be computed on the CPU.",
                    yaml::positive(), yaml::at_least(kSlowest), yaml::at_most(kFastest))
          .optional("memory_efficiency", &C::memory_efficiency,
                    "What long reads and writes reach, as a part of the nominal rate.",
                    yaml::at_least(kLeastEfficiency), yaml::at_most(1.0))
          .optional("link", &C::link,
                    "Of GPUs that have a link of their own to a CPU, beside PCIe.");
  return table;
}

}  // namespace foreshard
