// The YAML tables of configs/hardware/gpus.yaml and its look-ups. Importers of discovered clusters
// (topology/import) and the plausibility checks of `foreshard topology check` read it. A table is
// found by the type of its argument, a pointer that is always null.
#include "topology/hardware.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace foreshard {
namespace {

std::optional<std::int64_t> hexadecimal(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The letters, in upper case, and the digits of the text.
std::string letters_and_digits(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

// A message about a PCI id that is not hexadecimal; empty if there is none.
std::string fault_in_ids(const Hardware& hardware) {
  for (const auto& device : hardware.devices)
    for (const auto& id : device.pci_ids)
      if (!hexadecimal(id)) return "PCI id '" + id + "' is not a hexadecimal number";
  return "";
}

}  // namespace

BytesPerSecond HardwareDevice::nvlink_bandwidth() const {
  return nvlink ? static_cast<double>(nvlinks) * *nvlink : BytesPerSecond();
}

const HardwareDevice* Hardware::device_of_pci_id(std::int64_t id) const {
  for (const auto& device : devices)
    for (const auto& known : device.pci_ids)
      if (hexadecimal(known) == id) return &device;
  return nullptr;
}

const HardwareDevice* Hardware::device_of_name(std::string_view text) const {
  const std::string searched = letters_and_digits(text);
  const HardwareDevice* best = nullptr;
  std::size_t longest = 0;
  for (const auto& device : devices)
    for (const auto& name : device.names) {
      const std::string known = letters_and_digits(name);
      if (known.size() <= longest || searched.find(known) == std::string::npos) continue;
      best = &device;
      longest = known.size();
    }
  return best;
}

const HardwareDevice* Hardware::find(std::string_view name) const {
  const auto found = std::ranges::find(devices, name, &HardwareDevice::device);
  return found == devices.end() ? nullptr : &*found;
}

const HardwareSocket* Hardware::socket_of(std::string_view arch, std::string_view vendor,
                                          std::optional<std::int64_t> family,
                                          std::optional<std::int64_t> model) const {
  const auto fits = [&](const HardwareSocket& socket) {
    return (socket.arch.empty() || socket.arch == arch) &&
           (socket.vendor.empty() || socket.vendor == vendor) &&
           (!socket.family || socket.family == family) &&
           (!socket.model_from || (model && *model >= *socket.model_from));
  };
  const auto found = std::ranges::find_if(sockets, fits);
  return found == sockets.end() ? nullptr : &*found;
}

const yaml::Table<HardwareDevice>& yaml_table(const HardwareDevice*) {
  using D = HardwareDevice;
  static const auto table =
      yaml::Table<D>("device",
                     "The ids and names by which systems report a kind of device, and the links "
                     "between such devices.")
          .required("device", &D::device, "Its name in configs/devices/.", yaml::non_empty())
          .optional("pci_ids", &D::pci_ids, "Its PCI device ids, hexadecimal.")
          .optional("names", &D::names, "Names that drivers give it, without the vendor.",
                    yaml::non_empty())
          .optional("nvlinks", &D::nvlinks,
                    "Largest number of NVLinks (AMD: xGMI links) of one device.",
                    yaml::between(0, 256))
          .optional("nvlink", &D::nvlink,
                    "Nominal rate of one NVLink (AMD: xGMI link) in one direction.",
                    yaml::positive())
          .required("source", &D::source, "Where this is published.", yaml::non_empty());
  return table;
}

const yaml::Table<HardwareSocket>& yaml_table(const HardwareSocket*) {
  using S = HardwareSocket;
  static const auto table =
      yaml::Table<S>("socket",
                     "The rate between two CPU sockets; a key that is left out fits any CPU.")
          .optional("arch", &S::arch, "CPU architecture, as in NCCL's topology files.")
          .optional("vendor", &S::vendor, "Vendor, as the CPU reports it.")
          .optional("family", &S::family, "CPU family.")
          .optional("model_from", &S::model_from,
                    "Lowest CPU model number that this applies to; it applies to all higher ones.")
          .required("bandwidth", &S::bandwidth, "Payload rate of one direction.", yaml::positive())
          .required("source", &S::source, "Where this is published.", yaml::non_empty());
  return table;
}

const yaml::Table<HardwareLimits>& yaml_table(const HardwareLimits*) {
  using L = HardwareLimits;
  static const auto table =
      yaml::Table<L>(
          "limits",
          "Limits of plausible values; a cluster with values outside them is implausible.")
          .required("fastest_port", &L::fastest_port, "Fastest port of a NIC.", yaml::positive())
          .required("slowest_port", &L::slowest_port, "Slowest port of a NIC.", yaml::positive())
          .required("slowest_link", &L::slowest_link, "Slowest link of any kind.", yaml::positive())
          .required("switch_ports", &L::switch_ports, "Largest number of ports of one switch.",
                    yaml::at_least(1))
          .required("switch_throughput", &L::switch_throughput,
                    "Largest throughput of one switch: the sum over its ports, in one direction.",
                    yaml::positive())
          .required("oversubscription", &L::oversubscription,
                    "Largest oversubscription of one level.", yaml::positive())
          .required("pcie_uplink", &L::pcie_uplink,
                    "Smallest fraction of a device's PCIe rate that its path to the CPU carries.",
                    yaml::positive(), yaml::at_most(1))
          .required("degraded", &L::degraded,
                    "Smallest factor of a degraded device's or link's speed.", yaml::positive())
          .required("latency", &L::latency, "Largest latency of one link.", yaml::positive())
          .required("launch_time", &L::launch_time, "Longest time to launch a kernel.",
                    yaml::positive());
  return table;
}

const yaml::Table<Hardware>& yaml_table(const Hardware*) {
  static const auto table =
      yaml::Table<Hardware>("hardware", "What importers and plausibility checks know of machines.")
          .folder("hardware")
          .required("devices", &Hardware::devices, "Kinds of device.")
          .optional("sockets", &Hardware::sockets,
                    "Rates between sockets; the first that matches applies.")
          .required("limits", &Hardware::limits, "Limits of `foreshard topology check`.")
          .check("devices", fault_in_ids);
  return table;
}

Result<Hardware> read_hardware(yaml::Loader& loader) {
  return loader.read_ref<Hardware>("gpus", "hardware");
}

}  // namespace foreshard
