/// \file
/// The part of the reference engine that runs in its own process and speaks to SimGrid.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine::internal {

/// SimGrid counts work in whole units. Works and capacities of resource r are multiplied by
/// 2^exponent[r], which is the same for all resources that an activity uses.
struct WholeUnits {
  std::vector<int> exponent;        ///< By resource.
  std::vector<std::uint64_t> work;  ///< By activity, normalised, scaled and rounded.
};

/// Where the results go: memory that outlives this process.
struct Results {
  std::span<double> start;
  std::span<double> finish;
  std::int64_t* events;
  std::int64_t* finished;
};

/// Runs the workload. SimGrid's engine is one per process and is not left as it was found.
/// \pre every activity is one that SimGrid can express. \throws whatever SimGrid throws
void simulate_on_simgrid(const Workload& workload, const WholeUnits& units, SimgridSolver solver,
                         Results results);

}  // namespace foreshard::engine::internal
