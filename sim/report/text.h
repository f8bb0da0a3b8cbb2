/// \file
/// A report for a person at a terminal: three significant digits, and a remedy for each warning.
#pragma once

#include <string>

#include "base/page.h"

#include "sim/report/report.h"

namespace foreshard::report {

/// Colour alone never carries meaning.
std::string to_text(const Report& report, const Paper& paper = {});

}  // namespace foreshard::report
