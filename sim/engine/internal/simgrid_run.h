/// \file
/// The part of the reference engine that runs in its own process and calls SimGrid.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine::internal {

/// SimGrid counts work in whole units. Works and capacities of resource r are multiplied by
/// 2^exponent[r], which is the same for all resources that an activity uses.
struct WholeUnits {
  std::vector<int> exponent;        ///< resource -> exponent
  std::vector<std::uint64_t> work;  ///< activity -> its work, normalised, scaled and rounded.
};

/// Destination of the results: memory that outlives this process.
struct Results {
  std::span<double> start;
  std::span<double> finish;
  std::int64_t* events;
  std::int64_t* finished;
};

/// Runs the workload. SimGrid has one engine per process, and this call leaves it used.
/// \pre SimGrid can express every activity.
/// \throws whatever SimGrid throws
void simulate_on_simgrid(const Workload& workload, const WholeUnits& units, SimgridSolver solver,
                         Results results);

}  // namespace foreshard::engine::internal
