/// \file
/// Numbers formatted for people.
#pragma once

#include <string>
#include <string_view>

#include "base/grouped.h"
#include "base/units.h"

namespace foreshard::report {

/// Three significant digits and a prefix word: "175B", "1.02M", "7".
std::string scaled(double number);
/// Three significant digits: "980 Wh", "3.66 kWh", "2.33 GWh".
std::string watt_hours(Joules energy);
/// "68.0 %".
std::string percent(double ratio);

}  // namespace foreshard::report
