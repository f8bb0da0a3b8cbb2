/// \file
/// How devices present themselves to the tools that importers read, and what their own links can do
/// at most (configs/hardware/gpus.yaml):
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

struct HardwareDevice {
  std::string device;                      ///< In configs/devices/.
  std::vector<std::string> pci_ids;        ///< Device ids of its vendor, hexadecimal.
  std::vector<std::string> names;          ///< As drivers call it, without the vendor.
  std::int64_t nvlinks = 0;                ///< The most that one device can have (AMD: xGMI).
  std::optional<BytesPerSecond> nvlink{};  ///< One link, one direction, nominal.
  std::string source;

  /// Of all its links. 0 without any.
  BytesPerSecond nvlink_bandwidth() const;
};

/// The rate between two sockets of a kind; empty or absent keys fit any.
struct HardwareSocket {
  std::string arch;
  std::string vendor;
  std::optional<std::int64_t> family;
  std::optional<std::int64_t> model_from;
  BytesPerSecond bandwidth;
  std::string source;
};

/// Beyond these a cluster is implausible (plausibility.h).
struct HardwareLimits {
  yaml::Sourced<BytesPerSecond> fastest_port{};
  yaml::Sourced<BytesPerSecond> slowest_port{};
  yaml::Sourced<BytesPerSecond> slowest_link{};  ///< Of any kind, payload.
  yaml::Sourced<std::int64_t> switch_ports{};
  yaml::Sourced<BytesPerSecond> switch_throughput{};  ///< Sum over its ports, one direction.
  yaml::Sourced<double> oversubscription{};
  yaml::Sourced<double> pcie_uplink{};  ///< Of a device's own PCIe link, the part that goes on.
  yaml::Sourced<double> degraded{};     ///< The smallest factor.
  yaml::Sourced<Seconds> latency{};     ///< Of one link.
  yaml::Sourced<Seconds> launch_time{};
};

struct Hardware {
  std::vector<HardwareDevice> devices;
  std::vector<HardwareSocket> sockets;
  HardwareLimits limits;

  /// \return null if none is known.
  const HardwareDevice* device_of_pci_id(std::int64_t id) const;
  /// The device whose longest name occurs in `text`; case, spaces and dashes do not count.
  const HardwareDevice* device_of_name(std::string_view text) const;
  const HardwareDevice* find(std::string_view device) const;
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
