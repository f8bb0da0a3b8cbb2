/// \file
/// What foreshard and its module for SimGrid say to each other. The module is a shared object of
/// its own, which the process that runs SimGrid loads: SimGrid and the libraries below it would
/// otherwise be loaded by every start of the program.
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

/// Destination of the results: memory that outlives the process.
struct SimgridResults {
  std::span<double> start;   ///< activity -> seconds
  std::span<double> finish;  ///< activity -> seconds
  std::int64_t* events;      ///< Number of events so far.
  std::int64_t* finished;    ///< Number of activities that have ended.
};

/// The module's one function: runs the workload. SimGrid has one engine per process, and a call
/// leaves it used.
/// \pre SimGrid can express every activity.
/// \throws whatever SimGrid throws
using RunOnSimgrid = void(const Workload& workload, const WholeUnits& units, SimgridSolver solver,
                          SimgridResults results);
inline constexpr const char* kRunOnSimgrid = "foreshard_run_on_simgrid";

}  // namespace foreshard::engine::internal
