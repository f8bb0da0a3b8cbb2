/// \file
/// How sure a kernel's time is: the evidence behind the parameters that determine it.
#pragma once

#include "base/yaml/sourced.h"

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard {

/// Groups of parameters that a step's time rests on; errors within one group go together.
enum class ParameterGroup : std::uint8_t {
  kProducts,       ///< Matrix products.
  kAttention,      ///< Fused attention.
  kPasses,         ///< Memory-bound kernels.
  kCommunication,  ///< The communication library's parameters.
};
inline constexpr std::size_t kParameterGroups = 4;
/// "matrix products".
std::string_view name_of(ParameterGroup group);

ParameterGroup group_of(const Kernel& kernel);
/// The weakest evidence among the parameters of the kernel's time: its efficiency, as far as it was
/// measured on this device, and the device's own peaks if the user stated them. A peak from a data
/// sheet weakens nothing, because efficiencies are shares of that peak.
yaml::Evidence evidence_of(const Kernel& kernel, const DeviceType& device);

}  // namespace foreshard
