/// \file
/// What was matched of a trace, for people.
#pragma once

#include <string>
#include <vector>

#include "validate/profile/match.h"
#include "validate/profile/samples.h"

namespace foreshard::profile {

/// Matched shares, and what could not be matched.
std::string to_text(const program::Program& program, const Trace& trace, const Match& match);

/// What took how long beside what the model expects, the host, and the layers held out.
std::string to_text(const program::Program& program, const std::vector<ProfiledRank>& ranks);

}  // namespace foreshard::profile
