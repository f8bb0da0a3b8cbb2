/// \file
/// A report as CSV: a header line and one data line, for spreadsheets and shell loops. The keys are
/// the same as in the JSON.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace foreshard::report {

std::string to_csv(const Report& report);

}  // namespace foreshard::report
