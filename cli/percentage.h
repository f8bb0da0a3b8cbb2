/// \file
/// Parses percentages (--max-error).
#pragma once

#include <string>

#include "base/result.h"

namespace foreshard::cli {

/// "12%" or "12" -> 12.
/// \return kInvalidInput for any other text, or a negative number.
Result<double> percentage(std::string text);

}  // namespace foreshard::cli
