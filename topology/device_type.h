/// \file
/// A kind of device: its capabilities and the efficiency parameters of the operator-time model, as
/// the catalogue (configs/devices/*.yaml) gives them.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace foreshard {

struct DeviceType {
  std::string name;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
};

}  // namespace foreshard
