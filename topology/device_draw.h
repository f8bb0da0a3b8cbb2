/// \file
/// Power that a device draws, by kind of work, between its idle power and its limit:
///
///     draw = idle power + share x (power - idle power)
///
/// Only matrix products reach the limit; memory-bound kernels, communication, and waiting with a
/// program loaded draw less. Shares that were not measured treat a device as either busy or idle: 1
/// for kernels and communication, 0 for waiting.
///
///     draw: Hopper      # configs/devices/draw/Hopper.yaml, or written out in the device
#pragma once

#include "base/yaml/sourced.h"
#include "base/yaml/table.h"

namespace foreshard {

struct DeviceDraw {
  /// A share that was not measured.
  static yaml::Sourced<double> assumed(double share) {
    return {share, "not measured: taken as busy or idle", yaml::Evidence::kTransferred};
  }

  yaml::Sourced<double> products = assumed(1);
  yaml::Sourced<double> attention = assumed(1);
  yaml::Sourced<double> passes = assumed(1);         ///< Memory-bound kernels, the optimizer's too.
  yaml::Sourced<double> communication = assumed(1);  ///< Communication while no kernel runs.
  yaml::Sourced<double> waiting = assumed(0);        ///< Waiting for the host or other devices.

  bool operator==(const DeviceDraw&) const = default;
};

const yaml::Table<DeviceDraw>& yaml_table(const DeviceDraw*);

}  // namespace foreshard
