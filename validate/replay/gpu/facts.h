/// \file
/// Facts about this machine and its device, for the measurement's record.
#pragma once

#include <string>

#include "validate/measurement/measurement.h"

namespace foreshard::replay::gpu {

/// Facts about the host and the device. The callers add library versions and the driver.
/// \pre `device` is the number of a CUDA device.
measure::Machine machine_facts(int device);

/// Name and UUID: "NVIDIA H200, GPU-3f2a...".
std::string device_name(int device);
/// The UUID, the same in every process that sees the device: "GPU-3f2a...".
/// Source: CUDA Runtime API, cudaDeviceProp::uuid.
std::string device_uuid(int device);
/// PCI address: "0000:17:00.0".
std::string device_bus(int device);

}  // namespace foreshard::replay::gpu
