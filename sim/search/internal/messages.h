/// \file
/// What the ranks of a search say to each other of a simulation (sim/search/team.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/team/message.h"

#include "sim/search/internal/race.h"
#include "sim/search/place.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// \param place  its number among those of the search.
team::Words task_of(std::int64_t place, const Strategy& strategy);
/// Its strategy and its place.
/// \return kInvalidInput where `task` is none, or its strategy is not read as it was written.
Result<Candidate> candidate_in(const team::Words& task, const study::LoadedStudy& study,
                               const std::vector<Place>& places);

/// Of the candidate what is known before its simulation; all numbers are zero.
Simulated not_yet_simulated(const Candidate& candidate);

/// Each number, exactly, or the message of the error.
team::Words answer_of(const Result<Simulated>& found);
/// The same of `candidate`, as it was. Nothing where `answer` is none.
std::optional<Result<Simulated>> simulated_in(const team::Words& answer,
                                              const Candidate& candidate);

}  // namespace foreshard::search
