/// \file
/// The numbers of a device's efficiency file that a fit may change, and how sure they are before
/// any data. What a spread means: log_fit.h. It follows from the evidence on this very device:
///
/// | evidence | shares of a peak | times and rates in bytes |
/// | --- | ---: | ---: |
/// | measured or fitted | 0.15 | 0.4 |
/// | transferred from a relative | 0.3 | 0.8 |
/// | a data sheet's or the user's word | 1.5 | 2.5 |
///
/// Assumed: the first are what good fits miss single kernels by (`p90_error` of products in
/// configs/devices/efficiency), and an overhead, which is a part of most times, is known worse; the
/// last are orders of magnitude.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/device_type.h"
#include "validate/calibrate/log_fit.h"

namespace foreshard::calibrate {

/// By place in Kernel.
enum class KernelFamily : std::uint8_t { kGemm, kAttention, kPass };
KernelFamily family_of(const Kernel& kernel);

/// What the names of a kernel's numbers begin with, as the file's keys do: "gemm.", "attention.",
/// "attention_of.flash-3.", "passes.".
std::string prefix_of(const Kernel& kernel, const DeviceEfficiency& efficiency);

/// The numbers that these kernels, all of `family`, depend on. A dtype, a head size or a kind of
/// pass that has no line in the file gets one that says what it takes without.
/// \pre `device` outlives the result.
std::vector<LogNumber> numbers_of(DeviceType& device, KernelFamily family,
                                  const std::vector<Kernel>& kernels);

}  // namespace foreshard::calibrate
