/// \file
/// A second implementation of workload.h, as plain as its comments: everything is solved again at
/// every event, in O(activities x resources). What the engine must agree with.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine::oracle {

/// Weighted max-min by progressive filling.
/// \return progress per second, in the shapes' own units. `capacity` replaces that of each
///     resource.
std::vector<double> max_min_rates(const Workload& workload, const std::vector<ShapeId>& running,
                                  const std::vector<double>& capacity = {});

/// Why `rates` are not the max-min rates of `running`, or "": each must be at its cap, or have a
/// full resource on which its rate / connections (of normalised progress) is the highest.
std::string not_max_min(const Workload& workload, const std::vector<ShapeId>& running,
                        const std::vector<double>& rates);

/// Finish times. Those that never finish are infinite. Events that happen once are obeyed.
std::vector<double> finish_times(const Workload& workload);

/// Likewise, and when activities failed: infinite for those that did not.
struct Outcome {
  std::vector<double> finish;
  std::vector<double> failed;
};
Outcome outcome_of(const Workload& workload);

}  // namespace foreshard::engine::oracle
