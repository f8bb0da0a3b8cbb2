/// \file
/// The part of a report on how much time faster devices, links and hosts would save.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/report/internal/page.h"
#include "sim/simulate/sensitivity.h"

namespace foreshard::report {

/// Leaves out resources whose effect is too small to show.
void write_sensitivities(Page& page, const sim::Sensitivities& sensitivities);
nlohmann::ordered_json sensitivities_json(const sim::Sensitivities& sensitivities);

}  // namespace foreshard::report
