/// \file
/// Times of collectives as texts, for probes that compare them.
#pragma once

#include <string>
#include <vector>

#include "strategies/comm/collective.h"

namespace foreshard {

/// Every form of one operation at some sizes, also those that are not taken; or the error.
std::string sweep_text(comm::CollectiveKind kind, const comm::Participants& group,
                       const comm::Parameters& parameters);

/// Of an exchange in which each of `members` sends to the next one.
std::vector<comm::Transfer> round_of(std::int64_t members);

}  // namespace foreshard
