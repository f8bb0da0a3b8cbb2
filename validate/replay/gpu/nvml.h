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

}  // namespace foreshard::replay::gpu
