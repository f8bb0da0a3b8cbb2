/// \file
/// The effect of each speed of a step's devices, links and hosts: how much shorter the step gets
/// when that speed grows.
///
///     elasticity = d ln(step) / d ln(speed)     exact (sim/engine/slopes.h); -0.3: 1 % faster
///                                               takes 0.3 % off the step
///     step at +10 %                             simulated again, with this one speed 1.1 times
///
/// Elasticities sum to -1: if everything is twice as fast, the step takes half as long. A speed
/// that does not matter on the critical path has no effect.
///
/// Not modelled: changes of everything that scalable.h keeps as it is, such as the algorithms.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/simulate/scalable.h"

namespace foreshard::sim {

struct Sensitivity {
  Speed speed;
  double elasticity = 0;
  Seconds step_at_more;  ///< Step with this speed multiplied by `kMore`.
};

struct Sensitivities {
  static constexpr double kMore = 1.1;

  Seconds step;
  std::vector<Sensitivity> of;  ///< Largest effect first; ties in the order of speeds.
};

/// \pre Nothing disturbs the step.
/// \return The errors of ScalableStep::of and the engine.
Result<Sensitivities> sensitivities_of(const ClusterView& cluster, const program::Program& program,
                                       const comm::Parameters& communication,
                                       const SimulateOptions& options);

}  // namespace foreshard::sim
