/// \file
/// What each speed of a step's devices, links and hosts is worth: how much shorter the step gets
/// when that speed grows.
///
///     elasticity = d ln(step) / d ln(speed)     exact (sim/engine/slopes.h); -0.3: 1 % faster
///                                               takes 0.3 % off the step
///     step at +10 %                             simulated again, with that speed alone 1.1 times
///
/// Elasticities sum to -1: if everything is twice as fast, the step takes half as long. A speed
/// that the critical path does not meet is worth nothing.
///
/// Not modelled: what scalable.h holds, the choice of algorithms among it.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/simulate/scalable.h"

namespace foreshard::sim {

struct Sensitivity {
  Speed speed;
  double elasticity = 0;
  Seconds step_at_more;  ///< With this speed `kMore` times as high.
};

struct Sensitivities {
  static constexpr double kMore = 1.1;

  Seconds step;
  std::vector<Sensitivity> of;  ///< Most worth first; ties in the order of speeds.
};

/// \pre nothing disturbs the step
/// \return what ScalableStep::of and the engine return.
Result<Sensitivities> sensitivities_of(const ClusterView& cluster, const program::Program& program,
                                       const comm::Parameters& communication,
                                       const SimulateOptions& options);

}  // namespace foreshard::sim
