#include "validate/tables/device_names.h"

#include <array>
#include <cmath>

#include "base/text.h"

#include "topology/device_type.h"

namespace foreshard::accuracy {
namespace {

struct DeviceLine {
  std::string_view word;
  double memory_gb;
  std::string_view name;
  bool rare = false;  // chosen only if its capacity is stated
};
// The first line whose word is in the name decides the kind of device. Lines with the same word are
// variants of one kind; the last of them is the usual variant.
constexpr std::array kDevices{
    DeviceLine{"A100 PCIe", 40, "A100-PCIe-40GB"},
    DeviceLine{"A100 PCIe", 80, "A100-PCIe-80GB"},
    DeviceLine{"A100-PCIe", 40, "A100-PCIe-40GB"},
    DeviceLine{"A100-PCIe", 80, "A100-PCIe-80GB"},
    DeviceLine{"A100", 40, "A100-SXM-40GB"},
    DeviceLine{"A100", 80, "A100-SXM-80GB"},
    DeviceLine{"A800", 80, "A800-SXM-80GB"},
    DeviceLine{"GB200", 186, "GB200"},
    DeviceLine{"GB300", 279, "GB300"},
    DeviceLine{"B200", 180, "B200"},
    DeviceLine{"B300", 279, "B300"},
    DeviceLine{"GH200", 144, "GH200-144GB"},
    DeviceLine{"GH200", 96, "GH200-96GB"},
    DeviceLine{"H100 PCIe", 80, "H100-PCIe"},
    DeviceLine{"H100-PCIe", 80, "H100-PCIe"},
    DeviceLine{"H100 NVL", 94, "H100-NVL"},
    DeviceLine{"H100-NVL", 94, "H100-NVL"},
    DeviceLine{"H100", 96, "H100-SXM-96GB", true},
    DeviceLine{"H100", 80, "H100-SXM"},
    DeviceLine{"H200", 141, "H200-SXM"},
    DeviceLine{"H800", 80, "H800-SXM"},
    DeviceLine{"V100", 16, "V100-SXM-16GB"},
    DeviceLine{"V100", 32, "V100-SXM-32GB"},
    DeviceLine{"A40", 48, "A40"},
    DeviceLine{"L40S", 48, "L40S"},
    DeviceLine{"4090", 24, "RTX-4090"},
    DeviceLine{"RTX PRO 6000", 96, "RTX-PRO-6000"},
    DeviceLine{"MI300X", 192, "MI300X"},
    DeviceLine{"MI325X", 256, "MI325X"},
    DeviceLine{"MI350X", 288, "MI350X"},
    DeviceLine{"MI355X", 288, "MI355X"},
};

}  // namespace

std::optional<NamedDevice> device_named(std::string_view gpu, std::optional<double> memory_gb) {
  for (const DeviceLine& kind : kDevices) {
    if (!contains(gpu, kind.word)) continue;
    const DeviceLine* usual = nullptr;
    std::int64_t variants = 0;
    for (const DeviceLine& line : kDevices) {
      if (line.word != kind.word) continue;
      usual = &line;
      if (!line.rare) ++variants;
      const bool printed = contains(gpu, std::to_string(static_cast<int>(line.memory_gb)) + "GB");
      const bool stated = memory_gb && std::abs(*memory_gb / line.memory_gb - 1) < 0.1;
      if (printed || stated) return NamedDevice{std::string(line.name), false, false};
    }
    return NamedDevice{std::string(usual->name), !memory_gb && variants > 1, memory_gb.has_value()};
  }
  return std::nullopt;
}

Status fault_of_devices(yaml::Loader& loader) {
  for (const DeviceLine& line : kDevices)
    if (const auto device = loader.read_ref<DeviceType>(line.name); !device) return device.error();
  return {};
}

}  // namespace foreshard::accuracy
