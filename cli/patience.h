/// \file
/// How long a command may take, as --budget says it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::cli {

/// "60s", "10 min".
/// \return kInvalidInput, with what to write instead, for a number without a unit, any other text,
///     and a time that is not positive.
Result<Seconds> patience(const std::string& text);

}  // namespace foreshard::cli
