/// \file
/// Finds the catalogue's device for a name in a table of measurements. Used by all predictions of
/// rows (evidence/setting.cc, collective_rows.cc, kernels.cc) and by `foreshard calibrate`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

namespace foreshard::accuracy {

struct NamedDevice {
  std::string name;      ///< Name in configs/devices/.
  bool guessed_memory;   ///< The table does not say which of several capacities the device has.
  bool another_variant;  ///< The catalogue lacks this capacity; `name` is the usual variant.
};
/// The device called `gpu` ("A100", "A100-SXM4-80GB", "H100-SXM5-80GB"); nothing if the name is
/// unknown.
/// \param memory_gb  its memory capacity in GB, if the table states it.
std::optional<NamedDevice> device_named(std::string_view gpu, std::optional<double> memory_gb);

/// Reads every device that names can stand for, so that a fault of the catalogue ends the run
/// instead of becoming a fault of every row.
/// \return The first fault.
Status fault_of_devices(yaml::Loader& loader);

}  // namespace foreshard::accuracy
