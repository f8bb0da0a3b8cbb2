/// \file
/// A report as JSON, schema "foreshard.prediction/1": what programs may rely on. The same report
/// gives the same bytes; only `wall`, where it was asked for, differs from run to run.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace foreshard::report {

inline constexpr std::string_view kPredictionSchema = "foreshard.prediction/1";

/// Times in seconds, sizes in whole bytes; indented, with a newline at the end. What is not known
/// is null.
std::string to_json(const Report& report);

}  // namespace foreshard::report
