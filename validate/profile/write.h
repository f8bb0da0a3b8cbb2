/// \file
/// What was matched of a trace, for people.
#pragma once

#include <string>

#include "validate/profile/match.h"

namespace foreshard::profile {

/// Matched shares, what took the time by kind, and what could not be matched.
std::string to_text(const program::Program& program, const Trace& trace, const Match& match);

}  // namespace foreshard::profile
