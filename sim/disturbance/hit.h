/// \file
/// What happened to a step, for reports.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/units.h"

namespace foreshard::disturbance {

inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// One thing that happens, and to whom.
struct Hit {
  std::string kind;    ///< "straggler", "link", "failure", "background", "jitter".
  std::string effect;  ///< For people: "80 % of its speed".
  Seconds at{};
  Seconds until = kNever;
  std::int64_t count = 0;        ///< Of those hit.
  std::vector<std::string> who;  ///< The first of them by name.
};

}  // namespace foreshard::disturbance
