/// \file
/// Results of matching a trace, as text for people.
#pragma once

#include <string>
#include <vector>

#include "validate/profile/match.h"
#include "validate/profile/samples.h"

namespace foreshard::profile {

/// Matched shares of the time, and the kernels and tasks that could not be matched.
std::string to_text(const program::Program& program, const Trace& trace, const Match& match);

/// Measured times against the model's, the host's times, and the held-out layers.
std::string to_text(const program::Program& program, const std::vector<ProfiledRank>& ranks);

}  // namespace foreshard::profile
