/// \file
/// A replay of a machine that is known: what a measurement would say of it, with noise.
#pragma once

#include <cstdint>

#include "strategies/comm/parameters.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"
#include "validate/measurement/measurement.h"

namespace foreshard::test {

struct Noise {
  double spread = 0;    ///< Standard deviation of each time's logarithm.
  double outliers = 0;  ///< Part of the instances that take five times as long.
  unsigned seed = 1;
};

/// The program's tasks, rank by rank in the order of issue, each when its members reached it; all
/// on one stream. Kernels take what the model says of the device, communication what its forms say.
measure::Measurement replayed(const program::Program& program, const ClusterView& cluster,
                              const comm::Parameters& communication, const Noise& noise = {});

}  // namespace foreshard::test
