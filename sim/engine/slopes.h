/// \file
/// How the length of a run moves with the numbers of its workload: its exact derivative, by
/// carrying the derivatives of every instant along the time line that the run took.
///
///     start  = max over what it waits for           the derivative of the one that was last
///     work   = integral of rate over time           rates are constant between instants at which
///                                                   something that shares with them begins or ends
///     rate   = connections x level, level = (capacity - what others use) / pull
///                                                   of the resource that bounds it (workload.h)
///
/// Without sharing this is the sum along the critical path of what each of its activities takes of
/// a parameter. With sharing it also has what others that end sooner leave.
///
/// Not modelled: at an instant at which two things tie, a run is no smooth function of its
/// numbers; the derivative is then that of one side (of what was added first).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine {

/// Derivatives of a workload's numbers. Many numbers move alike, so that they share rows.
struct Slopes {
  static constexpr std::int32_t kConstant = -1;

  std::size_t parameters = 0;
  std::vector<double> rows;            ///< Row r: [r x parameters, (r + 1) x parameters).
  std::vector<std::int32_t> latency;   ///< Per activity: its row, or kConstant.
  std::vector<std::int32_t> work;      ///< Likewise.
  std::vector<std::int32_t> capacity;  ///< Per resource.
  std::vector<std::int32_t> rate_cap;  ///< Per shape.
  /// The parameter p with d(release lag) / dp = -(release lag), or kConstant.
  std::int32_t lag = kConstant;

  /// Adds a row. \pre row.size() == parameters
  std::int32_t add(const std::vector<double>& row);
};

/// The derivatives of the makespan by each parameter.
/// \param times  of run_fluid.
/// \pre `workload` has no events, `times` are complete, `slopes` has an entry for each activity,
///     resource and shape.
/// Cost: per beginning and end of an activity, the activities that share with it, directly or
/// through others, times the parameters.
std::vector<double> slopes_of_makespan(const Workload& workload, const Timeline& times,
                                       const Slopes& slopes);

}  // namespace foreshard::engine
