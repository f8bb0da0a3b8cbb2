/// \file
/// The numbers of a device's efficiency file that a fit may change, and how certain each is before
/// any data. The spread (log_fit.h) follows from the evidence for this very device:
///
/// | evidence | spread of shares of a peak | spread of times and byte rates |
/// | --- | ---: | ---: |
/// | measured or fitted | 0.15 | 0.4 |
/// | transferred from a related device | 0.3 | 0.8 |
/// | data sheet, or given by the user | 1.5 | 2.5 |
///
/// Assumed. The first row is the error of good fits on single kernels (`p90_error` of products in
/// configs/devices/efficiency); overheads, which are only a part of most times, are known less
/// well. The last row stands for orders of magnitude.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/device_type.h"
#include "validate/calibrate/log_fit.h"

namespace foreshard::calibrate {

/// Values are the indices of the alternatives of Kernel.
enum class KernelFamily : std::uint8_t { kGemm, kAttention, kPass };
KernelFamily family_of(const Kernel& kernel);

/// Prefix of the names of a kernel's numbers, equal to the file's keys: "gemm.", "attention.",
/// "attention_of.flash-3.", "passes.".
std::string prefix_of(const Kernel& kernel, const DeviceEfficiency& efficiency);

/// The numbers that `kernels` depend on. A dtype, head size or kind of pass without an entry in the
/// file gets one, with the value that applies without it.
/// \param kernels  all of `family`.
/// \pre `device` outlives the result.
std::vector<LogNumber> numbers_of(DeviceType& device, KernelFamily family,
                                  const std::vector<Kernel>& kernels);

}  // namespace foreshard::calibrate
