/// \file
/// Readings of the device while it runs: clocks, temperature, power, reasons for throttling. They
/// come from NVML, a library of the driver; if it is missing, readings are empty.
#pragma once

#include <memory>
#include <string>

#include "validate/measurement/measurement.h"

namespace foreshard::replay::gpu {

class Nvml {
 public:
  /// \param bus  PCI address as CUDA reports it ("0000:17:00.0").
  explicit Nvml(const std::string& bus);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// May be called from any thread (NVML API Reference Guide, "NVML is thread-safe").
  measure::Reading reading() const;
  std::string driver() const;  ///< "580.65.06"; empty if unknown.

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

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
