/// \file
/// What a device draws while it does what, between its idle power and its limit:
///
///     draw = idle power + share x (power - idle power)
///
/// Only products of matrices need all of the limit; memory-bound kernels, communication and waiting
/// with a program loaded take less. Shares that nobody measured are those of a device that is busy
/// or idle and nothing between: 1 for kernels and communication, 0 for waiting.
///
///     draw: Hopper      # configs/devices/draw/Hopper.yaml, or written out in the device
#pragma once

#include "base/yaml/sourced.h"
#include "base/yaml/table.h"

namespace foreshard {

struct DeviceDraw {
  /// A share that nobody measured.
  static yaml::Sourced<double> assumed(double share) {
    return {share, "not measured: taken as busy or idle", yaml::Evidence::kTransferred};
  }

  yaml::Sourced<double> products = assumed(1);
  yaml::Sourced<double> attention = assumed(1);
  yaml::Sourced<double> passes = assumed(1);         ///< Memory-bound kernels, the optimizer's too.
  yaml::Sourced<double> communication = assumed(1);  ///< While no kernel runs beside it.
  yaml::Sourced<double> waiting = assumed(0);        ///< For its host or for other devices.

  bool operator==(const DeviceDraw&) const = default;
};

const yaml::Table<DeviceDraw>& yaml_table(const DeviceDraw*);

}  // namespace foreshard
