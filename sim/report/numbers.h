/// \file
/// Numbers formatted for people.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Columns that a text takes on a terminal: the number of its code points.
std::size_t columns(std::string_view text);
/// `text` padded to `width` columns with spaces after it (left) or before it (right); longer texts
/// are cut with "…".
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

}  // namespace foreshard::report
