/// \file
/// The lines that the memory of a device should not reach.
#pragma once

#include <vector>

#include "sim/picture/chart.h"
#include "sim/picture/internal/numbers.h"

namespace foreshard::picture {

/// From the `memory` of a prediction, in GiB. Results of older versions have no margin.
inline std::vector<StackedBars::Limit> limits_of(const Json& memory) {
  const double capacity = amount(memory, "capacity_bytes") / kGiB;
  const double usable = capacity - amount(memory, "reserve_bytes") / kGiB;
  std::vector<StackedBars::Limit> limits{{"capacity", capacity}, {"without the reserve", usable}};
  if (const auto margin = amount_if_known(memory, "margin_share");
      margin && memory.at("tight") == true)
    limits.push_back({"without the margin", usable - *margin * capacity});
  return limits;
}

}  // namespace foreshard::picture
