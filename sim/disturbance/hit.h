/// \file
/// Disturbances that a step met, for reports.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/units.h"

namespace foreshard::disturbance {

inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// One disturbance and the parts that it affects.
struct Hit {
  std::string kind;    ///< "straggler", "link", "failure", "background", "jitter".
  std::string effect;  ///< Text for people: "80 % of its speed".
  Seconds at{};
  Seconds until = kNever;
  std::int64_t count = 0;        ///< Number of affected parts.
  std::vector<std::string> who;  ///< Names of the first affected parts.
};

}  // namespace foreshard::disturbance
