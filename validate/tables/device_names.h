/// \file
/// From names of devices in tables of measurements to those of the catalogue.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

namespace foreshard::accuracy {

struct NamedDevice {
  std::string name;      ///< As in configs/devices/.
  bool guessed_memory;   ///< The table does not say which capacity it has.
  bool another_variant;  ///< The catalogue has no device of this capacity; the nearest one.
};
/// The device called `gpu` ("A100", "A100-SXM4-80GB", "H100-SXM5-80GB"), with `memory_gb` if known.
std::optional<NamedDevice> device_named(std::string_view gpu, std::optional<double> memory_gb);

/// Reads every device named here, so that a fault of the catalogue ends a run and is not told as
/// one of each row.
/// \return the first fault.
Status fault_of_devices(yaml::Loader& loader);

}  // namespace foreshard::accuracy
