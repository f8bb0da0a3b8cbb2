/// \file
/// The messages about a simulation between the ranks of a search (sim/search/team.h).
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

/// \param place  its index among the places of the search.
team::Words task_of(std::int64_t place, const Strategy& strategy);
/// Reads the strategy and place of a task.
/// \return kInvalidInput where `task` is no such message, or its strategy does not read back as it
///     was written.
Result<Candidate> candidate_in(const team::Words& task, const study::LoadedStudy& study,
                               const std::vector<Place>& places);

/// What is known of a candidate before its simulation; all results are zero.
Simulated not_yet_simulated(const Candidate& candidate);

/// The answer to a task: each number, exactly, or the message of the error.
team::Words answer_of(const Result<Simulated>& found);
/// The simulation of `candidate` that an answer holds. Nothing where `answer` is no such message.
std::optional<Result<Simulated>> simulated_in(const team::Words& answer,
                                              const Candidate& candidate);

}  // namespace foreshard::search
