/// \file
/// A report for a person at a terminal: 80 columns, three significant digits, and what to do about
/// each warning.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace foreshard::report {

struct TextOptions {
  bool colour = false;  ///< Escape sequences; they never carry meaning alone.
};

std::string to_text(const Report& report, const TextOptions& options = {});

}  // namespace foreshard::report
