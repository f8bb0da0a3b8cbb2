/// \file
/// Parses the time that a command may take (--budget).
#pragma once

#include <string>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::cli {

/// "60s", "10 min".
/// \return kInvalidInput, with what to write instead, for a number without a unit, for any other
///     text, and for a time that is not positive.
Result<Seconds> patience(const std::string& text);

}  // namespace foreshard::cli
