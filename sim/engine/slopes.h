/// \file
/// Derivatives of the length of a run by the numbers of its workload. They are exact: the
/// derivatives of every instant are carried along the timeline of the run.
///
///     start  = max over its predecessors            derivative of the predecessor that ended last
///     work   = integral of rate over time           rates are constant between instants at which
///                                                   something that shares with them begins or ends
///     rate   = connections x level, level = (capacity - use by others) / pull
///                                                   of the resource that bounds it (workload.h)
///
/// Without sharing, the derivative is a sum along the critical path: how much the time of each of
/// its activities depends on a parameter. With sharing it also includes the capacity that other
/// activities leave when they end sooner.
///
/// Not modelled: at an instant at which two things tie, the length of a run is no smooth function
/// of the workload's numbers; the derivative is then the one of one side (of what was added first).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine {

/// Derivatives of a workload's numbers. Many numbers have the same derivatives and share a row.
struct Slopes {
  static constexpr std::int32_t kConstant = -1;

  std::size_t parameters = 0;
  std::vector<double> rows;            ///< Row r: [r x parameters, (r + 1) x parameters).
  std::vector<std::int32_t> latency;   ///< One entry per activity: its row, or kConstant.
  std::vector<std::int32_t> work;      ///< One entry per activity: its row, or kConstant.
  std::vector<std::int32_t> capacity;  ///< One entry per resource: its row, or kConstant.
  std::vector<std::int32_t> rate_cap;  ///< One entry per shape: its row, or kConstant.
  /// The parameter p with d(release lag) / dp = -(release lag), or kConstant.
  std::int32_t lag = kConstant;

  /// Adds a row. \pre row.size() == parameters
  std::int32_t add(const std::vector<double>& row);
};

/// The derivatives of the makespan by each parameter.
/// \param times  the result of run_fluid.
/// \pre `workload` has no events, `times` is complete, `slopes` has an entry for each activity,
///     resource and shape.
///
/// Cost: at each beginning and end of an activity, the number of activities that share with it,
/// directly or through others, times the number of parameters.
std::vector<double> slopes_of_makespan(const Workload& workload, const Timeline& times,
                                       const Slopes& slopes);

}  // namespace foreshard::engine
