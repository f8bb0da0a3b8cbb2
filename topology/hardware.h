/// \file
/// The names and ids by which tools report devices, for importers, and the limits of the devices'
/// own links (configs/hardware/gpus.yaml):
///
///     const auto hardware = read_hardware(loader);
///     hardware->device_of_pci_id(0x2330)->device           // "H100-SXM"
///     hardware->device_of_name("NVIDIA H100 80GB HBM3")    // the same
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

namespace foreshard {

/// A kind of device.
struct HardwareDevice {
  std::string device;                      ///< Name in configs/devices/.
  std::vector<std::string> pci_ids;        ///< Device ids of its vendor, hexadecimal.
  std::vector<std::string> names;          ///< Driver names, without the vendor.
  std::int64_t nvlinks = 0;                ///< The most that one device can have (AMD: xGMI).
  std::optional<BytesPerSecond> nvlink{};  ///< One link, one direction, nominal.
  std::string source;

  /// Rate of all its NVLinks together, one direction. 0 without any.
  BytesPerSecond nvlink_bandwidth() const;
};

/// The rate between two sockets of a kind; empty or absent keys match any socket.
struct HardwareSocket {
  std::string arch;
  std::string vendor;
  std::optional<std::int64_t> family;
  std::optional<std::int64_t> model_from;
  BytesPerSecond bandwidth;
  std::string source;
};

/// Limits beyond which a cluster is implausible (plausibility.h).
struct HardwareLimits {
  yaml::Sourced<BytesPerSecond> fastest_port{};
  yaml::Sourced<BytesPerSecond> slowest_port{};
  yaml::Sourced<BytesPerSecond> slowest_link{};  ///< Any kind of link, payload rate.
  yaml::Sourced<std::int64_t> switch_ports{};
  yaml::Sourced<BytesPerSecond> switch_throughput{};  ///< Sum over its ports, one direction.
  yaml::Sourced<double> oversubscription{};
  /// Least share of a device's own PCIe rate that reaches its CPU.
  yaml::Sourced<double> pcie_uplink{};
  yaml::Sourced<double> degraded{};  ///< Smallest factor of what is degraded.
  yaml::Sourced<Seconds> latency{};  ///< Largest latency of one link.
  yaml::Sourced<Seconds> launch_time{};
};

struct Hardware {
  std::vector<HardwareDevice> devices;
  std::vector<HardwareSocket> sockets;
  HardwareLimits limits;

  /// \return null if none is known.
  const HardwareDevice* device_of_pci_id(std::int64_t id) const;
  /// The device with the longest name that occurs in `text`; only letters and digits count, in any
  /// case.
  const HardwareDevice* device_of_name(std::string_view text) const;
  /// The device with this name in configs/devices/; null if there is none.
  const HardwareDevice* find(std::string_view device) const;
  /// The first entry of `sockets` that fits the CPU; null if none does.
  const HardwareSocket* socket_of(std::string_view arch, std::string_view vendor,
                                  std::optional<std::int64_t> family,
                                  std::optional<std::int64_t> model) const;
};

const yaml::Table<HardwareDevice>& yaml_table(const HardwareDevice*);
const yaml::Table<HardwareSocket>& yaml_table(const HardwareSocket*);
const yaml::Table<HardwareLimits>& yaml_table(const HardwareLimits*);
const yaml::Table<Hardware>& yaml_table(const Hardware*);

/// configs/hardware/gpus.yaml of the loader's catalogue.
Result<Hardware> read_hardware(yaml::Loader& loader);

}  // namespace foreshard
