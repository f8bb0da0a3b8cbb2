/// \file
/// Facts about this machine and its device, for the measurement's record.
#pragma once

#include <string>

#include "validate/measurement/measurement.h"

namespace foreshard::replay::gpu {

/// \pre `device` is one of CUDA's. The callers add library versions and the driver.
measure::Machine machine_facts(int device);

/// "NVIDIA H200, GPU-3f2a...".
std::string device_name(int device);
/// "GPU-3f2a...": its UUID, the same in every process that sees it.
/// Source: CUDA Runtime API, cudaDeviceProp::uuid.
std::string device_uuid(int device);
/// PCI address: "0000:17:00.0".
std::string device_bus(int device);

}  // namespace foreshard::replay::gpu
