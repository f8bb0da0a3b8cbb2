/// \file
/// The part of a report on what faster devices, links and hosts would buy.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/report/internal/page.h"
#include "sim/simulate/sensitivity.h"

namespace foreshard::report {

/// Leaves out what is worth less than it would show.
void write_sensitivities(Page& page, const sim::Sensitivities& sensitivities);
nlohmann::ordered_json sensitivities_json(const sim::Sensitivities& sensitivities);

}  // namespace foreshard::report
