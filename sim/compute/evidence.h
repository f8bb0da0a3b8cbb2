/// \file
/// How sure a kernel's time is: the evidence of the parameters that it rests on.
#pragma once

#include "base/yaml/sourced.h"

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard {

/// What a step's time rests on; parameters of one group are wrong together.
enum class ParameterGroup : std::uint8_t {
  kProducts,       ///< Matrix products.
  kAttention,      ///< Fused attention.
  kPasses,         ///< Memory-bound kernels.
  kCommunication,  ///< Of the communication library.
};
inline constexpr std::size_t kParameterGroups = 4;
/// "matrix products".
std::string_view name_of(ParameterGroup group);

ParameterGroup group_of(const Kernel& kernel);
/// The weakest of what the kernel's time rests on: its efficiency, as far as it was measured on
/// this device, and the device's own peaks where they are the user's word. A data sheet's peak is
/// no weakness: efficiencies are shares of it.
yaml::Evidence evidence_of(const Kernel& kernel, const DeviceType& device);

}  // namespace foreshard
