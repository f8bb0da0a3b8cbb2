/// \file
/// A report for a person at a terminal: 80 columns, three significant digits, and a remedy for each
/// warning.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace foreshard::report {

struct TextOptions {
  bool colour = false;  ///< Whether to use escape sequences; colour alone never carries meaning.
};

std::string to_text(const Report& report, const TextOptions& options = {});

}  // namespace foreshard::report
